// One person: which column tells whose a row is, and how many people that makes.

import { draft } from "../core/draft.js";
import { count } from "../core/format.js";
import { fill, h } from "../ui/dom.js";
import { whoField } from "./who_field.js";

export function peopleCard() {
  const found = h("p", { class: "hint", role: "status" });
  const choose = (who) => draft.set({ who: who || null, people: null });
  const hint = "Its ids are public; only which rows belong together is kept of them.";

  function say(d) {
    fill(found, d.people ? words(d.people) : "");
  }

  const stop = draft.subscribe(say);
  say(draft.get());
  const root = h("section", { class: "card narrow" }, h("h2", {}, "Whose is a row?"), whoField([], hint, choose), found);
  root.done = stop;
  return root;
}

function words({ people, rows, most_rows: most }) {
  if (most === 1) return `${count(people)} people with one row each: this protects what “One outcome per row” does.`;
  return `${count(people)} people have ${count(rows)} rows; nobody has more than ${count(most)}. The more rows one person has, the more noise hides them.`;
}
