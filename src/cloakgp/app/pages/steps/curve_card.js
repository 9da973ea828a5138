// The expected error against epsilon, for the draft as it is.

import { curvePicture } from "../charts/curve_picture.js";
import { figure } from "../charts/figure.js";
import { api } from "../core/api.js";
import { draft } from "../core/draft.js";
import { boundsOf, outputOf } from "../core/draft_parts.js";
import { settingsOf } from "../core/settings.js";
import { watched } from "../core/watched.js";
import { debounce } from "../ui/debounce.js";
import { fill, h } from "../ui/dom.js";
import { chip, problem } from "../ui/notes.js";
import { progressLine } from "../ui/progress_line.js";

const EPSILONS = [0.01, 0.03, 0.1, 0.3, 1, 3, 10];
let last = null; // {key, curve}

export function curveCard() {
  const chart = figure();
  const trouble = h("div", {});
  const state = h("p", { class: "hint", role: "status" });
  let running = null;
  const progress = progressLine(() => {
    running?.abort();
    running = null;
    state.textContent = "Stopped. Move the slider to begin again.";
  });

  function draw() {
    const d = draft.get();
    const bounds = boundsOf(d);
    if (last && bounds) chart.show(curvePicture(last.curve, d.epsilon, bounds[1] - bounds[0], outputOf(d)));
  }

  async function ask() {
    const settings = settingsOf(draft.get());
    if (!settings) return;
    const key = JSON.stringify({ ...settings, epsilon: 1 });
    if (last?.key === key) {
      draw();
      return;
    }
    running?.abort();
    running = new AbortController();
    const mine = running;
    state.textContent = "Working out the curve…";
    fill(trouble);
    try {
      const curve = await watched((options) => api.curve(settings, EPSILONS, options), progress.show, mine.signal);
      if (mine !== running) return;
      last = { key, curve };
      fill(trouble);
      state.textContent = "";
      draw();
    } catch (error) {
      if (error.name === "AbortError" || mine !== running) return;
      state.textContent = "";
      fill(trouble, problem(error));
    }
  }

  const later = debounce(ask, 600);
  const stop = draft.subscribe((d, changes) => {
    if (Object.keys(changes).length === 1 && "epsilon" in changes) draw();
    later();
  });
  ask();
  const root = h(
    "section",
    { class: "card" },
    h("div", { class: "panel-head" }, h("h2", {}, "Expected error against ε"), chip("free", "costs nothing")),
    state,
    progress,
    trouble,
    chart,
  );
  root.done = () => {
    stop();
    later.cancel();
    running?.abort();
    chart.done();
  };
  return root;
}
