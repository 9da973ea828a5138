// Where one is on the way to a release, and which steps are open.

import { h } from "../ui/dom.js";

export function stepper(steps, current, furthest, seen) {
  return h(
    "nav",
    { class: "stepper", "aria-label": "Steps of a release" },
    h(
      "p",
      { class: "stepper-words" },
      `Step ${current + 1} of ${steps.length}: `,
      h("b", {}, steps[current].name),
    ),
    h(
      "ol",
      {},
      steps.map((step, place) => {
        const state =
          place === current
            ? "now"
            : place > furthest
              ? "shut"
              : place < Math.max(seen, current)
                ? "done"
                : "open";
        const inner = [
          h("span", { class: "step-number", "aria-hidden": "true" }, state === "done" ? "✓" : place + 1),
          h("span", { class: "step-name" }, step.name),
        ];
        const label = `${place + 1}. ${step.name}${state === "done" ? ", done" : state === "shut" ? ", not yet open" : ""}`;
        return h(
          "li",
          { class: state },
          state === "shut"
            ? h(
                "span",
                { class: "step-link", "aria-label": label, role: "link", "aria-disabled": "true" },
                inner,
              )
            : h(
                "a",
                {
                  class: "step-link",
                  href: `#/new/${step.id}`,
                  "aria-label": label,
                  "aria-current": place === current ? "step" : null,
                },
                inner,
              ),
        );
      }),
    ),
  );
}
