// Who is protected: what that hides, what stays public, and what it adds to the settings.

import { dayOf } from "./columns.js";
import { inputsOf, levelsOf } from "./draft_parts.js";
import { numberTrouble, typed } from "./typed.js";

export const UNITS = {
  outcomes: {
    title: "One outcome per row",
    term: "one row",
    when: "Each person has one row, and anybody may know the inputs.",
    hidden: "The outcome of each row.",
    open: "The inputs, as they are, and the number of rows.",
  },
  people: {
    title: "One person",
    term: "one person",
    when: "People have several rows, such as visits or years.",
    hidden: "All outcomes of a person together.",
    open: "The inputs, the number of rows, and which rows belong together.",
  },
  rows: {
    title: "Whole rows, inputs included",
    term: "one whole row",
    when: "The inputs are nobody's business either.",
    hidden: "A row as a whole: its inputs and its outcome.",
    open: "The number of rows, or of people, and the box that you type here.",
  },
};

// Columns that tell whose a row is, going by their names: nothing of the table is read for it.
export const whoColumns = (d) => d.whoNames.filter((name) => d.roles[name] !== "output");

export const hidesInputs = (d) => d.protect === "rows";
// `kind` is "number", "date" or "level".
export const emptyExtent = () => ({ kind: "number", low: "", high: "", cells: "", names: "" });
export const extentOf = (d, name) => ({ ...emptyExtent(), ...(d.box[name] ?? {}) });

// A whole number, or null.
export const wholeOf = (text) => (/^\s*\d+\s*$/.test(String(text)) ? Number(text) : null);

// From where to where a range goes, in numbers; dates are in days.
const endsOf = ({ kind, low, high }) => [low, high].map(kind === "date" ? (text) => dayOf(text.trim()) : typed);

// What keeps an input's part of the box from being one, in words, or null.
export function extentTrouble(extent, most) {
  if (extent.kind === "level") {
    const levels = levelsOf(extent.names);
    if (levels.length < 2) return "Two or more levels, with commas between them.";
    return new Set(levels).size < levels.length ? "Each level once." : null;
  }
  const isDate = extent.kind === "date";
  const [low, high] = endsOf(extent);
  const trouble = isDate ? null : (numberTrouble(extent.low) ?? numberTrouble(extent.high));
  if (trouble) return trouble;
  if (low === null || high === null) return isDate ? "Two dates, such as 2024-05-31." : "Type from where to where.";
  if (low >= high) return `The second ${isDate ? "date" : "number"} must be ${isDate ? "after" : "above"} the first.`;
  const cells = wholeOf(extent.cells);
  return cells >= 1 && cells <= most ? null : `Cells: a whole number from 1 to ${most}.`;
}

// As the server has it; whole numbers are numbers, if all levels are.
function sent(extent) {
  if (extent.kind === "date") return { low: extent.low.trim(), high: extent.high.trim(), cells: wholeOf(extent.cells) };
  if (extent.kind === "number") return { low: typed(extent.low), high: typed(extent.high), cells: wholeOf(extent.cells) };
  const levels = levelsOf(extent.names);
  return { levels: levels.every((each) => /^-?\d{1,15}$/.test(each)) ? levels.map(Number) : levels };
}

function boxOf(d) {
  return Object.fromEntries(inputsOf(d).map((name) => [name, sent(extentOf(d, name))]));
}

// Along which numbers an input goes, where that is known: from public inputs, or from the box.
export function rangeOf(d, name) {
  if (!hidesInputs(d)) return d.facts?.ranges?.[name] ?? null;
  const extent = extentOf(d, name);
  if (extent.kind === "level") return [0, Math.max(1, levelsOf(extent.names).length - 1)];
  const [low, high] = endsOf(extent);
  return low !== null && high !== null && low < high ? [low, high] : null;
}

// To how many the promise is made: rows, or people where those are protected.
export function sizeOf(d) {
  if (hidesInputs(d)) return d.who ? wholeOf(d.nPeople) : d.rows;
  return (d.protect === "people" ? d.people?.people : null) ?? d.facts?.rows ?? d.rows;
}

// The largest power of ten below one over ten times that: as the library has it.
export const safeDelta = (d) => (sizeOf(d) ? `1e-${String(10 * sizeOf(d)).length}` : "");

// As it was typed, or else the safe one.
export const deltaOf = (d) => typed(d.delta.trim() === "" ? safeDelta(d) : d.delta);

export function protectSettings(d) {
  if (d.protect === "people") return { protect: "people", people: d.who };
  if (d.protect !== "rows") return {};
  const together = d.who ? { people: d.who, n_people: wholeOf(d.nPeople), max_rows: wholeOf(d.maxRows) } : {};
  return { protect: "rows", box: boxOf(d), ...together };
}

// The same from a plan's settings, for a draft.
export function protectDraft(s) {
  const box = Object.entries(s.box ?? {}).map(([name, extent]) => [
    name,
    extent.levels
      ? { ...emptyExtent(), kind: "level", names: extent.levels.join(", ") }
      : {
          ...emptyExtent(),
          kind: typeof extent.low === "string" ? "date" : "number",
          low: String(extent.low),
          high: String(extent.high),
          cells: String(extent.cells),
        },
  ]);
  return {
    protect: s.protect ?? "outcomes",
    who: s.people ?? null,
    box: Object.fromEntries(box),
    nPeople: s.n_people ? String(s.n_people) : "",
    maxRows: s.max_rows ? String(s.max_rows) : "",
  };
}

// Whom settings protect, in one line.
export function protectedWords(s) {
  if (s.protect === "people") return `one person, by ${s.people}: all of their outcomes`;
  if (s.protect !== "rows") return "one row: its outcome";
  return s.people
    ? `one person, by ${s.people}: all of their rows, inputs included; at most ${s.max_rows} rows each count`
    : "one whole row: its inputs and its outcome";
}

export const inputsLabel = (s) => (s.protect === "rows" ? "private inputs" : "public inputs");

export function boxWords(s) {
  const one = ([name, extent]) =>
    extent.levels ? `${name}: ${extent.levels.join(", ")}` : `${name}: ${extent.low} to ${extent.high} in ${extent.cells} cells`;
  return Object.entries(s.box).map(one).join("; ");
}
