// Plans or releases, one card for each.

import { number, percent, when } from "../core/format.js";
import { link } from "../ui/buttons.js";
import { h } from "../ui/dom.js";
import { chip } from "../ui/notes.js";

export function entryList(items, path, kind) {
  const href = (item) => `#/${path}/${encodeURIComponent(item.id)}`;
  return h(
    "ul",
    { class: "entries" },
    items.map((item) => entry(item, href(item), kind)),
  );
}

function entry(item, href, kind) {
  const s = item.settings;
  const summary = item.error_summary ?? item.summary ?? {};
  const what = item.error_summary ? "error" : "noise";
  return h(
    "li",
    { class: "card entry" },
    h(
      "div",
      {},
      h("h2", {}, link(item.name, href)),
      h("p", { class: "hint" }, `${when(item.created)}, ${item.by}`),
    ),
    h(
      "p",
      { class: "badges" },
      chip(kind, `ε ${number(s.epsilon)}`),
      chip("plain", `${s.output} by ${s.inputs.join(", ")}`),
      s.kind === "function" ? chip("plain", "whole function") : null,
      summary.median !== undefined
        ? chip(
            "plain",
            `${what} about ${number(summary.median, 3)}, ${percent(summary.median / summary.bounds_width)} of the bounds`,
          )
        : null,
    ),
  );
}
