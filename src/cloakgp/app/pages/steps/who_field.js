// Which column tells whose a row is.

import { draft } from "../core/draft.js";
import { outputOf } from "../core/draft_parts.js";
import { looksLikeWho } from "../core/protection.js";
import { h } from "../ui/dom.js";
import { field } from "../ui/forms.js";

// `except` are columns that it cannot be.
export function whoField(except, hint, changed) {
  const d = draft.get();
  const columns = d.columns.filter((name) => name !== outputOf(d) && !except.includes(name));
  const likely = [...columns.filter(looksLikeWho), ...columns.filter((name) => !looksLikeWho(name))];
  const select = h(
    "select",
    { id: "who", onchange: (event) => changed(event.target.value) },
    h("option", { value: "", selected: !d.who }, "choose a column"),
    likely.map((name) => h("option", { value: name, selected: name === d.who }, name)),
  );
  return field("Column that tells whose a row is", select, { hint });
}
