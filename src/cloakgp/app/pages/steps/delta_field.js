// Delta, with a word if it is large for so many rows. The safe one is filled in, and follows the data until another
// is typed.

import { draft } from "../core/draft.js";
import { count, number } from "../core/format.js";
import { deltaOf, safeDelta, sizeOf } from "../core/protection.js";
import { button } from "../ui/buttons.js";
import { fill, h } from "../ui/dom.js";
import { field, numberInput } from "../ui/forms.js";
import { tip } from "../ui/tip.js";

const isOfPeople = (d) => d.protect === "people" || (d.protect === "rows" && Boolean(d.who));

// Why this number is filled in.
const hint = (d) =>
  `How likely the promise may fail.${sizeOf(d) ? ` If you do not know better, leave ${safeDelta(d)}: the power of ten below one over ten times ${count(sizeOf(d))}, the number of ${isOfPeople(d) ? "people" : "rows"}.` : ""}`;

export function deltaField() {
  const advice = h("div", {});
  const d = draft.get();
  const take = (value) => {
    draft.set({ delta: value });
    say();
  };
  const input = numberInput(d.delta || safeDelta(d), take, { id: "delta", placeholder: safeDelta(d) });
  const delta = field("δ, delta", input, { tip: tip("delta"), hint: hint(d) });

  function say() {
    const now = draft.get();
    const value = deltaOf(now);
    const rows = sizeOf(now);
    delta.fail(
      value === null || value <= 0 || value >= 1 ? "A number between 0 and 1, such as 0.0001." : null,
    );
    fill(
      advice,
      rows && value * rows > 1
        ? h(
            "p",
            { class: "hint warn" },
            `A weak promise to ${count(rows)}: above ${number(1 / rows, 2)} it would be kept even by publishing one of them, drawn by lot. `,
            button("Use a safe one", useSafe, { class: "button small" }),
          )
        : null,
    );
  }

  function useSafe() {
    input.value = safeDelta(draft.get());
    take("");
  }

  say();
  return [delta, advice];
}
