// Whole rows: what is known of the inputs, from public knowledge alone; and whether people have several rows.

import { draft } from "../core/draft.js";
import { inputsOf } from "../core/draft_parts.js";
import { mostCells } from "../core/missing.js";
import { emptyExtent, extentOf, extentTrouble, whoColumns } from "../core/protection.js";
import { session } from "../core/session.js";
import { fill, h } from "../ui/dom.js";
import { checkbox, choice, dateInput, field, numberInput, textInput } from "../ui/forms.js";
import { tip } from "../ui/tip.js";
import { whoField } from "./who_field.js";
import { writtenFields } from "./written_fields.js";

const KINDS = [
  ["number", "a number"],
  ["date", "a date"],
  ["level", "a category"],
];

export function boxCard() {
  const d = draft.get();
  return h(
    "div",
    { class: "columns" },
    h(
      "section",
      { class: "card" },
      h("h2", {}, "The box", tip("box")),
      h(
        "p",
        { class: "hint" },
        "Where inputs can be, by public knowledge: it is published. Nothing is filled in, since nothing of the table is read. Whatever lies outside counts as at the edge.",
      ),
      inputsOf(d).map(extentFields),
      writtenFields(),
    ),
    togetherCard(),
  );
}

function extentFields(name) {
  const root = h("div", { class: "extent", role: "group", "aria-label": name });
  const cells = String(session.get().defaults.cells);
  const set = (changes) => {
    const now = draft.get();
    draft.set({ box: { ...now.box, [name]: { ...emptyExtent(), cells, ...now.box[name], ...changes } }, lengthscales: [] });
  };

  function show() {
    const extent = { ...extentOf(draft.get(), name) };
    if (extent.cells === "") extent.cells = cells;
    const change = (key) => (value) => {
      set({ [key]: value });
      trouble.textContent = "";
    };
    const trouble = h("p", { class: "field-error", "aria-live": "polite" });
    const leave = () => {
      trouble.textContent = extentTrouble(extentOf(draft.get(), name), mostCells()) ?? "";
    };
    const [end, isLevel] = [extent.kind === "date" ? dateInput : numberInput, extent.kind === "level"];
    const low = end(extent.low, change("low"), { id: `low-${name}` });
    const high = end(extent.high, change("high"), { id: `high-${name}`, onblur: leave });
    const per = numberInput(extent.cells, change("cells"), { id: `cells-${name}`, inputmode: "numeric", onblur: leave });
    const names = textInput(extent.names, change("names"), { id: `levels-${name}`, onblur: leave });
    fill(
      root,
      h("h3", {}, name),
      choice(`Kind of ${name}`, KINDS, extent.kind, chooseKind, { hideLegend: true }),
      isLevel
        ? field("Levels", names, { hint: "All that it can be, with commas: f, m" })
        : h(
            "div",
            { class: extent.kind === "date" ? "triple dates" : "triple" },
            field("From", low),
            field("To", high),
            field("Cells", per, { tip: tip("cells") }),
          ),
      trouble,
    );
  }

  function chooseKind(kind) {
    set({ kind, low: "", high: "" });
    show();
    root.querySelector("input:checked").focus();
  }

  show();
  return root;
}

// People and whole rows.
function togetherCard() {
  const fields = h("div", {});
  const set = (name) => (value) => draft.set({ [name]: value });

  function show() {
    const d = draft.get();
    fill(
      fields,
      d.who === null
        ? null
        : [
            whoField(inputsOf(d), "Private, too: it is read at the release, and not kept.", (who) => draft.set({ who })),
            h(
              "div",
              { class: "pair" },
              field("How many people", numberInput(d.nPeople, set("nPeople"), { id: "n-people", inputmode: "numeric" }), {
                hint: "Exactly. It is public; how many rows they have is not.",
              }),
              field("Rows of each, at most", numberInput(d.maxRows, set("maxRows"), { id: "max-rows", inputmode: "numeric" }), {
                hint: "Others are left out. The noise grows with it.",
              }),
            ),
          ],
    );
  }

  const several = (wanted) => {
    draft.set(wanted ? { who: whoColumns(draft.get())[0] ?? "" } : { who: null, nPeople: "", maxRows: "" });
    show();
  };
  show();
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Does anybody have several rows?", tip("one person's whole rows")),
    h("p", { class: "hint" }, "Without this, one whole row is hidden, and somebody with several rows less than that."),
    checkbox("Hide all rows of a person together", draft.get().who !== null, several),
    fields,
  );
}
