// Three cards to choose from: what is hidden, what stays public, and what it costs. `cost(unit)` is where to say that.

import { draft } from "../core/draft.js";
import { UNITS } from "../core/protection.js";
import { h, newId } from "../ui/dom.js";
import { tip } from "../ui/tip.js";

export function unitCards(choose) {
  const name = newId("unit");
  const costs = {};
  const chosen = draft.get().protect;
  const root = h(
    "fieldset",
    { class: "units" },
    h("legend", { class: "hidden-text" }, "Who is protected"),
    Object.entries(UNITS).map(([unit, words]) => {
      const id = `protect-${unit}`;
      costs[unit] = h("p", { class: "unit-cost", "aria-live": "polite" });
      return h(
        "div",
        { class: "unit card" },
        h(
          "div",
          { class: "unit-head" },
          h("input", { type: "radio", name, id, value: unit, checked: unit === chosen, onchange: () => choose(unit) }),
          h("label", { htmlFor: id }, words.title),
          tip(words.term),
        ),
        h("p", { class: "unit-when" }, words.when),
        h(
          "dl",
          { class: "unit-facts" },
          h("dt", { class: "private" }, "hidden"),
          h("dd", {}, words.hidden),
          h("dt", { class: "public" }, "public"),
          h("dd", {}, words.open),
        ),
        costs[unit],
      );
    }),
  );
  root.cost = (unit) => costs[unit];
  return root;
}
