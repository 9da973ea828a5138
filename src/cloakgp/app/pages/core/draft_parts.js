// What single parts of a draft say, or null where they say nothing yet.

import { session } from "./session.js";
import { ORIGIN, plainColumns } from "./columns.js";
import { isChance, isLinked } from "./outcomes.js";
import { typed } from "./typed.js";
import { typedPoints } from "./typed_points.js";

export const inputsOf = (d) => d.columns.filter((name) => d.roles[name] === "input");
export const outputOf = (d) => d.columns.find((name) => d.roles[name] === "output") ?? null;

export const short = (value) => String(Number(value.toPrecision(8)));

// What the inputs are: found out where they are public, said in the box where they are not.
export function columnsOf(d) {
  const names = inputsOf(d);
  if (d.protect !== "rows") return d.facts?.columns ?? plainColumns(names);
  return plainColumns(names).map((column) => {
    const box = d.box[column.name];
    if (box?.kind === "date") return { ...column, kind: "date", origin: ORIGIN };
    return box?.kind === "level" ? { ...column, kind: "level", levels: levelsOf(box.names), closed: true } : column;
  });
}

export const levelsOf = (text) => text.split(/[,;\n]/).map((each) => each.trim()).filter((each) => each !== "");

export const classNamesOf = (d) => levelsOf(d.classNames);

// How the table is written and read, as far as it was said.
export function writtenOf(d) {
  return {
    ...(d.decimal ? { decimal: d.decimal } : {}),
    ...(d.encoding ? { encoding: d.encoding } : {}),
    ...(d.protect === "rows" || !d.categories.length ? {} : { categories: d.categories }),
    ...(d.protect !== "rows" && d.dropMissing ? { missing_inputs: "drop" } : {}),
  };
}

export function boundsOf(d) {
  if (isChance(d.outcome)) return [0, 1];
  const lower = typed(d.lower);
  const upper = typed(d.upper);
  return lower !== null && upper !== null && lower < upper ? [lower, upper] : null;
}

export function kernelOf(d) {
  if (d.asText) return d.kernelText.trim() || null;
  const columns = columnsOf(d);
  const places = (isLevel) => columns.map((_, place) => place).filter((place) => (columns[place].kind === "level") === isLevel);
  const [smooth, levels] = [places(false), places(true)];
  const scales = smooth.map((place) => typed(d.lengthscales[place]));
  const spread = typed(d.spread);
  const positive = (value) => value !== null && value > 0;
  if (!columns.length || !scales.every(positive) || !positive(spread)) return null;
  const level = d.level && boundsOf(d) ? ` + Constant(${short(levelVariance(d))})` : "";
  const variance = `variance=${short(spread ** 2)}`;
  if (!levels.length) return `${d.family}(${listOf(scales)}, ${variance})${level}`;
  const category = `Category(0.5, ${smooth.length ? "" : `${variance}, `}active_dims=[${levels.join(", ")}])`;
  if (!smooth.length) return `${category}${level}`;
  return `${d.family}(${listOf(scales)}, ${variance}, active_dims=[${smooth.join(", ")}]) * ${category}${level}`;
}

function levelVariance(d) {
  if (isLinked(d.outcome)) return session.get().defaults.latent_level;
  const [lower, upper] = boundsOf(d);
  return ((upper - lower) / 2) ** 2;
}

const listOf = (scales) => (scales.length === 1 ? short(scales[0]) : `[${scales.map(short).join(", ")}]`);

export function pointsOf(d) {
  return typedPoints(d.ownPoints, columnsOf(d));
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

export const mostInducing = () => session.get().me?.most_inducing ?? Infinity;
export const exactRows = () => session.get().me?.exact_rows ?? Infinity;
export const needsInducing = (d) =>
  d.model !== "learn" && !isLinked(d.outcome) && d.protect !== "rows" && d.kind === "predictions" && (d.rows ?? 0) > exactRows();

export const mostLearned = () => session.get().me?.learned_inputs ?? Infinity;
export const canLearn = (d) => inputsOf(d).length <= mostLearned();
