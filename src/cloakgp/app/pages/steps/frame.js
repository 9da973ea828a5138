// The walk from a file to a release: where one is, what the step is for, and the buttons back and on.

import { go } from "../router.js";
import { missing } from "../settings.js";
import { draft } from "../store.js";
import { button, fill, h } from "../ui.js";
import { bounds } from "./bounds.js";
import { budget } from "./budget.js";
import { data } from "./data.js";
import { model } from "./model.js";
import { preview } from "./preview.js";
import { release } from "./release.js";
import { results } from "./results.js";

export const STEPS = [data, bounds, model, budget, preview, release, results];

// The first step that is not done: no later one can be opened.
function reached(d) {
  const open = ["data", "bounds", "model", "budget"].findIndex((name) => missing[name](d) !== null);
  if (open >= 0) return open;
  if (d.release) return 6;
  return d.plan ? 5 : 4;
}

function stepper(current, d) {
  const furthest = reached(d);
  return h(
    "nav",
    { class: "stepper", "aria-label": "Steps of a release" },
    h(
      "p",
      { class: "stepper-words" },
      `Step ${current + 1} of ${STEPS.length}: `,
      h("b", {}, STEPS[current].name),
    ),
    h(
      "ol",
      {},
      STEPS.map((step, place) => {
        const state =
          place === current
            ? "now"
            : place > furthest
              ? "shut"
              : place < Math.max(d.seen, current)
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

export function walk(root, { step: id }) {
  const place = STEPS.findIndex((step) => step.id === id);
  const furthest = reached(draft.get());
  if (place < 0 || place > furthest) {
    window.location.replace(`#/new/${STEPS[Math.max(0, Math.min(furthest, place < 0 ? 0 : place))].id}`);
    return null;
  }
  if (place > draft.get().seen) draft.set({ seen: place });
  const step = STEPS[place];
  const steps = h("div", {}, stepper(place, draft.get()));
  const trouble = h("p", { class: "field-error foot-error", role: "alert" });
  const content = h("div", { class: "step-content" });
  const context = {
    fail: (text) => {
      trouble.textContent = text ?? "";
    },
    on: () => go(`/new/${STEPS[place + 1].id}`),
  };

  async function advance(event) {
    event?.preventDefault();
    await step.ready?.();
    const lack = step.check?.(draft.get()) ?? null;
    context.fail(lack);
    if (lack) return;
    if (step.next) await step.next(context);
    else context.on();
  }

  const buttons = h(
    "div",
    { class: "step-buttons" },
    place > 0 && step.id !== "results"
      ? button("Back", () => go(`/new/${STEPS[place - 1].id}`))
      : h("span", {}),
    step.nextText === null
      ? null
      : h(
          "button",
          { type: "submit", class: "button primary" },
          step.nextText ?? `Next: ${STEPS[place + 1]?.name.toLowerCase()}`,
        ),
  );
  root.append(
    steps,
    h("div", { class: "step-head" }, h("h1", {}, step.title), h("p", { class: "lead" }, step.lead())),
    step.nextText === null
      ? h("div", {}, content, trouble, place < 6 ? buttons : null)
      : h("form", { class: "step-form", novalidate: true, onsubmit: advance }, content, trouble, buttons),
  );
  const stop = draft.subscribe((d) => {
    fill(steps, stepper(place, d));
    if (trouble.textContent && !(step.check?.(d) ?? null)) context.fail(null);
  });
  const done = step.render(content, context);
  return () => {
    stop();
    if (typeof done === "function") done();
  };
}
