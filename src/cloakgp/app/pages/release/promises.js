// What a release promises, and what it does not.

import { h } from "../ui/dom.js";
import { tip } from "../ui/tip.js";

export function promises(release) {
  return h(
    "div",
    { class: "columns" },
    h(
      "section",
      { class: "card" },
      h("h2", {}, "What is promised", tip("differential privacy")),
      h(
        "div",
        { class: "promise" },
        (release.promise ?? []).map((sentence) => h("p", {}, sentence)),
      ),
    ),
    h(
      "section",
      { class: "card" },
      h("h2", {}, "What is not promised"),
      h(
        "ul",
        { class: "plain" },
        (release.limits ?? []).map((sentence) => h("li", {}, sentence)),
      ),
    ),
  );
}
