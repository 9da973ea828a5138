// The ledger: what is left for whom, what was spent, and whether the chain holds.

import { api } from "../core/api.js";
import { datasetForm } from "../ui/dataset_form.js";
import { fill, h } from "../ui/dom.js";
import { chip, empty, note, sentence } from "../ui/notes.js";
import { pageHead } from "../ui/page_head.js";
import { readOnlyNote } from "../ui/read_only_note.js";
import { tip } from "../ui/tip.js";
import { datasetCard } from "./dataset_card.js";
import { ledgerEntries } from "./ledger_entries.js";

export async function budgetView(root) {
  const box = h("div", {});
  root.append(
    pageHead(
      "Budget",
      "What was spent about each set of people, by whom, and what is left. Entries can only be added, never changed.",
      tip("ledger"),
    ),
    box,
  );
  await fillBudget(box);
}

async function fillBudget(box) {
  const ledger = await api.ledger();
  fill(
    box,
    ledger.read_only ? readOnlyNote(ledger) : null,
    chain(ledger),
    ledger.problem && !ledger.read_only ? note("bad", h("p", {}, sentence(ledger.problem))) : null,
    datasets(ledger, () => fillBudget(box)),
    ledgerEntries(ledger.entries),
    ledger.read_only
      ? null
      : h(
          "details",
          { class: "card more" },
          h("summary", {}, "Add a data set"),
          datasetForm("", () => fillBudget(box)),
        ),
  );
}

function chain(ledger) {
  return h(
    "p",
    { class: "badges" },
    ledger.verified ? chip("good", "✓ chain verified") : chip("bad", "not verified"),
    tip("hash chain"),
    ledger.head && ledger.verified
      ? h(
          "span",
          { class: "hint" },
          "head ",
          h("code", { class: "hash whole" }, String(ledger.head)),
          " – note it somewhere else now and then",
        )
      : null,
  );
}

function datasets(ledger, changed) {
  if (ledger.datasets.length)
    return h(
      "ul",
      { class: "entries" },
      ledger.datasets.map((entry) => datasetCard(entry, ledger.read_only, changed)),
    );
  return ledger.read_only
    ? null
    : empty(
        "No data set yet",
        "A data set is a set of people, with one budget for everything that is ever released about them. Create it below, or at the release step.",
      );
}
