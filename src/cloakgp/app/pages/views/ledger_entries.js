// What was written into the ledger, the newest first.

import { count, number, when } from "../core/format.js";
import { fill, h } from "../ui/dom.js";
import { checkbox } from "../ui/forms.js";
import { table } from "../ui/tables.js";

// Whatever somebody put there.
const listed = (names) => [names ?? []].flat().join(", ");

// Entries from before there were units have none: they protect one row.
const whom = (value) =>
  [
    value.unit ? `, for ${value.unit}` : "",
    value.people ? `, by ${value.people}` : "",
    value.private ? `; private columns: ${listed(value.private)}` : "",
    value.public ? `; published inputs: ${listed(value.public)}` : "",
  ].join("");

const TERMS = ["unit", "partition", "people", "release_delta", "stages"]; // said in other words

function what(entry) {
  const value = entry.what;
  if (value === null || value === undefined) return "";
  if (typeof value !== "object") return String(value);
  if (entry.kind === "opened") return "the ledger";
  if (entry.kind === "created")
    return `with ε ${number(value.epsilon)}, δ ${number(value.delta)}${value.pure ? `, of which ${number(value.pure)} set aside for selections` : ""}${whom(value)}`;
  if (entry.kind === "allowed") return `private columns: ${listed(value.private)}; at no cost`;
  if (entry.kind === "answered") return "a later stage; at no cost";
  if (value.kind === "Gaussian")
    return `Gaussian noise with μ ${number(value.mu, 3)} on ${value.n_measurements} number${value.n_measurements === 1 ? "" : "s"}${whom(value)}`;
  const said = Object.entries(value)
    .filter(([name]) => !TERMS.includes(name))
    .filter(([, content]) => content !== null && typeof content !== "object")
    .map(([name, content]) => `${name} ${typeof content === "number" ? number(content) : content}`);
  return said.join(", ") + whom(value);
}

const HEADINGS = ["no.", "when", "data set", "what happened", "who", "why", "hash"];

const cells = (entry) => [
  entry.number,
  when(entry.when),
  entry.dataset,
  h("span", {}, h("b", {}, entry.kind), " ", h("span", { class: "hint" }, what(entry))),
  entry.who,
  entry.why || "–",
  h("code", { title: entry.hash }, String(entry.hash ?? "").slice(0, 8)),
];

// Between the first and the last stage of a release there are many, and none of them costs anything.
const isFree = (entry) => entry.kind === "answered";

export function ledgerEntries(entries) {
  const newest = [...entries].reverse();
  const free = newest.filter(isFree).length;
  const inner = h("div", {});
  const show = (all) => {
    const rows = newest.filter((entry) => all || !isFree(entry)).map(cells);
    fill(
      inner,
      rows.length
        ? table(HEADINGS, rows, { caption: "Entries of the ledger", stacked: true })
        : h("p", { class: "hint" }, "Nothing has been written yet."),
    );
  };
  show(false);
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Entries"),
    free ? checkbox(`Also the ${count(free)} steps within releases, which cost nothing`, false, show) : null,
    inner,
  );
}
