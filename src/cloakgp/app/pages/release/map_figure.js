// The map of a release: a coarse one at once, then the fine one. `view` is chosen above it.

import { figure } from "../charts/figure.js";
import { surfacePicture } from "../charts/surface_picture.js";
import { api } from "../core/api.js";
import { columnsIn } from "../core/columns.js";
import { number } from "../core/format.js";
import { watched } from "../core/watched.js";
import { fill, h } from "../ui/dom.js";
import { choice } from "../ui/forms.js";
import { problem } from "../ui/notes.js";
import { progressLine } from "../ui/progress_line.js";

const VIEWS = [
  ["prediction", "prediction"],
  ["uncertainty", "uncertainty"],
  ["privacy", "privacy's part"],
];
const HINTS = {
  prediction: "Colour: what is predicted; lines where it is equal.",
  uncertainty: "Colour: the std of the prediction, privacy and model together.",
  privacy: "Colour: how much of the uncertainty (of the variance) is due to privacy noise; the line is where that is a half. The rest is not known because outcomes are few or scattered.",
};
const UNKNOWN = " Hatched: not known, since the prediction is hardly less uncertain there than before the release.";
const DOTS = " Dots: the inputs, which are public.";

export function mapFigure(release) {
  const chart = figure();
  const hint = h("p", { class: "hint" });
  const trouble = h("div", {});
  const leaving = new AbortController();
  const progress = progressLine(() => leaving.abort());
  const inputs = columnsIn(release);
  let view = "prediction";
  let map = null;
  let of = null; // a class, where there are several
  let turn = 0;

  function show() {
    if (!map) return;
    const isUnknown = map.near_prior.some((row) => row.some((share) => share >= map.unknown_from));
    const held = Object.entries(map.held).map(([name, value]) => `${name} at ${typeof value === "number" ? number(value) : value}`);
    fill(
      hint,
      HINTS[view],
      held.length ? ` Held: ${held.join(", ")}.` : null,
      isUnknown ? UNKNOWN : null,
      map.inputs?.length ? DOTS : null,
    );
    chart.show(surfacePicture(map, view, inputs));
  }

  async function load() {
    const mine = ++turn;
    try {
      for (const coarse of [true, false]) {
        const found = await watched((options) => api.mapOf(release.id, coarse, of, options), progress.show, leaving.signal);
        if (mine !== turn) return; // of another class
        map = found;
        show();
        if (!map.coarse) return;
      }
    } catch (error) {
      if (error.name !== "AbortError") fill(trouble, problem(error));
    }
  }

  const take = (value) => {
    view = value;
    show();
  };
  const root = h("div", { class: "map" }, choice("What to draw", VIEWS, view, take, { hideLegend: true }), progress, trouble, chart, hint);
  root.show = load;
  root.choose = (name) => {
    of = name;
    load();
  };
  root.done = () => {
    leaving.abort();
    chart.done();
  };
  return root;
}
