// From what was typed into the steps to the server's settings.

import { missing } from "./missing.js";
import { atOf, boundsOf, classNamesOf, inducingOf, inputsOf, kernelOf, outputOf, short, writtenOf } from "./draft_parts.js";
import { isChance, isLinked } from "./outcomes.js";
import { deltaOf, protectSettings } from "./protection.js";
import { typed } from "./typed.js";

export function settingsOf(d) {
  const ready = Object.values(missing).every((check) => check(d) === null);
  return ready ? allSettings(d) : null;
}

function allSettings(d) {
  return {
    data: d.data,
    inputs: inputsOf(d),
    output: outputOf(d),
    ...(d.outcome === "real" ? {} : { outcome: d.outcome }),
    ...classesOf(d),
    ...(isChance(d.outcome) ? {} : { bounds: boundsOf(d) }),
    ...writtenOf(d),
    at: atOf(d),
    epsilon: d.epsilon,
    delta: deltaOf(d),
    ...protectSettings(d),
    ...(d.model === "learn" ? { model: "learn", ...(d.given ? { given: d.given } : {}) } : kernelSettings(d)),
  };
}

export function classesOf(d) {
  if (d.outcome === "classes") return { classes: classNamesOf(d) };
  return d.outcome === "yes/no" && d.yes.trim() ? { classes: [d.no.trim(), d.yes.trim()] } : {};
}

function kernelSettings(d) {
  if (isLinked(d.outcome)) return { kernel: kernelOf(d), mean: typed(d.mean), ...(d.outcome === "count" ? { noise: typed(d.scatter) } : {}) };
  return {
    kernel: kernelOf(d),
    noise: Number(short(typed(d.scatter) ** 2)),
    mean: typed(d.mean),
    ...(d.protect === "rows" ? {} : { design: d.design, kind: d.kind, inducing: inducingOf(d) }),
  };
}

// Whether the error can be forecast and not more, of settings or of a draft: since a model is learned, or rows are not
// seen, or scatter follows from probabilities or rates that nobody knows.
export const isForecast = ({ model, protect, outcome }) => model === "learn" || protect === "rows" || isLinked(outcome);

export const sameSettings = (one, other) => JSON.stringify(one) === JSON.stringify(other);
