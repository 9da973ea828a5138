// Points as they are typed, one on each line: numbers, levels by their names, dates as dates.

import { typed } from "./typed.js";

const DATE = /^\d{4}-\d{2}-\d{2}([T ].*)?$/;

// `columns` are {name, kind, levels, closed}; closed ones have no other levels than these.
export function typedPoints(text, columns) {
  const rows = [];
  const hasTexts = columns.some((column) => column.kind !== "number");
  for (const [place, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === "") continue;
    const cells = cellsOf(line.trim(), hasTexts);
    if (place === 0 && isHeader(cells, columns)) continue;
    if (cells.length !== columns.length) throw new Error(wrongNumber(place, cells.length, columns));
    rows.push(cells.map((cell, at) => valueOf(cell, columns[at], place)));
  }
  return rows;
}

// Texts may have blanks in them. Between semicolons or tabs, commas are decimal ones.
function cellsOf(line, hasTexts) {
  const between = /[;\t]/.test(line) ? /[;\t]/ : hasTexts ? /,/ : /[\s,]+/;
  const cells = line.split(between).map((cell) => cell.trim().replace(/^"(.*)"$/, "$1"));
  return hasTexts ? cells : cells.filter((cell) => cell !== "");
}

const isHeader = (cells, columns) =>
  cells.some((cell, at) => columns[at]?.kind === "number" && typed(cell) === null) &&
  !cells.some((cell) => typed(cell) !== null);

function wrongNumber(place, n, columns) {
  const what = columns.some((column) => column.kind !== "number") ? "part" : "number";
  return `Line ${place + 1} has ${n} ${what}${n === 1 ? "" : "s"}; there must be ${columns.length}.`;
}

function valueOf(cell, column, place) {
  if (column.kind === "number") {
    const value = typed(cell);
    if (value === null) throw new Error(`Line ${place + 1} is not made of numbers${column.name ? ` in ${column.name}` : ""}.`);
    return value;
  }
  if (cell === "") throw new Error(`Line ${place + 1}: ${column.name} is missing.`);
  if (column.kind === "date" && !DATE.test(cell))
    throw new Error(`Line ${place + 1}: write ${column.name} as a date, such as 2024-05-31.`);
  if (column.kind === "level" && column.closed && !column.levels.map(String).includes(cell))
    throw new Error(`Line ${place + 1}: ${column.name} is one of ${column.levels.join(", ")}.`);
  return cell;
}
