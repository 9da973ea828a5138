// Whose budget pays. `pick(dataset)` hears which, and of null while none is; `created()` that there is
// a new one.

import { api } from "../core/api.js";
import { datasetForm } from "../ui/dataset_form.js";
import { fill, h } from "../ui/dom.js";
import { choice } from "../ui/forms.js";
import { problem } from "../ui/notes.js";
import { readOnlyNote } from "../ui/read_only_note.js";
import { tip } from "../ui/tip.js";

const NEW = "\u0000new";

export function payerCard(delta, pick, created) {
  const root = h("section", { class: "card" });

  async function load(chosen) {
    try {
      const ledger = await api.ledger();
      if (ledger.read_only) {
        fill(root, readOnlyNote(ledger));
        pick(null);
      } else show(ledger.datasets, chosen);
    } catch (error) {
      fill(root, problem(error));
    }
  }

  const fresh = () =>
    datasetForm(delta, async (name) => {
      await load(name);
      created();
    });

  function show(datasets, chosen = datasets.length ? null : NEW) {
    const creator = h("div", {});
    const choose = (name) => {
      fill(creator, name === NEW ? h("div", { class: "inset" }, fresh()) : null);
      pick(datasets.find((dataset) => dataset.name === name) ?? null);
    };
    const options = [
      ...datasets.map((dataset) => [dataset.name, dataset.unit ? `${dataset.name} (${dataset.unit})` : dataset.name]),
      [NEW, datasets.length ? "a new one" : "create the first one"],
    ];
    fill(
      root,
      h("h2", {}, "Whose budget pays?", tip("data set")),
      h(
        "p",
        { class: "hint" },
        "One budget for everything about the same people: every outcome, every version of the table.",
      ),
      choice("Data set in the ledger", options, chosen, choose, { hideLegend: true }),
      creator,
    );
    if (chosen) choose(chosen);
  }

  root.load = load;
  return root;
}
