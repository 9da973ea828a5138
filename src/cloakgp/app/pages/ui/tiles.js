// A few large numbers beside each other.

import { h } from "./dom.js";

export function tile(value, label, sub, kind) {
  return h(
    "li",
    { class: kind ?? null },
    h("b", {}, value),
    h("span", {}, label),
    sub ? h("small", {}, sub) : null,
  );
}

export const tiles = (...entries) => h("ul", { class: "tiles" }, ...entries);
