// Tables, and lists of facts.

import { h } from "./dom.js";

export function table(headings, rows, { caption, numeric = [], stacked = false } = {}) {
  const isNumber = (place) => (numeric.includes(place) ? "num" : null);
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "group", "aria-label": caption },
    h(
      "table",
      { class: stacked ? "stacked" : null },
      caption ? h("caption", { class: "hidden-text" }, caption) : null,
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          headings.map((text, place) => h("th", { scope: "col", class: isNumber(place) }, text)),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map((row) =>
          h(
            "tr",
            {},
            row.map((cell, place) =>
              h("td", { class: isNumber(place), "data-label": headings[place] }, cell),
            ),
          ),
        ),
      ),
    ),
  );
}

export function facts(pairs) {
  return h(
    "dl",
    { class: "facts" },
    pairs.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
}
