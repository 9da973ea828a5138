// The slider for epsilon: equal steps multiply, and there are words at both ends.

import { draft } from "../core/draft.js";
import { number } from "../core/format.js";
import { typed } from "../core/typed.js";
import { h, newId } from "../ui/dom.js";
import { numberInput } from "../ui/forms.js";
import { tip } from "../ui/tip.js";

const LOWEST = -2;
const HIGHEST = 1;
const WEAK = 5; // above this, little is left of a promise

function epsilonWords(epsilon) {
  if (epsilon <= 0.1) return "very private: one person hardly shows at all";
  if (epsilon <= 0.5) return "strongly private";
  if (epsilon <= 1) return "private: a common choice";
  if (epsilon <= 3) return "somewhat private: ask yourself whether this is needed";
  if (epsilon <= 5) return "weakly private";
  return `barely private: a result may become ${number(Math.exp(epsilon), 3)} times as likely through one of those it is made to`;
}

export function epsilonSlider() {
  const id = newId("epsilon");
  const words = h("p", { class: "epsilon-words", "aria-live": "polite" });
  const slider = h("input", {
    type: "range",
    id,
    min: LOWEST,
    max: HIGHEST,
    step: "0.05",
    value: Math.log10(draft.get().epsilon),
    oninput: () => take(Number((10 ** Number(slider.value)).toPrecision(2)), slider),
  });
  const exact = numberInput(
    number(draft.get().epsilon),
    (text) => {
      const value = typed(text);
      if (value > 0) take(value, exact);
    },
    { "aria-label": "Epsilon as a number", id: `${id}-number` },
  );

  function take(epsilon, from) {
    draft.set({ epsilon });
    say(from);
  }

  function say(from) {
    const { epsilon } = draft.get();
    if (from !== slider) slider.value = Math.log10(epsilon);
    if (from !== exact) exact.value = number(epsilon);
    slider.setAttribute("aria-valuetext", `${number(epsilon, 3)}, ${epsilonWords(epsilon)}`);
    words.textContent = epsilonWords(epsilon);
    words.classList.toggle("weak", epsilon > WEAK);
    slider.style.setProperty("--at", `${(100 * (Math.log10(epsilon) - LOWEST)) / (HIGHEST - LOWEST)}%`);
  }

  say();
  return h(
    "div",
    { class: "epsilon" },
    h("div", { class: "field-label" }, h("label", { htmlFor: id }, "ε, epsilon"), tip("epsilon"), exact),
    slider,
    h(
      "div",
      { class: "ends" },
      h("span", {}, "very private", h("br"), h("small", {}, "much noise")),
      h("span", {}, "barely private", h("br"), h("small", {}, "little noise")),
    ),
    words,
  );
}
