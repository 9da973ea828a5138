// What the pages know: who is signed in, and the draft of a release. The draft holds settings only, which are
// public; it is kept for as long as the browser's tab, so that a reload loses nothing.

const KEY = "cloakgp-draft";

export function createStore(initial) {
  let state = initial;
  const listeners = new Set();
  return {
    get: () => state,
    set(changes) {
      state = { ...state, ...changes };
      for (const listener of [...listeners]) listener(state, changes);
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

export const session = createStore({ me: null, terms: null });

const EMPTY = {
  data: null, // file name
  columns: [],
  rows: null,
  roles: {}, // column -> "input" | "output"
  facts: null, // {rows, ranges, sample, suggested} of the input columns
  lower: "",
  upper: "",
  family: "EQ",
  lengthscales: [], // text, one per input
  spread: "", // std of the function
  scatter: "", // std of one outcome around it
  level: false, // whether the level is unknown: adds a Constant
  asText: false,
  kernelText: "",
  mean: "",
  design: "mse",
  kind: "predictions",
  inducing: "", // how many inducing inputs; empty for none
  where: "grid", // "grid" | "own"
  perAxis: "",
  ownPoints: "",
  epsilon: 1,
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
