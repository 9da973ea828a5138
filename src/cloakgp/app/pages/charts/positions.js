// Where values of an input are drawn: numbers as they are, dates as dates, levels beside each other.

import { dateOf } from "../core/columns.js";
import { plain } from "./plain.js";

export const placed = (column, values) =>
  column.kind === "date" ? values.map((days) => dateOf(column, days)) : values;

// Makes an axis that of an input. `range` is in numbers.
export function suit(axis, column, range) {
  if (column.kind === "level") {
    const { levels } = column;
    Object.assign(axis, {
      tickvals: levels.map((_, place) => place),
      ticktext: levels.map((level) => plain(level)),
      range: [-0.6, levels.length - 0.4],
    });
    return;
  }
  if (column.kind === "date") axis.type = "date";
  if (range) axis.range = placed(column, range);
}

// Two inputs of which one has levels: curves along the other, one for each level. Null for others.
export function splitByLevel(columns) {
  const levels = columns.map((_, place) => place).filter((place) => columns[place].kind === "level");
  if (columns.length !== 2 || levels.length !== 1 || columns[levels[0]].levels.length > PALETTE.length) return null;
  return { by: levels[0], along: 1 - levels[0] };
}

// Colours that are told apart by everybody, on light and dark ground.
export const PALETTE = ["#2f7fc1", "#d9622b", "#1b9e77", "#c06aa5", "#c9950c", "#5aa9dd", "#8d7ad1", "#8a8f98"];

// The places of points with each level, in the order of the other input.
export function curves(points, columns, { by, along }) {
  return columns[by].levels.map((level, code) => ({
    level: String(level),
    colour: PALETTE[code],
    places: points
      .map((_, place) => place)
      .filter((place) => points[place][by] === code)
      .sort((a, b) => points[a][along] - points[b][along]),
  }));
}
