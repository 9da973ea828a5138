// All there is about a release, once its numbers are there: a learned one asks many models, and says how far it is.
// Fills `root`, and gives how to clean up.

import { api } from "../core/api.js";
import { watched } from "../core/watched.js";
import { fill, h } from "../ui/dom.js";
import { problem } from "../ui/notes.js";
import { progressLine } from "../ui/progress_line.js";
import { releaseResults } from "./release_results.js";

export function loadingResults(root, id) {
  const leaving = new AbortController();
  const progress = progressLine(() => leaving.abort());
  let done = null;
  fill(root, h("p", { class: "loading" }, "Loading…"), progress);
  watched((options) => api.releaseOf(id, options), progress.show, leaving.signal)
    .then((release) => {
      if (!leaving.signal.aborted) done = releaseResults(root, release);
    })
    .catch((error) => fill(root, error.name === "AbortError" ? h("p", {}, "Stopped.") : problem(error)));
  return () => {
    leaving.abort();
    done?.();
  };
}
