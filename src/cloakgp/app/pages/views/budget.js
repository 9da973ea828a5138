// The ledger: what is left for whom, what was spent, and whether the book is whole.

import { api } from "../api.js";
import { datasetForm } from "../dataset_form.js";
import { number, when } from "../format.js";
import { tip } from "../terms.js";
import { bar, chip, empty, fill, h, note, readOnly, sentence, table } from "../ui.js";

function what(entry) {
  const value = entry.what;
  if (value === null || value === undefined) return "";
  if (typeof value !== "object") return String(value);
  if (entry.kind === "opened") return "the ledger";
  if (entry.kind === "created")
    return `with ε ${number(value.epsilon)}, δ ${number(value.delta)}${value.pure ? `, of which ${number(value.pure)} set aside for selections` : ""}`;
  if (value.kind === "Gaussian")
    return `Gaussian noise with μ ${number(value.mu, 3)} on ${value.n_measurements} number${value.n_measurements === 1 ? "" : "s"}`;
  return Object.entries(value)
    .filter(([, content]) => content !== null && typeof content !== "object")
    .map(([name, content]) => `${name} ${typeof content === "number" ? number(content) : content}`)
    .join(", ");
}

export async function budgetView(root) {
  const box = h("div", {});
  root.append(
    h(
      "div",
      { class: "step-head" },
      h("h1", {}, "Budget"),
      h(
        "p",
        { class: "lead" },
        "What was spent about each set of people, by whom, and what is left. Entries can only be added, never changed.",
        tip("ledger"),
      ),
    ),
    box,
  );
  await fillBudget(box);
}

async function fillBudget(box) {
  const ledger = await api.ledger();
  const badge = ledger.verified ? chip("good", "✓ chain verified") : chip("bad", "not verified");
  fill(
    box,
    ledger.read_only ? readOnly(ledger) : null,
    h(
      "p",
      { class: "badges" },
      badge,
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
    ),
    ledger.problem && !ledger.read_only ? note("bad", h("p", {}, sentence(ledger.problem))) : null,
    ledger.datasets.length
      ? h(
          "ul",
          { class: "entries" },
          ledger.datasets.map((entry) => dataset(entry, ledger.read_only)),
        )
      : ledger.read_only
        ? null
        : empty(
            "No data set yet",
            "A data set is a set of people, with one budget for everything that is ever released about them. Create it below, or at the release step.",
          ),
    h(
      "section",
      { class: "card" },
      h("h2", {}, "Entries"),
      ledger.entries.length
        ? table(
            ["no.", "when", "data set", "what happened", "who", "why", "hash"],
            [...ledger.entries]
              .reverse()
              .map((entry) => [
                entry.number,
                when(entry.when),
                entry.dataset,
                h("span", {}, h("b", {}, entry.kind), " ", h("span", { class: "hint" }, what(entry))),
                entry.who,
                entry.why || "–",
                h("code", { title: entry.hash }, String(entry.hash ?? "").slice(0, 8)),
              ]),
            { caption: "Entries of the ledger", stacked: true },
          )
        : h("p", { class: "hint" }, "Nothing has been written yet."),
    ),
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

// What is left is not shown of a ledger that is known to have forgotten something.
function dataset(entry, forgetful) {
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
      chip("plain", `ε ${number(entry.epsilon)}, δ ${number(entry.delta)} for ever`),
    ),
    forgetful
      ? h("p", { class: "before-after" }, spent)
      : [
          bar(left, entry.epsilon),
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
        ],
  );
}
