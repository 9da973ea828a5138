// A bar of what is left. `after` draws what would be left then.

import { h } from "./dom.js";

export function budgetBar(left, whole, after) {
  const share = (value) => `${Math.max(0, Math.min(100, (100 * value) / whole))}%`;
  const root = h("div", { class: "bar", "aria-hidden": "true" }, h("i", { class: "left" }));
  root.firstChild.style.width = share(left);
  if (after !== undefined && after !== null) {
    const rest = h("i", { class: "after" });
    rest.style.width = share(after);
    root.append(rest);
  }
  return root;
}
