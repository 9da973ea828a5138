// What single parts of a draft say, or null where they say nothing yet.

import { session } from "./session.js";
import { typed, typedPoints } from "./typed.js";

export const inputsOf = (d) => d.columns.filter((name) => d.roles[name] === "input");
export const outputOf = (d) => d.columns.find((name) => d.roles[name] === "output") ?? null;

export const short = (value) => String(Number(value.toPrecision(8)));

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

export function pointsOf(d) {
  return typedPoints(d.ownPoints, inputsOf(d).length);
}

export function atOf(d) {
  if (d.where === "own") {
    try {
      const rows = pointsOf(d);
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
export const exactRows = () => session.get().me?.exact_rows ?? Infinity;
export const needsInducing = (d) =>
  d.model !== "learn" && d.protect !== "rows" && d.kind === "predictions" && (d.rows ?? 0) > exactRows();

export const mostLearned = () => session.get().me?.learned_inputs ?? Infinity;
export const canLearn = (d) => inputsOf(d).length <= mostLearned();
