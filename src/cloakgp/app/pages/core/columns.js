// What inputs are: numbers, levels of a category (which the server numbers from 0) or dates (in days since a day).

import { number } from "./format.js";

const DAY = 86_400_000;

export const plainColumns = (names) => names.map((name) => ({ name, kind: "number", levels: [], origin: "" }));

// Those of a release; numbers where it does not know.
export const columnsIn = (release) =>
  (release.columns ?? plainColumns(release.settings.inputs)).map((column) => ({
    ...column,
    closed: Boolean(release.settings.box),
  }));

// A number as its column has it. Dates are those of UTC, with the time of day only where there is one.
export function shownCell(column, value) {
  if (typeof value === "string") return value;
  if (column?.kind === "level") return String(column.levels[value] ?? "another");
  if (column?.kind === "date") return dateOf(column, value);
  return number(value);
}

export const ORIGIN = "2000-01-01"; // as the library has it
const ISO_DAY = /^\d{4}-\d{2}-\d{2}$/;

// In days since then, or null if it is no date.
export function dayOf(text) {
  const moment = ISO_DAY.test(text) ? Date.parse(`${text}T00:00:00Z`) : NaN;
  return Number.isNaN(moment) ? null : Math.round((moment - Date.parse(`${ORIGIN}T00:00:00Z`)) / DAY);
}

export function dateOf(column, days) {
  const moment = new Date(Date.parse(`${column.origin}T00:00:00Z`) + Math.round(days * DAY)).toISOString();
  return moment.endsWith("T00:00:00.000Z") ? moment.slice(0, 10) : moment.slice(0, 16).replace("T", " ");
}

const DATES = "dates such as 2024-05-31";

// How points are written where some columns are no numbers, or nothing.
export function howToWrite(columns) {
  const one = (column) =>
    column.kind === "date"
      ? ` ${column.name}: ${DATES}.`
      : ` ${column.name}: ${column.levels.slice(0, 8).join(", ")}${column.levels.length > 8 ? ", …" : ""}.`;
  return columns
    .filter((column) => column.kind !== "number")
    .map(one)
    .join("");
}

// A point to begin with, as it is typed.
export const examplePoint = (columns, ranges) =>
  columns
    .map((column) => {
      if (column.kind === "level") return column.levels[0];
      if (column.kind === "date") return ranges?.[column.name] ? dateOf(column, ranges[column.name][0]).slice(0, 10) : "2024-05-31";
      return "12.5";
    })
    .join(", ");
