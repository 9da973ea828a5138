// From what was typed into the steps to the server's settings, and what is still missing.

import { count, points, typed } from "./format.js";
import { session } from "./store.js";

export const inputsOf = (d) => d.columns.filter((name) => d.roles[name] === "input");
export const outputOf = (d) => d.columns.find((name) => d.roles[name] === "output") ?? null;

export const FAMILIES = [
  ["EQ", "very smooth"],
  ["Matern52", "smooth"],
  ["Matern32", "somewhat rough"],
  ["Matern12", "rough"],
];

export const DESIGNS = [
  ["mse", "least noise on average"],
  ["posterior", "least error of denoised predictions"],
  ["max", "least noise at the worst test point"],
  ["volume", "the paper's smallest noise volume"],
];

const short = (value) => String(Number(value.toPrecision(8)));

export function boundsOf(d) {
  const lower = typed(d.lower);
  const upper = typed(d.upper);
  return lower !== null && upper !== null && lower < upper ? [lower, upper] : null;
}

export function kernelOf(d) {
  if (d.asText) return d.kernelText.trim() || null;
  const scales = inputsOf(d).map((_, place) => typed(d.lengthscales[place]));
  const spread = typed(d.spread);
  const positive = (value) => value !== null && value > 0;
  if (!scales.length || !scales.every(positive) || !positive(spread)) return null;
  const scale = scales.length === 1 ? short(scales[0]) : `[${scales.map(short).join(", ")}]`;
  const level =
    d.level && boundsOf(d) ? ` + Constant(${short(((boundsOf(d)[1] - boundsOf(d)[0]) / 2) ** 2)})` : "";
  return `${d.family}(${scale}, variance=${short(spread ** 2)})${level}`;
}

export function ownPoints(d) {
  return points(d.ownPoints, inputsOf(d).length);
}

export function atOf(d) {
  if (d.where === "own") {
    try {
      const rows = ownPoints(d);
      return rows.length ? { points: rows } : null;
    } catch {
      return null;
    }
  }
  const n = typed(d.perAxis);
  return Number.isInteger(n) && n >= 2 ? `grid:${n}` : null;
}

// Inducing inputs: how many, null for none, undefined if what was typed is no such number.
export function inducingOf(d) {
  if (d.inducing.trim() === "") return null;
  const n = typed(d.inducing);
  return Number.isInteger(n) && n >= 1 && n <= mostInducing() ? n : undefined;
}

export const mostInducing = () => session.get().me?.most_inducing ?? 500;
const exactRows = () => session.get().me?.exact_rows ?? Infinity;
export const needsInducing = (d) => d.kind === "predictions" && (d.rows ?? 0) > exactRows();

function inducingTrouble(d) {
  const n = inducingOf(d);
  if (n === undefined) return `Inducing inputs: a whole number from 1 to ${mostInducing()}, or empty.`;
  if (n === null && needsInducing(d))
    return `Say how many inducing inputs: more than ${count(exactRows())} rows need them.`;
  return n !== null && d.kind === "function"
    ? "A whole function has no inducing inputs. Leave their number empty."
    : null;
}

// What keeps a step from being done, in words, or null. In the order of the steps.
export const missing = {
  data: (d) => {
    if (!d.data) return "Choose a file.";
    if (!inputsOf(d).length) return "Say which column is a public input.";
    if (!outputOf(d)) return "Say which column is the private outcome.";
    return d.facts ? null : "The input columns could not be read.";
  },
  bounds: (d) => (boundsOf(d) ? null : "Type both bounds, the lower one first."),
  model: (d) => {
    if (!kernelOf(d)) return "Fill in the kernel.";
    if (!(typed(d.scatter) > 0)) return "Say how far single outcomes lie from the curve.";
    if (d.mean.trim() !== "" && typed(d.mean) === null) return "The prior mean must be a number, or empty.";
    return inducingTrouble(d) ?? (atOf(d) ? null : "Say where predictions are wanted.");
  },
  budget: (d) => {
    const delta = typed(d.delta);
    if (!(d.epsilon > 0)) return "Epsilon must be above 0.";
    return delta > 0 && delta < 1 ? null : "Delta must lie between 0 and 1.";
  },
};

export function settingsOf(d) {
  const ready = Object.values(missing).every((check) => check(d) === null);
  return ready ? allSettings(d) : null;
}

function allSettings(d) {
  return {
    data: d.data,
    inputs: inputsOf(d),
    output: outputOf(d),
    bounds: boundsOf(d),
    kernel: kernelOf(d),
    noise: Number(short(typed(d.scatter) ** 2)),
    mean: typed(d.mean),
    at: atOf(d),
    epsilon: d.epsilon,
    delta: typed(d.delta),
    design: d.design,
    kind: d.kind,
    inducing: inducingOf(d),
  };
}

export const sameSettings = (one, other) => JSON.stringify(one) === JSON.stringify(other);

// The draft that a kept plan came from, as far as its settings tell.
export function draftOf(plan, file, facts) {
  const s = plan.settings;
  const roles = Object.fromEntries(s.inputs.map((name) => [name, "input"]));
  const isGrid = typeof s.at === "string";
  return {
    data: s.data,
    columns: file.columns,
    rows: file.rows,
    roles: { ...roles, [s.output]: "output" },
    facts,
    lower: String(s.bounds[0]),
    upper: String(s.bounds[1]),
    asText: true,
    kernelText: s.kernel,
    scatter: short(Math.sqrt(s.noise)),
    mean: s.mean === null || s.mean === undefined ? "" : String(s.mean),
    design: s.design,
    kind: s.kind,
    inducing: s.inducing ? String(s.inducing) : "",
    where: isGrid ? "grid" : "own",
    perAxis: isGrid ? s.at.replace("grid:", "") : "",
    ownPoints: isGrid ? "" : s.at.points.map((point) => point.join(", ")).join("\n"),
    epsilon: s.epsilon,
    delta: String(s.delta),
    planName: plan.name,
    seen: 4,
  };
}

// Starting values, from what is public: the range of the inputs and the bounds.
export function startingValues(d) {
  const changes = {};
  const names = inputsOf(d);
  const round = (value) => String(Number(value.toPrecision(2)));
  if (d.facts && d.lengthscales.length !== names.length) {
    changes.lengthscales = names.map((name) => {
      const [low, high] = d.facts.ranges[name] ?? [0, 1];
      return round((high - low) / 4 || 1);
    });
  }
  const bounds = boundsOf(d);
  if (bounds && d.spread === "") changes.spread = round((bounds[1] - bounds[0]) / 4);
  if (bounds && d.scatter === "") changes.scatter = round((bounds[1] - bounds[0]) / 8);
  if (names.length && d.perAxis === "") changes.perAxis = String({ 1: 100, 2: 15, 3: 6 }[names.length] ?? 3);
  if (needsInducing(d) && d.inducing === "") changes.inducing = "200";
  if (d.facts && d.delta === "")
    changes.delta = String(10 ** -(Math.ceil(Math.log10(Math.max(d.facts.rows, 2))) + 1));
  return changes;
}
