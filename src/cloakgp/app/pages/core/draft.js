// The draft of a release. It holds settings only, which are public, and is kept for as long as the browser's tab, so
// that a reload loses nothing.

import { createStore } from "./store.js";

const KEY = "cloakgp-draft";

const EMPTY = {
  data: null, // what the file is kept under
  shown: null, // what it was called
  columns: [],
  rows: null,
  whoNames: [], // columns whose names sound like whose a row is
  roles: {}, // column -> "input" | "output"
  outcome: "real", // "real" | "yes/no" | "count" | "classes": said, and never found out
  classNames: "", // what outcomes may be, one on each line: typed, and never found out
  no: "", // how no and yes are written, if not as 0 and 1
  yes: "",
  decimal: "", // how the table is written, where somebody says so
  encoding: "",
  categories: [], // inputs that are categories though they look like numbers
  dropMissing: false, // whether rows without an input are left out
  protect: null, // "outcomes" | "people" | "rows": nobody is protected by default
  who: null, // the column that says whose a row is
  box: {}, // of each private input: {kind, low, high, cells, names}, as typed
  nPeople: "", // how many people there are, and how many rows of each count: of whole rows
  maxRows: "",
  facts: null, // {rows, columns, ranges, sample, ...} of the input columns; never of private ones
  people: null, // {people, rows, most_rows} of the column that says who; never of private rows
  lower: "",
  upper: "",
  model: null, // "learn" | "kernel"
  given: null, // ids of releases that are taken into account
  family: null, // the server suggests it, like all that is null or empty
  lengthscales: [], // text, one per input
  spread: "", // std of the function
  scatter: "", // std of one outcome around it
  level: null, // whether the level is unknown: adds a Constant
  asText: false,
  kernelText: "",
  mean: "",
  design: null,
  kind: null,
  inducing: "", // how many inducing inputs; empty for none
  where: "grid", // "grid" | "own"
  perAxis: "",
  ownPoints: "",
  epsilon: null,
  delta: "",
  planName: "",
  seen: 0, // the furthest step that was looked at
  plan: null, // {id, of}: the saved plan and the settings that it was saved for
  release: null, // id of the release that came of it
};

function restored() {
  try {
    return { ...EMPTY, ...JSON.parse(window.sessionStorage.getItem(KEY) ?? "{}") };
  } catch {
    return { ...EMPTY };
  }
}

export const draft = createStore(restored());

draft.subscribe((state) => {
  try {
    window.sessionStorage.setItem(KEY, JSON.stringify(state));
  } catch {
    // it then lasts until the page is closed
  }
});

export function startAgain() {
  draft.set({ ...EMPTY });
}
