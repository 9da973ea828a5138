// What keeps a step from being done, in words, or null. In the order of the steps.

import { atOf, boundsOf, canLearn, classNamesOf, exactRows, inducingOf, inputsOf, kernelOf, mostInducing, needsInducing, outputOf } from "./draft_parts.js";
import { count } from "./format.js";
import { isChance, isLinked } from "./outcomes.js";
import { deltaOf, extentOf, extentTrouble, wholeOf } from "./protection.js";
import { session } from "./session.js";
import { numberTrouble, typed } from "./typed.js";

function inducingTrouble(d) {
  const n = inducingOf(d);
  if (n === undefined) return `Inducing inputs: a whole number from 1 to ${mostInducing()}, or empty.`;
  if (n === null && needsInducing(d))
    return `Say how many inducing inputs: more than ${count(exactRows())} rows need them.`;
  return n !== null && d.kind === "function"
    ? "A whole function has no inducing inputs. Leave their number empty."
    : null;
}

const learningTrouble = (d) =>
  canLearn(d) ? null : "There are too many inputs for a model to be learned: describe it.";

function scatterTrouble(d) {
  if (isChance(d.outcome) || typed(d.scatter) > 0) return null;
  if (d.outcome !== "count") return "Say how far single outcomes lie from the curve.";
  return d.scatter.trim() === "" ? null : "The variance of a count over its rate must be above 0, or empty.";
}

function kernelTrouble(d) {
  if (!kernelOf(d)) return "Fill in the kernel.";
  const trouble = scatterTrouble(d);
  if (trouble) return trouble;
  if (d.mean.trim() !== "" && typed(d.mean) === null) return "The prior mean must be a number, or empty.";
  return isLinked(d.outcome) ? null : inducingTrouble(d);
}

export const mostCells = () => session.get().me?.most_cells ?? Infinity;

function rowsTrouble(d) {
  for (const name of inputsOf(d)) {
    const trouble = extentTrouble(extentOf(d, name), mostCells());
    if (trouble) return `${name}: ${trouble}`;
  }
  if (d.who === null) return null;
  if (!d.who) return "Say which column tells whose a row is.";
  if (inputsOf(d).includes(d.who)) return "The column that tells whose a row is cannot be an input, too.";
  if (!(wholeOf(d.nPeople) >= 2)) return "Say how many people there are.";
  return wholeOf(d.maxRows) >= 1 ? null : "Say how many rows of each person count, at most.";
}

const mostClasses = () => session.get().me?.most_classes ?? Infinity;

function classNamesTrouble(names) {
  if (names.length < 3) return "Name three classes or more. Where there are two, the outcome is yes or no.";
  if (names.length > mostClasses()) return `At most ${mostClasses()} classes.`;
  return new Set(names).size < names.length ? "Each class once." : null;
}

function classTrouble(d) {
  if (d.outcome === "classes") return classNamesTrouble(classNamesOf(d));
  const [no, yes] = [d.no.trim(), d.yes.trim()];
  if (d.outcome !== "yes/no" || (!no && !yes)) return null;
  if (!no || !yes) return "Say how both no and yes are written, or leave both empty.";
  return no === yes ? "No and yes must be written in different ways." : null;
}

export const missing = {
  data: (d) => {
    if (!d.data) return "Choose a file.";
    if (!inputsOf(d).length) return "Say which column is an input.";
    if (!outputOf(d)) return "Say which column is the private outcome.";
    return classTrouble(d);
  },
  who: (d) => {
    if (!d.protect) return "Say who is protected.";
    if (d.protect === "rows") return rowsTrouble(d);
    if (d.protect === "people" && !d.who) return "Say which column tells whose a row is.";
    if (d.protect === "people" && !d.people) return "The column that tells whose a row is could not be read.";
    return d.facts ? null : "The input columns could not be read.";
  },
  bounds: (d) => (boundsOf(d) ? null : (numberTrouble(d.lower) ?? numberTrouble(d.upper) ?? "Type both bounds, the lower one first.")),
  model: (d) => {
    const trouble = d.model === "learn" ? learningTrouble(d) : kernelTrouble(d);
    return trouble ?? (atOf(d) ? null : "Say where predictions are wanted.");
  },
  budget: (d) => {
    const delta = deltaOf(d);
    if (!(d.epsilon > 0)) return "Epsilon must be above 0.";
    return delta > 0 && delta < 1 ? null : "Delta must lie between 0 and 1.";
  },
};
