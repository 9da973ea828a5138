// The walk from a file to a release: where one is, what the step is for, and the buttons back and on.

import { draft } from "../core/draft.js";
import { missing } from "../core/missing.js";
import { go } from "../core/router.js";
import { button } from "../ui/buttons.js";
import { fill, h } from "../ui/dom.js";
import { pageHead } from "../ui/page_head.js";
import { boundsStep } from "./bounds_step.js";
import { dataStep } from "./data_step.js";
import { modelStep } from "./model_step.js";
import { previewStep } from "./preview_step.js";
import { privacyStep } from "./privacy_step.js";
import { releaseStep } from "./release_step.js";
import { resultsStep } from "./results_step.js";
import { stepper } from "./stepper.js";
import { whoStep } from "./who_step.js";

const STEPS = [dataStep, whoStep, boundsStep, modelStep, privacyStep, previewStep, releaseStep, resultsStep];

// The first step that is not done: no later one can be opened.
function reached(d) {
  const open = ["data", "who", "bounds", "model", "budget"].findIndex((name) => missing[name](d) !== null);
  if (open >= 0) return open;
  if (d.release) return 7;
  return d.plan ? 6 : 5;
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
  const progress = (d) => stepper(STEPS, place, reached(d), d.seen);
  const steps = h("div", {}, progress(draft.get()));
  const trouble = h("p", { class: "field-error foot-error", role: "alert" });
  const content = h("div", { class: "step-content" });
  const working = h("div", {});
  const context = {
    fail: (text) => {
      trouble.textContent = text ?? "";
    },
    // While something is worked out: how far it is, and no button but the one to stop it.
    busy: (line) => {
      fill(working, line);
      for (const one of buttons.querySelectorAll("button")) one.disabled = Boolean(line);
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
    pageHead(step.title, step.lead()),
    step.nextText === null
      ? h("div", {}, content, trouble, place < 7 ? buttons : null)
      : h("form", { class: "step-form", novalidate: true, onsubmit: advance }, content, trouble, working, buttons),
  );
  const stop = draft.subscribe((d) => {
    fill(steps, progress(d));
    if (trouble.textContent && !(step.check?.(d) ?? null)) context.fail(null);
  });
  const done = step.render(content, context);
  return () => {
    stop();
    if (typeof done === "function") done();
  };
}
