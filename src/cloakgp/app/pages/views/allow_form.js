// More private columns that a data set's budget pays for.

import { api } from "../core/api.js";
import { levelsOf } from "../core/draft_parts.js";
import { fill, h } from "../ui/dom.js";
import { field, textInput } from "../ui/forms.js";
import { problem } from "../ui/notes.js";

export function allowForm(dataset, done) {
  const typed = { columns: "", why: "" };
  const trouble = h("div", {});
  const set = (name) => (value) => {
    typed[name] = value;
  };

  async function onsubmit(event) {
    event.preventDefault();
    try {
      await api.allowColumns(dataset, levelsOf(typed.columns), typed.why);
      await done();
    } catch (error) {
      fill(trouble, problem(error));
    }
  }

  return h(
    "details",
    { class: "more" },
    h("summary", {}, "Add private columns"),
    h(
      "form",
      { novalidate: true, onsubmit },
      field("Private columns", textInput("", set("columns")), {
        hint: "Names with commas between them. The same budget pays for them, and none of them can be a public input. It costs nothing, and cannot be taken back.",
      }),
      field("Why", textInput("", set("why"), { maxlength: "200" }), { hint: "For the ledger, optional." }),
      trouble,
      h("button", { type: "submit", class: "button" }, "Add"),
    ),
  );
}
