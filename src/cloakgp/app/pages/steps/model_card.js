// Whether the model is learned, which is the default, or said. `changed` is told when it is the other one.

import { draft } from "../core/draft.js";
import { canLearn, mostLearned } from "../core/draft_parts.js";
import { h } from "../ui/dom.js";
import { choice } from "../ui/forms.js";
import { tip } from "../ui/tip.js";

const MODELS = [
  ["learn", "Learn it, privately (recommended)"],
  ["kernel", "I describe it"],
];
const WORDS = {
  learn:
    "How smooth the curve is, how far it moves and how noisy outcomes are is learned step by step, all under your one promise. Nothing else must be known.",
  kernel: "You say what you expect before seeing any outcome. Good if you know it well, and no better than your guess if you do not.",
};

export function modelCard(changed) {
  const d = draft.get();
  const words = h("p", { class: "hint", "aria-live": "polite" }, WORDS[d.model]);
  const take = (model) => {
    draft.set({ model });
    words.textContent = WORDS[model];
    changed();
  };
  const options = MODELS.map(([value, text]) => [value, text, value === "learn" && !canLearn(d)]);
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "How is the curve modelled?", tip("learned model")),
    choice("Model", options, d.model, take, { hideLegend: true }),
    words,
    canLearn(d)
      ? null
      : h("p", { class: "hint warn" }, `A model can be learned of at most ${mostLearned()} inputs.`),
  );
}
