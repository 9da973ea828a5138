// What the noise is shaped for. `changed` is told when the kind of release is another one.

import { draft } from "../core/draft.js";
import { session } from "../core/session.js";
import { h } from "../ui/dom.js";
import { choice } from "../ui/forms.js";
import { tip } from "../ui/tip.js";

const KINDS = [
  ["predictions", "predictions at these points"],
  ["function", "the whole function"],
];

export function noiseShape(changed) {
  const d = draft.get();
  const { design, designs, kind } = session.get().defaults;
  return h(
    "details",
    { class: "more", open: d.design !== design || d.kind !== kind },
    h("summary", {}, "How the noise is shaped"),
    h(
      "div",
      { class: "field" },
      h("div", { class: "field-label" }, h("label", { htmlFor: "design" }, "Design"), tip("design")),
      h(
        "select",
        {
          id: "design",
          disabled: d.kind === "function",
          onchange: (event) => draft.set({ design: event.target.value }),
        },
        Object.entries(designs).map(([value, words]) =>
          h("option", { value, selected: value === d.design }, `${value}: ${words}`),
        ),
      ),
    ),
    choice(
      "Kind of release",
      KINDS,
      d.kind,
      (value) => {
        draft.set({ kind: value });
        changed();
      },
      { tip: tip("whole function") },
    ),
  );
}
