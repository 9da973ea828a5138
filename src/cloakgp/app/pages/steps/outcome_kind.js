// What the private outcome is. Said by whoever knows it, and never found out from its cells.

import { draft } from "../core/draft.js";
import { outputOf } from "../core/draft_parts.js";
import { fill, h } from "../ui/dom.js";
import { choice, field, textInput } from "../ui/forms.js";
import { tip } from "../ui/tip.js";

const KINDS = [
  ["real", "a number"],
  ["yes/no", "yes or no"],
  ["count", "a count"],
  ["classes", "one of several classes"],
];
const WORDS = {
  real: "Such as a height or a price.",
  "yes/no": "What is released is how likely yes is; no bounds are needed.",
  classes: "Such as car, bus or train. What is released is how likely each of them is; no bounds are needed.",
  count: "0, 1, 2, and so on, such as visits. What is released is how many to expect.",
};
const NO_KERNEL = { spread: "", scatter: "", level: null, mean: "", asText: false, kernelText: "", design: null, kind: null };
const UNSET = { model: null, lower: "", upper: "", ...NO_KERNEL, given: null, plan: null, release: null };

// All that the outcome may be. Nothing is filled in: a class that only one row has would tell of it.
function classNames(set) {
  const area = h("textarea", {
    id: "class-names",
    rows: "4",
    spellcheck: "false",
    placeholder: "car\nbus\ntrain",
    oninput: (event) => set(event.target.value),
  });
  area.value = draft.get().classNames;
  return field("The classes, as the table writes them", area, {
    hint: "All that it can be, from public knowledge: one on each line, or with commas. They are published, and never read from the column; a cell that holds none of them counts as missing.",
  });
}

export function outcomeKind() {
  const output = outputOf(draft.get());
  if (!output) return null;
  const words = h("p", { class: "hint", "aria-live": "polite" });
  const say = () => fill(words, WORDS[draft.get().outcome]);
  const names = h("div", { class: "pair" });
  const set = (name) => (value) => draft.set({ [name]: value, plan: null, release: null });
  const show = () => {
    const { outcome, no, yes } = draft.get();
    say();
    names.className = outcome === "yes/no" ? "pair" : "";
    fill(
      names,
      outcome === "yes/no"
        ? [
            field("No is written as", textInput(no, set("no"), { id: "class-no", placeholder: "0 or false" })),
            field("Yes is written as", textInput(yes, set("yes"), { id: "class-yes", placeholder: "1 or true" })),
          ]
        : null,
      outcome === "classes" ? classNames(set("classNames")) : null,
    );
  };
  const take = (outcome) => {
    draft.set({ outcome, no: "", yes: "", classNames: "", ...UNSET });
    show();
  };
  show();
  return h(
    "div",
    { class: "outcome-kind" },
    choice(`What is ${output}?`, KINDS, draft.get().outcome, take, { tip: tip("kind of outcome") }),
    words,
    names,
  );
}
