// What can be taken away of a release.

import { api } from "../core/api.js";
import { session } from "../core/session.js";
import { h } from "../ui/dom.js";

const DOWNLOADS = [
  ["csv", "Numbers", "CSV"],
  ["picture/png", "Picture", "PNG, for a page or a slide"],
  ["picture/svg", "Picture", "SVG, sharp at any size"],
  ["picture/pdf", "Picture", "PDF, for print"],
  ["file", "Release file", ".cloak, to check and to ask"],
  ["report", "Report", "one HTML page to pass on"],
  ["script", "Script", ".py"],
];

const REDO = { custodian: "that redoes it", analyst: "that reads it and predicts" };

export function downloads(id) {
  const redo = REDO[session.get().me?.role] ?? "";
  const hint = h("p", { class: "hint", hidden: true }, "Pictures show the map as you chose it above.");
  const root = h(
    "section",
    { class: "card" },
    h("h2", {}, "Take it with you"),
    h(
      "ul",
      { class: "downloads" },
      DOWNLOADS.map(([what, label, sub]) =>
        h(
          "li",
          {},
          h(
            "a",
            { href: api.download(id, what), download: "", class: "download", "data-what": what },
            h("b", {}, label),
            h("span", {}, sub, what === "script" ? ` ${redo}` : null),
          ),
        ),
      ),
    ),
    hint,
  );
  // Pictures are of the map that is looked at.
  root.follow = (asked) => {
    hint.hidden = false;
    for (const link of root.querySelectorAll("[data-what^=picture]")) link.href = api.download(id, link.dataset.what, asked);
  };
  return root;
}
