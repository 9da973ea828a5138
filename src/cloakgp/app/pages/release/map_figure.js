// The map of a release: a coarse one at once, then the fine one. `view` is chosen above it. `chosen(asked)` hears of what
// is on it, once that is not as suggested.

import { figure } from "../charts/figure.js";
import { surfacePicture } from "../charts/surface_picture.js";
import { api } from "../core/api.js";
import { columnsIn, shownCell } from "../core/columns.js";
import { watched } from "../core/watched.js";
import { fill, h } from "../ui/dom.js";
import { choice } from "../ui/forms.js";
import { problem } from "../ui/notes.js";
import { progressLine } from "../ui/progress_line.js";
import { mapChoices } from "./map_choices.js";

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

export function mapFigure(release, chosen) {
  const chart = figure();
  const hint = h("p", { class: "hint" });
  const trouble = h("div", {});
  let leaving = new AbortController();
  const progress = progressLine(() => leaving.abort());
  const inputs = columnsIn(release);
  let of = null; // a class, where there are several
  let last = null; // what was chosen of the axes
  const choices = mapChoices(inputs, load);
  let view = "prediction";
  let map = null;
  let drawn = null; // what was chosen for it

  function show() {
    if (!map?.views[view]) return; // a coarse one has not all
    const isUnknown = map.near_prior.some((row) => row.some((share) => share >= map.unknown_from));
    const columnOf = (name) => inputs.find((input) => input.name === name);
    const held = Object.entries(map.held).map(([name, value]) => `${name} at ${shownCell(columnOf(name), value)}`);
    fill(
      hint,
      HINTS[view],
      held.length ? ` Held: ${held.join(", ")}.` : null,
      isUnknown ? UNKNOWN : null,
      map.inputs?.length ? DOTS : null,
    );
    chart.show(surfacePicture(map, view, inputs));
  }

  const tell = (isChosen = drawn) => isChosen && chosen({ ...drawn, view });

  // `asked` are other axes, or where inputs are held; as suggested, to begin with.
  async function load(asked = null) {
    last = asked;
    leaving.abort();
    const mine = new AbortController();
    leaving = mine;
    fill(trouble);
    try {
      for (const coarse of [true, false]) {
        const send = (options) => api.mapOf(release.id, { ...asked, ...(of ? { of } : {}), coarse }, options);
        const found = await watched(send, progress.show, mine.signal);
        if (mine !== leaving) return;
        map = found;
        if (asked || of) drawn = { ...asked, of };
        show();
        tell();
        choices.follow(map);
        if (!map.coarse) return;
      }
    } catch (error) {
      if (error.name !== "AbortError" && mine === leaving) fill(trouble, problem(error));
    }
  }

  const take = (value) => {
    view = value;
    show();
    tell(true);
  };
  const root = h("div", { class: "map" }, choice("What to draw", VIEWS, view, take, { hideLegend: true }), progress, trouble, chart, hint, choices);
  root.show = () => load();
  root.choose = (name) => {
    of = name;
    load(last);
  };
  root.done = () => {
    choices.done();
    leaving.abort();
    chart.done();
  };
  return root;
}
