// What a release would cost, and leave. `again(wanted)` hears whether to pay once more for a known one.

import { number } from "../core/format.js";
import { budgetBar } from "../ui/budget_bar.js";
import { link } from "../ui/buttons.js";
import { h } from "../ui/dom.js";
import { checkbox } from "../ui/forms.js";
import { note, sentence } from "../ui/notes.js";
import { facts } from "../ui/tables.js";
import { tip } from "../ui/tip.js";

// What would be read and promised: said before anybody agrees, whoever made the plan.
function readFacts({ reads, unit, epsilon, delta, lists }) {
  return facts([
    ["read privately", reads.private.join(", ")],
    ...(reads.public.length ? [["read and published", reads.public.join(", ")]] : []),
    ["protects", reads.people ? `${unit}, by the id column ${reads.people}` : unit],
    ["promise", `ε = ${number(epsilon)}, δ = ${number(delta)}`],
    ...(lists.length ? [["lists in the settings", lists.join(", ")]] : []),
  ]);
}

// The contents of the card.
export function quoteCard(quote, dataset, delta, again) {
  const before = quote.left_before?.release ?? 0;
  const after = quote.left_after?.release ?? 0;
  return [
    h("h2", {}, quote.fits ? "It fits into the budget" : "It does not fit into the budget", tip("ledger")),
    readFacts(quote),
    budgetBar(before, dataset.epsilon, quote.fits ? after : null),
    h(
      "p",
      { class: "before-after" },
      h("span", {}, "left before: ", h("b", {}, `ε ${number(before, 3)}`)),
      quote.fits ? h("span", {}, "left after: ", h("b", {}, `ε ${number(after, 3)}`)) : null,
      h("span", {}, "in all: ", h("b", {}, `ε ${number(dataset.epsilon)}`)),
    ),
    quote.fits
      ? h("p", { class: "hint" }, sentence(quote.words))
      : note(
          "bad",
          h("p", {}, sentence(quote.words)),
          h("p", {}, link("Choose a smaller ε", "#/new/budget"), " and look at the noise again."),
        ),
    quote.fits && !quote.known && dataset.delta !== delta ? otherDelta(quote, dataset) : null,
    quote.known ? knownNote(quote, again) : null,
  ];
}

function otherDelta(quote, dataset) {
  return h(
    "p",
    { class: "hint" },
    `The budget counts at its own δ of ${number(dataset.delta)}: there ε ${number(quote.spent_before, 3)} is spent now, and ε ${number(quote.spent_after, 3)} after this release. Spends do not add up like money.`,
  );
}

function knownNote(quote, again) {
  return note(
    "good",
    h(
      "p",
      {},
      "This plan was released for these people before. ",
      link("See that release", `#/releases/${encodeURIComponent(quote.known)}`),
      ": it costs nothing to look again.",
    ),
    quote.fits
      ? checkbox("Release it once more with fresh noise, and pay once more", false, again)
      : null,
  );
}
