// How the table is written, where the header and the public inputs do not tell, or tell wrong.

import { draft } from "../core/draft.js";
import { hidesInputs } from "../core/protection.js";
import { h } from "../ui/dom.js";
import { checkbox, field } from "../ui/forms.js";

const DECIMALS = [
  ["", "as it looks"],
  [".", "with a point: 3.5"],
  [",", "with a comma: 3,5"],
];
const ENCODINGS = [
  ["", "as it looks"],
  ["utf-8", "UTF-8"],
  ["latin-1", "Latin-1 (Western Europe)"],
  ["utf-16-le", "UTF-16"],
  ["utf-16-be", "UTF-16, big-endian"],
];
const UNSEEN = "No public input has decimals to see. If numbers of this table are written like 3,5, say so here.";
const UNREAD = { facts: null, people: null, lengthscales: [], plan: null, release: null };

function select(id, options, chosen, action) {
  return h(
    "select",
    { id, onchange: (event) => action(event.target.value) },
    options.map(([value, text]) => h("option", { value, selected: value === chosen }, text)),
  );
}

// Where rows are private, nothing of them is looked at: then it is said here, or the header tells.
export function writtenFields() {
  const d = draft.get();
  const unseen = !d.decimal && d.facts?.decimals_unseen;
  const set = (changes) => draft.set({ ...UNREAD, ...changes });
  const options = hidesInputs(d) ? [DECIMALS, ENCODINGS].map(([, ...rest]) => [["", "as the header says"], ...rest]) : [DECIMALS, ENCODINGS];
  const decimal = select("decimal", options[0], d.decimal, (value) => set({ decimal: value }));
  const encoding = select("encoding", options[1], d.encoding, (value) => set({ encoding: value }));
  return h(
    "details",
    { class: "more", open: Boolean(d.decimal || d.encoding || d.categories.length || unseen) },
    h("summary", {}, d.facts?.written ? `Read as ${d.facts.written}. Not so?` : "How the table is written"),
    unseen ? h("p", { class: "hint warn" }, UNSEEN) : null,
    h("div", { class: "pair" }, field("Decimals", decimal), field("Letters", encoding)),
    hidesInputs(d) ? null : numbersThatAreLevels(d, set),
  );
}

function numbersThatAreLevels(d, set) {
  const listed = (d.facts?.columns ?? []).filter((column) => column.kind === "number" || d.categories.includes(column.name));
  if (!listed.length) return null;
  const take = (name) => (wanted) =>
    set({ categories: wanted ? [...d.categories, name] : d.categories.filter((other) => other !== name) });
  return h(
    "div",
    { class: "field" },
    h("p", { class: "hint" }, "Numbers that are names of things, such as codes of wards:"),
    listed.map(({ name }) => checkbox(`${name} is a category`, d.categories.includes(name), take(name))),
  );
}
