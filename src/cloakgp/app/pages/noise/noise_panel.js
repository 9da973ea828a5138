// What error to expect of the draft, and its noise, anew whenever a setting moves. Free: no outcome is read.

import { figure } from "../charts/figure.js";
import { noisePicture } from "../charts/noise_picture.js";
import { api } from "../core/api.js";
import { shownCell } from "../core/columns.js";
import { draft } from "../core/draft.js";
import { columnsOf, outputOf } from "../core/draft_parts.js";
import { count, number, percent } from "../core/format.js";
import { isForecast, sameSettings, settingsOf } from "../core/settings.js";
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

function forecastWords({ given, kernel, protect }) {
  if (given) return "a forecast from what was released before.";
  const where = protect === "rows" ? "the box, as if rows were spread evenly over it" : "the inputs";
  return kernel
    ? `a forecast from what you expect and ${where}.`
    : `a forecast from the bounds and ${where}: the smoother and the less scattered outcomes are, the smaller it gets.`;
}

// A panel that follows the draft. `onAnswer` hears of each answer, and of null while there is none.
export function noisePanel({ height, full = false, onAnswer = () => {} } = {}) {
  const chart = figure();
  const status = h("p", { class: "status", role: "status" });
  const trouble = h("div", {});
  const meaning = h("p", { class: "hint" });
  const body = h("div", { class: "panel-body" }, chart, meaning);
  const numbers = h("div", {});
  const heading = h("h2", { id: "noise-title" }, "Expected error", tip("expected error"));
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

  function draw(answer, settings) {
    const d = draft.get();
    const whole = answer.points.length;
    fill(trouble);
    body.hidden = false;
    const what = { output: outputOf(d) ?? "the outcome", outcome: d.outcome };
    meaning.textContent = answer.plane ? mapWords(answer, d.facts?.sample) : "";
    chart.show(noisePicture(answer, d.facts?.sample, columnsOf(d), what, { height, isForecast: isForecast(settings) }));
    const how = isForecast(settings) ? `${forecastWords(settings)} Worked` : "exact, worked";
    status.textContent = answer.rough
      ? "About: a rough figure, while the whole is worked out."
      : `${count(whole)} test points, ${how} out in ${answer.milliseconds} ms without a look at ${settings.protect === "rows" ? "the table" : settings.output}.`;
    const beside = { noise: answer.summary, more: worthTile(answer.unknown) };
    fill(numbers, noiseTiles(answer.error_summary, beside), full ? pointNoise(answer, settings) : null);
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

// What is on a map beside its colours.
const mapWords = ({ unknown }, sample) =>
  `${unknown.some(Boolean) ? "Hatched or faint: hardly more would be known than before. " : ""}${sample?.length ? "Dots: the inputs, which are public." : ""}`;

// At how many points more will be known than before.
function worthTile(unknown) {
  const faded = unknown.filter(Boolean).length;
  const whole = unknown.length;
  return tile(
    count(whole - faded),
    "points worth releasing",
    faded ? `of ${count(whole)}; ${count(faded)} faded` : `of ${count(whole)}, none faded`,
    faded > whole / 2 ? "bad" : "good",
  );
}

function pointNoise(answer, settings) {
  const { expected_error: error, noise_std: noise } = answer;
  const columns = columnsOf(draft.get());
  const rowAt = (place) => [
    ...answer.points[place].map((value, at) => shownCell(columns[at], value)),
    number(error[place], 3),
    percent(error[place] / answer.error_summary.bounds_width),
    number(noise[place], 3),
  ];
  const head = [...settings.inputs, "expected error", "of the bounds", "privacy noise"];
  return numbersTable(head, rowAt, error.length, "Error and noise at each test point");
}
