// The kernel in plain fields, for those who do not write kernels.

import { draft } from "../core/draft.js";
import { columnsOf, inputsOf, kernelOf, outputOf } from "../core/draft_parts.js";
import { h } from "../ui/dom.js";
import { checkbox, field, numberInput } from "../ui/forms.js";
import { tip } from "../ui/tip.js";

const FAMILIES = [
  ["EQ", "very smooth"],
  ["Matern52", "smooth"],
  ["Matern32", "somewhat rough"],
  ["Matern12", "rough"],
];

const MOVES = {
  real: "How far does the curve move? (std)",
  count: "How far does f move? (std) 0.7 doubles or halves the rate.",
  chance: "How far does f move? (std) 1 makes 50 % into 84 or 16 %.",
};

export function kernelFields() {
  const d = draft.get();
  const names = inputsOf(d);
  const columns = columnsOf(d);
  const written = h("code", { class: "written" });
  const say = () => {
    written.textContent = kernelOf(draft.get()) ?? "…";
  };
  const set = (name) => (value) => {
    draft.set({ [name]: value });
    say();
  };
  const setScale = (place) => (value) => {
    const all = [...draft.get().lengthscales];
    all[place] = value;
    set("lengthscales")(all);
  };
  say();
  return [
    h(
      "div",
      { class: "field" },
      h(
        "div",
        { class: "field-label" },
        h("label", { htmlFor: "family" }, "How smooth is the curve?"),
        tip("kernel"),
      ),
      h(
        "select",
        { id: "family", onchange: (event) => set("family")(event.target.value) },
        FAMILIES.map(([value, words]) =>
          h("option", { value, selected: value === d.family }, `${words} (${value})`),
        ),
      ),
    ),
    h(
      "div",
      { class: "pair" },
      names.map((name, place) =>
        columns[place].kind === "level"
          ? null
          : field(
              names.length === 1 ? "Lengthscale" : `Lengthscale of ${name}`,
              numberInput(d.lengthscales[place], setScale(place), { id: `lengthscale-${place}` }),
              {
                tip: tip("lengthscale"),
                hint: `Over how much ${name} does it change?`,
                suffix: columns[place].kind === "date" ? "days" : name,
              },
            ),
      ),
      field("Spread", numberInput(d.spread, set("spread"), { id: "spread" }), {
        tip: d.outcome === "real" ? tip("spread") : null, // which speaks of the outcome's unit
        hint: MOVES[d.outcome] ?? MOVES.chance,
        suffix: d.outcome === "real" ? outputOf(d) : null,
      }),
    ),
    checkbox("The level is unknown: allow for a wide constant", d.level, set("level")),
    h("p", { class: "hint as-text" }, "As text: ", written),
  ];
}
