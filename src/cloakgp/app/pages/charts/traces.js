// Pieces that several pictures are made of.

import { number } from "../core/format.js";
import { isChance } from "../core/outcomes.js";
import { alpha } from "./colours.js";
import { plain } from "./plain.js";
import { placed } from "./positions.js";

export const column = (rows, place) => rows.map((row) => row[place]);

export function rug(c, values, base, name = "inputs (public)") {
  return {
    x: values,
    y: values.map(() => base),
    mode: "markers",
    type: "scatter",
    name,
    legendrank: 3,
    hoverinfo: "skip",
    marker: { symbol: "line-ns-open", size: 9, color: alpha(c.soft, 0.55), line: { width: 1 } },
    cliponaxis: false,
  };
}

// The line in runs, good enough or faded. A run reaches over to its neighbours, so that the line stays whole.
export function runs(x, values, faded) {
  const found = [];
  for (let start = 0; start < x.length;) {
    let end = start;
    while (end + 1 < x.length && faded[end + 1] === faded[start]) end += 1;
    const [from, to] = faded[start]
      ? [Math.max(0, start - 1), Math.min(x.length, end + 2)]
      : [start, end + 1];
    found.push({
      x: x.slice(from, to),
      y: values.slice(from, to),
      faded: faded[start],
      first: !found.some((run) => run.faded === faded[start]),
    });
    start = end + 1;
  }
  return found;
}

export function line(c, run, colour, names, { width = 3, filled = false } = {}) {
  return {
    x: run.x,
    y: run.y,
    name: names[run.faded ? 1 : 0],
    mode: run.x.length > 1 ? "lines" : "markers",
    showlegend: run.first,
    legendrank: run.faded && names[1] !== names[0] ? 1 : 0, // what has one name is in its place
    line: run.faded ? { color: alpha(colour, 0.45), width, dash: "dot" } : { color: colour, width },
    marker: { color: alpha(colour, run.faded ? 0.45 : 1), size: 7 },
    fill: filled && run.x.length > 1 ? "tozeroy" : "none",
    fillcolor: alpha(colour, run.faded ? 0.05 : 0.16),
    hovertemplate: "%{y:.4~g}",
  };
}

export function sorted(answer) {
  const order = answer.points
    .map((_, place) => place)
    .sort((a, b) => answer.points[a][0] - answer.points[b][0]);
  const pick = (list) => (list ? order.map((place) => list[place]) : null);
  return { x: order.map((place) => answer.points[place][0]), pick };
}

export function padded(x, sample) {
  let low = x[0];
  let high = x.at(-1);
  for (const row of sample ?? []) {
    low = Math.min(low, row[0]);
    high = Math.max(high, row[0]);
  }
  const margin = 0.02 * (high - low || 1);
  return [low - margin, high + margin];
}

// From where to where predictions are drawn, with room below for the inputs' ticks.
export function outcomeRange({ settings, upper }) {
  const [low, bound] = settings.bounds;
  const rate = settings.outcome === "count" && upper ? Math.min(bound, 1.15 * Math.max(...upper)) : null;
  const span = (rate ?? bound) - low;
  return [low - 0.13 * span, low + (isChance(settings.outcome) ? 1.03 : rate ? 1 : 1.1) * span];
}

export const short = (value) => number(value, 3);
export const BLUE_TO_RED = [
  [0, "#2166ac"],
  [0.35, "#67a9cf"],
  [0.65, "#fddbc7"],
  [1, "#b2182b"],
];
export const VIRIDIS = [
  [0, "#3b2a7a"],
  [0.25, "#2f6c8f"],
  [0.5, "#1fa187"],
  [0.75, "#86d549"],
  [1, "#fde725"],
];

// What a point of a map says when it is pointed at: where it is, and its text.
export function pointLabel(columns, prefix = "") {
  const form = ({ kind }) => (kind === "number" ? ":.4~g" : "");
  const [one, other] = columns;
  return `${plain(one.name)} %{x${form(one)}}<br>${plain(other.name)} %{y${form(other)}}<br>${prefix}%{text}<extra></extra>`;
}

// As large as fits between neighbours on a grid of n points.
export function markerSize(n, width) {
  const side = Math.min(0.9 * width - 60, 340);
  return Math.max(4, Math.min(22, (0.92 * side) / Math.sqrt(n)));
}

const NARROW = 520; // pixels

// Where the colour bar is under a map, it needs room there.
export function makeRoom(shape, width) {
  if (width < NARROW) shape.margin.b = 116;
}

// Beside the map, or under it where the window is narrow.
export function colourBar(c, text, width) {
  const bar = {
    title: { text: plain(text), side: "right", font: { size: 12 } },
    thickness: 10,
    outlinewidth: 0,
    tickfont: { size: 11, color: c.soft },
  };
  // Below the axis' name, and of no matter to the margins, which plotly would widen for it.
  return width < NARROW
    ? { ...bar, orientation: "h", yref: "container", y: 0.15, yanchor: "top", title: { ...bar.title, side: "bottom" } }
    : bar;
}

// Faint where hardly more is known than before.
export const clarity = (unknown) => unknown.map((is) => (is ? 0.12 : 0.95));

export function dots(c, sample, columns) {
  return {
    x: placed(columns[0], column(sample, 0)),
    y: placed(columns[1], column(sample, 1)),
    mode: "markers",
    type: "scatter",
    name: "inputs (public)",
    hoverinfo: "skip",
    marker: { size: 3, color: alpha(c.ink, 0.55) },
  };
}
