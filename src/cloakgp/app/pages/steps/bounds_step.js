// Step 3: where outcomes are known to lie. Typed, without a default.

import { draft } from "../core/draft.js";
import { boundsOf, classNamesOf, outputOf } from "../core/draft_parts.js";
import { number } from "../core/format.js";
import { missing } from "../core/missing.js";
import { isChance } from "../core/outcomes.js";
import { numberTrouble, typed } from "../core/typed.js";
import { fill, h } from "../ui/dom.js";
import { field, numberInput } from "../ui/forms.js";
import { chip, note } from "../ui/notes.js";
import { tip } from "../ui/tip.js";

export const boundsStep = {
  id: "bounds",
  name: "Bounds",
  title: "Bounds of the outcome",
  lead: () =>
    isChance(draft.get().outcome)
      ? "Outcomes that are told as probabilities need none."
      : `Between which two numbers is every ${outputOf(draft.get()) ?? "outcome"} known to lie, by public knowledge alone?`,
  check: missing.bounds,
  render(root) {
    if (isChance(draft.get().outcome)) {
      root.append(chances(draft.get()));
      return;
    }
    const output = outputOf(draft.get());
    const scale = h("div", { class: "scale-words", "aria-live": "polite" });
    const change = (name) => (value) => {
      draft.set({ [name]: value });
      show();
    };
    const lower = field(
      `Smallest possible ${output}`,
      numberInput(draft.get().lower, change("lower"), { id: "lower" }),
    );
    const upper = field(
      `Largest possible ${output}`,
      numberInput(draft.get().upper, change("upper"), { id: "upper" }),
    );

    function show() {
      const d = draft.get();
      const [low, high] = [typed(d.lower), typed(d.upper)];
      lower.fail(numberTrouble(d.lower));
      const wrongWay = low !== null && high !== null && low >= high;
      upper.fail(numberTrouble(d.upper) ?? (wrongWay ? "This must be above the smallest one." : null));
      const both = boundsOf(d);
      fill(
        scale,
        both
          ? [
              h(
                "div",
                { class: "ruler", "aria-hidden": "true" },
                h("span", {}, number(both[0])),
                h("i", {}),
                h("span", {}, number(both[1])),
              ),
              h(
                "p",
                {},
                `One outcome could move a sum by at most ${number(both[1] - both[0])}. The noise is proportional to that: bounds half as wide need half the noise. Anything outside counts as the nearest bound.`,
              ),
            ]
          : null,
      );
    }

    root.append(
      h(
        "div",
        { class: "columns" },
        h(
          "section",
          { class: "card" },
          h("h2", {}, "The two numbers", tip("bounds")),
          h("div", { class: "pair" }, lower, upper),
          scale,
        ),
        h(
          "section",
          { class: "card" },
          h("h2", {}, "Why nothing is filled in"),
          h(
            "p",
            {},
            "The smallest and the largest number in your file belong to two people. Bounds are published, so taking them from the data would give those two away, and no noise would cover it.",
          ),
          h(
            "p",
            {},
            "Take them from the literature, from what is physically possible, or from older published tables. Too wide costs noise, too narrow bends the result, and neither weakens the promise.",
          ),
          note(
            "plain",
            h("p", {}, chip("public", "public"), " Bounds are part of the plan that everybody may see."),
          ),
        ),
      ),
    );
    show();
  },
};

function chances(d) {
  const several = d.outcome === "classes";
  const [low, high] = several ? ["0, never", "1, always"] : ["0, no", "1, yes"];
  const one = several ? `one of ${classNamesOf(d).join(", ")}` : "no or yes";
  return h(
    "section",
    { class: "card narrow" },
    h("h2", {}, several ? "From never to always" : "From no to yes", tip("bounds")),
    h("div", { class: "scale-words" }, h("div", { class: "ruler", "aria-hidden": "true" }, h("span", {}, low), h("i", {}), h("span", {}, high))),
    h("p", {}, `${outputOf(d)} is ${one} in every row. There is nothing to type here.`),
  );
}
