// A new data set in the ledger: a name for a set of people, and their budget for ever.

import { api } from "../core/api.js";
import { levelsOf } from "../core/draft_parts.js";
import { typed } from "../core/typed.js";
import { fill, h } from "./dom.js";
import { choice, field, numberInput, textInput } from "./forms.js";
import { note, problem } from "./notes.js";
import { tip } from "./tip.js";

const UNITS = [
  ["", "the first release says"],
  ["one row", "one row"],
  ["one person", "one person"],
  ["one whole row", "one whole row"],
  ["one person's whole rows", "one person’s whole rows"],
];

// What of the terms was typed.
const termsOf = (fresh) => ({
  ...(fresh.unit ? { unit: fresh.unit } : {}),
  ...(fresh.people.trim() ? { people: fresh.people.trim() } : {}),
  ...(fresh.columns.trim() ? { private: levelsOf(fresh.columns) } : {}),
  ...(fresh.largest.trim() ? { largest_delta: typed(fresh.largest) } : {}),
});

export function datasetForm(delta, done) {
  const fresh = { name: "", epsilon: "", delta, why: "", unit: "", people: "", columns: "", largest: "" };
  const trouble = h("div", {});
  const set = (name) => (value) => {
    fresh[name] = value;
  };

  async function create(event) {
    event.preventDefault();
    const name = fresh.name.trim();
    const [epsilon, share] = [typed(fresh.epsilon), typed(fresh.delta)];
    if (!name || !(epsilon > 0) || !(share > 0 && share < 1)) {
      const lack = "A data set needs a name, an ε above 0 and a δ between 0 and 1.";
      fill(trouble, note("bad", h("p", {}, lack)));
      return;
    }
    try {
      await api.createDataset({ name, epsilon, delta: share, pure: 0, why: fresh.why, ...termsOf(fresh) });
      await done(name);
    } catch (error) {
      fill(trouble, problem(error));
    }
  }

  return h(
    "form",
    { novalidate: true, onsubmit: create },
    field("Name of the data set", textInput("", set("name"), { id: "dataset-name", maxlength: "80" }), {
      tip: tip("data set"),
      hint: "A name for these people, such as “heights 1969”. It is typed again to confirm a release.",
    }),
    h(
      "div",
      { class: "pair" },
      field("ε for ever", numberInput("", set("epsilon"), { id: "dataset-epsilon" }), {
        tip: tip("budget"),
        hint: "All releases together.",
      }),
      field("δ for ever", numberInput(delta, set("delta"), { id: "dataset-delta" }), {
        tip: tip("delta"),
        hint: "All releases together.",
      }),
    ),
    field("Why this budget", textInput("", set("why"), { id: "dataset-why", maxlength: "200" }), {
      hint: "For the ledger, optional.",
    }),
    h(
      "details",
      { class: "more" },
      h("summary", {}, "Terms: whom it protects, and which columns"),
      h(
        "p",
        { class: "hint" },
        "What differs is refused before anything is read. What is left open here, the first release fixes.",
      ),
      choice("Protects", UNITS, "", set("unit")),
      field("Id column", textInput("", set("people"), { id: "dataset-people", maxlength: "200" }), {
        hint: "Where people are protected: the column that identifies the person.",
      }),
      field("Private columns", textInput("", set("columns"), { id: "dataset-private" }), {
        hint: "All that may be read privately, with commas between them. None of them can be a public input.",
      }),
      field("Largest δ of a release", numberInput("", set("largest"), { id: "dataset-largest" }), {
        hint: "The δ above, if nothing is typed.",
      }),
    ),
    trouble,
    h("button", { type: "submit", class: "button" }, "Create the data set"),
    h("p", { class: "hint" }, "This cannot be changed afterwards, but for private columns that are added."),
  );
}
