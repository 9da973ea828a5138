// The last step before the spend: why, what about missing outcomes, and a name to type.

import { fill, h } from "../ui/dom.js";
import { choice, field, textInput } from "../ui/forms.js";
import { chip, problem } from "../ui/notes.js";
import { progressLine } from "../ui/progress_line.js";
import { tip } from "../ui/tip.js";

const MISSING = [
  ["error", "stop, spend nothing"],
  ["midpoint", "count as the middle of the bounds"],
];

// What programs say by a word is a button here.
const inWordsOfThePage = (error) => String(error?.message ?? error).replace("missing = midpoint", `“${MISSING[1][1]}”`);

const LABELS = [
  ["title", "Title", "Above pictures and the report, such as: Heights of !Kung people by age."],
  ["units", "Unit of the outcome", "Such as cm, or £."],
  ["source", "Source", "Where the data are from."],
  ["date", "Date of the data", "Such as 1967 to 1969."],
];

// Fills `form`, {why, title, units, source, date, missing, confirm}. `spend(progress)` releases, and tells how far it is; if it fails, that is said here. `reads` is what is read.
export function confirmForm(form, dataset, reads, spend) {
  form.confirm = "";
  const trouble = h("div", {});
  const submit = h("button", { type: "submit", class: "button spend", disabled: true }, "Release now");
  const progress = progressLine(() => progress.stop?.(), "Stop");
  let busy = false;

  const set = (name) => (value) => {
    form[name] = value;
    submit.disabled = busy || form.confirm !== dataset;
  };

  async function onsubmit(event) {
    event.preventDefault();
    if (busy || form.confirm !== dataset) return;
    busy = submit.disabled = true;
    submit.textContent = "Releasing…";
    fill(trouble);
    try {
      await spend(progress);
      return;
    } catch (error) {
      fill(trouble, problem(inWordsOfThePage(error)));
    }
    busy = false;
    submit.disabled = form.confirm !== dataset;
    submit.textContent = "Release now";
  }

  return [
    h("h2", {}, "The one private step ", chip("private", `reads the ${reads}`)),
    h(
      "form",
      { novalidate: true, onsubmit },
      field("Why", textInput(form.why, set("why"), { id: "why", maxlength: "200" }), {
        hint: "For the ledger, optional. Write nothing here that you learned from what is private.",
      }),
      h(
        "details",
        { class: "more" },
        h("summary", {}, "Title, unit, source and date, for pictures and reports"),
        h("p", { class: "hint" }, "Optional and public. Kept in the release file; nobody checks them."),
        LABELS.map(([name, label, hint]) =>
          field(label, textInput(form[name], set(name), { id: `label-${name}`, maxlength: "200" }), { hint }),
        ),
      ),
      choice("Rows without an outcome", MISSING, form.missing, set("missing"), {
        tip: tip("missing outcomes"),
      }),
      field(`Type ${dataset} to confirm`, textInput("", set("confirm"), { id: "confirm" }), {
        hint: "The name of the data set that pays, letter by letter.",
      }),
      trouble,
      progress,
      submit,
    ),
  ];
}
