// A data set in the ledger, and what is left for it.

import { number } from "../core/format.js";
import { budgetBar } from "../ui/budget_bar.js";
import { h } from "../ui/dom.js";
import { chip } from "../ui/notes.js";
import { facts } from "../ui/tables.js";
import { allowForm } from "./allow_form.js";

const UNFIXED = "the first release says";

const terms = (entry) =>
  facts([
    ["private columns", entry.private.join(", ") || UNFIXED],
    ...(entry.public.length ? [["published inputs", entry.public.join(", ")]] : []),
    ...(/person/.test(entry.unit ?? "") ? [["id column", entry.people ?? UNFIXED]] : []),
    ["largest δ of a release", number(entry.largest_delta)],
  ]);

// What is left is not shown of a ledger that is known to have forgotten something. `changed()` hears of new terms.
export function datasetCard(entry, forgetful, changed) {
  const left = entry.left_release;
  const spent = h(
    "span",
    {},
    forgetful ? "this ledger knows of " : "spent: ",
    h("b", {}, `ε ${number(entry.spent, 3)}`),
    ` at δ ${number(entry.delta)} in ${entry.events} step${entry.events === 1 ? "" : "s"}`,
  );
  return h(
    "li",
    { class: "card" },
    h(
      "div",
      { class: "panel-head" },
      h("h2", {}, entry.name),
      h(
        "span",
        { class: "badges" },
        chip("plain", entry.unit ? `protects ${entry.unit}` : "its first spend says whom it protects"),
        chip("plain", `ε ${number(entry.epsilon)}, δ ${number(entry.delta)} for ever`),
      ),
    ),
    terms(entry),
    forgetful
      ? h("p", { class: "before-after" }, spent)
      : [
          budgetBar(left, entry.epsilon),
          h(
            "p",
            { class: "before-after" },
            h("span", {}, "left for one more release: ", h("b", {}, `ε ${number(left, 3)}`)),
            h("span", {}, "or for a selection: ", h("b", {}, `ε ${number(entry.left_selection, 3)}`)),
            spent,
          ),
          h(
            "p",
            { class: "hint" },
            "Spends do not add up like money: two releases at ε = 0.5 cost less than one at ε = 1.",
          ),
          allowForm(entry.name, changed),
        ],
  );
}
