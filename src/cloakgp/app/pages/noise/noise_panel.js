// The exact noise of the draft, drawn anew whenever a setting moves. It costs nothing: no outcome is read.

import { figure } from "../charts/figure.js";
import { noisePicture } from "../charts/noise_picture.js";
import { api } from "../core/api.js";
import { shownCell } from "../core/columns.js";
import { draft } from "../core/draft.js";
import { columnsOf, outputOf } from "../core/draft_parts.js";
import { count, number, percent } from "../core/format.js";
import { sameSettings, settingsOf } from "../core/settings.js";
import { watched } from "../core/watched.js";
import { debounce } from "../ui/debounce.js";
import { fill, h } from "../ui/dom.js";
import { chip, problem } from "../ui/notes.js";
import { numbersTable } from "../ui/numbers_table.js";
import { progressLine } from "../ui/progress_line.js";
import { tile } from "../ui/tiles.js";
import { tip } from "../ui/tip.js";
import { lastPreview } from "./last_preview.js";
import { noiseTiles } from "./noise_tiles.js";

// A panel that follows the draft. `onAnswer` hears of each answer, and of null while there is none.
export function noisePanel({ height, full = false, onAnswer = () => {} } = {}) {
  const chart = figure();
  const status = h("p", { class: "status", role: "status" });
  const trouble = h("div", {});
  const body = h("div", { class: "panel-body" }, chart);
  const numbers = h("div", {});
  const heading = h("h2", { id: "noise-title" });
  const progress = progressLine(stop);
  const root = h(
    "section",
    { class: "card panel", "aria-labelledby": "noise-title" },
    h(
      "div",
      { class: "panel-head" },
      heading,
      chip("free", "costs nothing"),
    ),
    status,
    progress,
    trouble,
    body,
    numbers,
  );
  let running = null;

  function stop() {
    running?.abort();
    running = null;
    root.setAttribute("aria-busy", "false");
    status.textContent = "Stopped. Change a setting to begin again.";
  }

  function say(isLearned, isExact = true) {
    const words = isLearned ? "Expected error" : isExact ? "Exact noise" : "Noise, about";
    fill(heading, words, tip(isLearned ? "expected error" : "noise std"));
  }

  function draw(answer, settings) {
    const d = draft.get();
    const isLearned = Boolean(answer.expected_error);
    const faded = answer.noise_std.filter((value) => value >= answer.fades_at).length;
    const whole = answer.noise_std.length;
    fill(trouble);
    body.hidden = false;
    const what = { output: outputOf(d) ?? "the outcome", outcome: d.outcome };
    chart.show(noisePicture(answer, d.facts?.sample, columnsOf(d), what, { height }));
    say(isLearned, answer.exact);
    const how = isLearned
      ? `a forecast from ${settings.given ? "what was released before" : settings.protect === "rows" ? "the bounds and the box, as if rows were spread evenly over it" : "the bounds and the inputs"}: the smoother and the less scattered outcomes are, the smaller it gets. Worked`
      : answer.exact
        ? "exact, worked"
        : "from a part of the rows; exact once the plan is kept. Worked";
    status.textContent = answer.rough
      ? "About: a rough figure from some of the rows, while the whole is worked out."
      : `${count(whole)} test points, ${how} out in ${answer.milliseconds} ms without a look at ${settings.protect === "rows" ? "the table" : settings.output}.`;
    const worth = isLearned
      ? null
      : tile(
          count(whole - faded),
          "points worth releasing",
          faded ? `of ${count(whole)}; ${count(faded)} faded` : `of ${count(whole)}, none faded`,
          faded > whole / 2 ? "bad" : "good",
        );
    fill(numbers, noiseTiles(answer.summary, worth), full ? pointNoise(answer, settings) : null);
    onAnswer(answer, settings);
  }

  async function ask() {
    const settings = settingsOf(draft.get());
    running?.abort();
    if (!settings) {
      body.hidden = true;
      root.setAttribute("aria-busy", "false");
      status.textContent = "The noise appears here as soon as the settings are complete.";
      fill(numbers);
      onAnswer(null, null);
      return;
    }
    const last = lastPreview.get();
    if (last && sameSettings(last.settings, settings)) {
      root.setAttribute("aria-busy", "false");
      draw(last.answer, settings);
      return;
    }
    running = new AbortController();
    const mine = running;
    root.setAttribute("aria-busy", "true");
    try {
      const rough = await watched((options) => api.roughPreview(settings, options), progress.show, mine.signal);
      if (mine !== running) return;
      draw(rough, settings);
      const answer = rough.rough
        ? await watched((options) => api.preview(settings, options), progress.show, mine.signal)
        : rough;
      if (mine !== running) return;
      lastPreview.set({ settings, answer });
      if (rough.rough) draw(answer, settings);
    } catch (error) {
      if (error.name === "AbortError" || mine !== running) return;
      status.textContent = "";
      body.hidden = true;
      fill(numbers);
      fill(trouble, problem(error));
      onAnswer(null, settings);
    }
    if (mine === running) root.setAttribute("aria-busy", "false");
  }

  say(draft.get().model === "learn");
  const later = debounce(ask, 250);
  const unsubscribe = draft.subscribe(later);
  ask();
  root.done = () => {
    unsubscribe();
    later.cancel();
    running?.abort();
    chart.done();
  };
  return root;
}

function pointNoise(answer, settings) {
  const noise = answer.expected_error ?? answer.noise_std;
  const columns = columnsOf(draft.get());
  const rowAt = (place) => [
    ...answer.points[place].map((value, at) => shownCell(columns[at], value)),
    number(noise[place], 3),
    percent(noise[place] / answer.summary.bounds_width),
  ];
  const what = answer.expected_error ? "expected error" : "noise std";
  return numbersTable([...settings.inputs, what, "of the bounds"], rowAt, noise.length, "Noise at each test point");
}
