// Which column tells whose a row is.

import { draft } from "../core/draft.js";
import { outputOf } from "../core/draft_parts.js";
import { whoColumns } from "../core/protection.js";
import { h } from "../ui/dom.js";
import { field } from "../ui/forms.js";

// `except` are columns that it cannot be.
export function whoField(except, hint, changed) {
  const d = draft.get();
  const columns = d.columns.filter((name) => name !== outputOf(d) && !except.includes(name));
  const likely = whoColumns(d);
  const ordered = [...columns].sort((one, other) => likely.includes(other) - likely.includes(one));
  const select = h(
    "select",
    { id: "who", onchange: (event) => changed(event.target.value) },
    h("option", { value: "", selected: !d.who }, "choose a column"),
    ordered.map((name) => h("option", { value: name, selected: name === d.who }, name)),
  );
  return field("Column that tells whose a row is", select, { hint });
}
