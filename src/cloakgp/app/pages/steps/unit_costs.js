// What the choice costs, asked anew whenever it changes: the error to be expected, from what is public alone.

import { api } from "../core/api.js";
import { draft } from "../core/draft.js";
import { boundsOf, canLearn, inputsOf, outputOf, writtenOf } from "../core/draft_parts.js";
import { number, percent } from "../core/format.js";
import { missing } from "../core/missing.js";
import { isChance } from "../core/outcomes.js";
import { deltaOf, protectSettings } from "../core/protection.js";
import { session } from "../core/session.js";
import { classesOf } from "../core/settings.js";
import { watched } from "../core/watched.js";
import { debounce } from "../ui/debounce.js";
import { fill, h } from "../ui/dom.js";

const PER_AXIS = [25, 6, 4, 3, 2, 2, 2, 2, 2, 2];
const known = new Map(); // answers, by what was asked

// With bounds and a promise as they are typed, or usual ones: only their proportions matter here.
function asked(d) {
  return {
    data: d.data,
    inputs: inputsOf(d),
    output: outputOf(d),
    ...(isChance(d.outcome) ? { outcome: d.outcome, ...classesOf(d) } : { bounds: boundsOf(d) ?? [0, 1] }), // counts: as numbers
    ...writtenOf(d),
    model: "learn",
    at: `grid:${PER_AXIS[inputsOf(d).length - 1]}`,
    epsilon: d.epsilon ?? session.get().defaults.epsilon,
    delta: deltaOf(d),
    ...protectSettings(d),
  };
}

export function unitCosts(place) {
  let running = null;
  let last = "";

  async function error(settings, signal) {
    const key = JSON.stringify(settings);
    if (!known.has(key)) known.set(key, (await watched((options) => api.roughPreview(settings, options), () => {}, signal)).error_summary);
    return known.get(key);
  }

  function say(unit, summary, settings, beside = null) {
    const share = summary.median / summary.bounds_width;
    const times = beside ? summary.median / beside.median : null;
    fill(
      place(unit),
      h("b", {}, isChance(settings.outcome) ? `error about ${number(100 * share, 2)} percentage points` : `error about ${percent(share)}`),
      isChance(settings.outcome) ? ", typically, at" : " of the bounds’ width, typically, at",
      ` ε = ${number(settings.epsilon)}`,
      times ? `: ${number(times, 2)} times that of one outcome` : "",
      ".",
    );
  }

  async function ask() {
    const d = draft.get();
    if (missing.who(d) !== null || !canLearn(d)) return;
    running = new AbortController();
    const mine = running;
    const settings = asked(d);
    fill(place(d.protect), "working out what this costs…");
    try {
      // The inputs of whole rows are not read, so there is nothing to compare with.
      const plain = d.protect === "people" ? await error(asked({ ...d, protect: "outcomes" }), mine.signal) : null;
      const own = await error(settings, mine.signal);
      if (mine !== running) return;
      if (plain) say("outcomes", plain, settings);
      say(d.protect, own, settings, plain);
    } catch (trouble) {
      if (trouble.name !== "AbortError" && mine === running) fill(place(d.protect), trouble.message);
    }
  }

  function forget() {
    running?.abort();
    for (const unit of ["outcomes", "people", "rows"]) fill(place(unit));
  }

  const later = debounce(ask, 400);
  return {
    follow() {
      const d = draft.get();
      const read = [Boolean(d.facts), Boolean(d.people), writtenOf(d)];
      const now = JSON.stringify([d.protect, d.who, d.box, d.nPeople, d.maxRows, ...read]);
      if (now === last) return;
      last = now;
      forget();
      later();
    },
    done() {
      later.cancel();
      running?.abort();
    },
  };
}
