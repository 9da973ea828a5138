// Delta, with a word if it is large for so many rows.

import { draft } from "../core/draft.js";
import { count, number } from "../core/format.js";
import { sizeOf } from "../core/protection.js";
import { safeDelta } from "../core/starting_values.js";
import { typed } from "../core/typed.js";
import { button } from "../ui/buttons.js";
import { fill, h } from "../ui/dom.js";
import { field, numberInput } from "../ui/forms.js";
import { tip } from "../ui/tip.js";

// Why this number is filled in.
const hint = (n) =>
  `How likely the promise may fail.${n ? ` Filled in is ${safeDelta(n)}: the power of ten below one over ten times ${count(n)}, the number of ${isOfPeople(draft.get()) ? "people" : "rows"}.` : ""}`;
const isOfPeople = (d) => d.protect === "people" || (d.protect === "rows" && Boolean(d.who));

export function deltaField() {
  const advice = h("div", {});
  const input = numberInput(
    draft.get().delta,
    (value) => {
      draft.set({ delta: value });
      say();
    },
    { id: "delta" },
  );
  const delta = field("δ, delta", input, {
    tip: tip("delta"),
    hint: hint(sizeOf(draft.get())),
  });

  function say() {
    const d = draft.get();
    const value = typed(d.delta);
    const rows = sizeOf(d);
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
            button("Use a safe one", () => useSafe(rows), { class: "button small" }),
          )
        : null,
    );
  }

  function useSafe(rows) {
    input.value = safeDelta(rows);
    draft.set({ delta: input.value });
    say();
  }

  say();
  return [delta, advice];
}
