// Why nothing can be spent now, and what to do.

import { h } from "./dom.js";
import { note, sentence } from "./notes.js";

export function readOnlyNote(ledger) {
  return note(
    "bad",
    h("h2", {}, "Read-only: nothing can be spent"),
    h("p", {}, sentence(ledger.problem)),
    h("p", {}, sentence(ledger.remedy)),
    h("p", {}, "Releases, downloads and predictions work as before."),
  );
}
