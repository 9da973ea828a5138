// A table of numbers that opens on demand, and shows the first of very many.

import { h } from "./dom.js";
import { table } from "./tables.js";

const SHOWN = 200;

// `rowAt(place)` gives the cells of a row; `whole` says how many rows there are.
export function numbersTable(headings, rowAt, whole, caption) {
  const rows = Array.from({ length: Math.min(SHOWN, whole) }, (_, place) => rowAt(place));
  return h(
    "details",
    { class: "more" },
    h("summary", {}, rows.length < whole ? `The first ${SHOWN} numbers` : "The numbers"),
    table(headings, rows, { caption, numeric: headings.map((_, place) => place) }),
  );
}
