// Step 2: who is protected. Nothing is chosen beforehand, and nothing of the table is read until it is.

import { draft } from "../core/draft.js";
import { inputsOf, outputOf } from "../core/draft_parts.js";
import { missing } from "../core/missing.js";
import { hidesInputs, whoColumns } from "../core/protection.js";
import { button } from "../ui/buttons.js";
import { fill, h } from "../ui/dom.js";
import { note, problem } from "../ui/notes.js";
import { boxCard } from "./box_card.js";
import { peopleCard } from "./people_card.js";
import { publicInputs } from "./public_inputs.js";
import { readTable } from "./read_table.js";
import { unitCards } from "./unit_cards.js";
import { unitCosts } from "./unit_costs.js";

let reading = null; // what is public of the table, while it is read

export const whoStep = {
  id: "who",
  name: "Protection",
  title: "Who is protected?",
  lead: () => `What must nobody be able to find out from what is published about ${outputOf(draft.get())}?`,
  check: missing.who,
  ready: () => reading,
  render(root) {
    const more = h("div", {});
    const trouble = h("div", {});
    const cards = unitCards(choose);
    const costs = unitCosts(cards.cost);
    const table = readTable((error) => fill(trouble, error ? problem(error, wayOut(error)) : null));
    let shown = null;

    function choose(protect) {
      if (protect === draft.get().protect) return;
      const who = protect === "people" ? (whoColumns(draft.get())[0] ?? null) : null;
      const unread = protect === "rows" ? { facts: null } : {}; // what is private is not kept either
      draft.set({ protect, who, people: null, given: null, lengthscales: [], ownPoints: "", ...unread });
      show();
    }

    function show() {
      const d = draft.get();
      shown?.done?.();
      shown = d.protect === "people" ? peopleCard() : d.protect === "rows" ? boxCard() : null;
      fill(trouble);
      fill(more, shown, d.protect && !hidesInputs(d) ? publicInputs() : null);
    }

    const stop = draft.subscribe(() => {
      reading = table.follow();
      costs.follow();
    });
    root.append(hint(draft.get()), cards, trouble, more);
    show();
    reading = table.follow();
    costs.follow();
    return () => {
      stop();
      shown?.done?.();
      table.done();
      costs.done();
    };
  },
};

// Inputs are public, so rows that lack one may be left out.
function wayOut(error) {
  if (error.code === "missing_inputs")
    return h("p", {}, button("Leave these rows out", () => draft.set({ dropMissing: true, facts: null })));
  const named = /say that it is a category: (.+)\.$/.exec(error.message)?.[1];
  if (!named || !inputsOf(draft.get()).includes(named)) return null;
  const take = () => draft.set({ categories: [...draft.get().categories, named], facts: null });
  return h("p", {}, button(`${named} is a category`, take));
}

// By the name of a column alone.
function hint(d) {
  const found = whoColumns(d);
  if (!found.length) return h("div", {});
  const names = found.join(", ");
  return note(
    "warn",
    h(
      "p",
      {},
      h("b", {}, names),
      ` ${found.length === 1 ? "sounds" : "sound"} like whose a row is. If somebody has several rows, protect them together: a promise about one row would be too little for them.`,
    ),
  );
}
