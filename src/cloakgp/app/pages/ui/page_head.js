// The heading of a page, and what the page is for.

import { h } from "./dom.js";

export function pageHead(title, ...lead) {
  return h("div", { class: "step-head" }, h("h1", {}, title), h("p", { class: "lead" }, ...lead));
}
