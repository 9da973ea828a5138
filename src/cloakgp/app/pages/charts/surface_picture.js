// A filled surface over two inputs, with contours; hatched where nothing to speak of is known.

import { axes } from "./axes.js";
import { alpha } from "./colours.js";
import { plain } from "./plain.js";
import { placed, suit } from "./positions.js";
import { column } from "./traces.js";

// Uniform to the eye, and told apart by everybody.
const MAGMA = ["#000004", "#1d1147", "#51127c", "#822681", "#b73779", "#e75263", "#fc8961", "#fec488", "#fcfdbf"];
const COLOURS = {
  prediction: "Viridis",
  uncertainty: MAGMA.map((colour, place) => [place / (MAGMA.length - 1), colour]),
  privacy: "Cividis",
};
const PALE = "#f4f4f2"; // on the colours, in both themes
const DARK = "#16181c";
const TALLEST = 600;
const NARROW = 560; // pixels, below which the colour bar is under the map
const MARGIN = { l: 58, r: 14, t: 10, b: 48 };
const BAR = 118; // beside the map
const UNDER = 86; // or under it

const scaled = (colours, low, high) => ({ colorscale: colours, zmin: low, zmax: high > low ? high : low + 1 });

function colourBar(c, view, isNarrow, height) {
  const bar = {
    title: { text: plain(view.label), side: isNarrow ? "bottom" : "right", font: { size: 12, color: c.soft } },
    thickness: 12,
    outlinewidth: 0,
    tickvals: view.ticks,
    ticktext: view.tick_words.map((word) => plain(word) + (isNarrow ? "" : "\u00a0\u00a0")), // away from the label
    tickfont: { size: 12, color: c.soft },
    len: 1,
  };
  if (!isNarrow) return { ...bar, x: 1.02, xanchor: "left", y: 0.5, ypad: 0 };
  // Below the axis' name, and of no matter to the margins, which plotly would widen for it.
  return { ...bar, orientation: "h", x: 0.5, yref: "container", y: (UNDER - 4) / height, yanchor: "top" };
}

// Lines at the bar's ticks; of privacy's share, where it is a half.
function contours(view, name) {
  if (name === "privacy") return { start: 0.5, end: 0.5, size: 1 };
  const inside = view.ticks.filter((tick) => tick > view.low && tick < view.high);
  if (inside.length === 0) return null;
  return { start: inside[0], end: inside.at(-1), size: inside[1] - inside[0] || 1 };
}

const STROKES = 48; // along the longer side, about, however coarse the grid is

// `n` numbers from the first to the last, and which of those there are is nearest to each.
const between = (values, n) =>
  Array.from({ length: n }, (_, place) => {
    const share = place / (n - 1);
    return [values[0] + share * (values.at(-1) - values[0]), Math.round(share * (values.length - 1))];
  });

// Strokes at every other point that is unknown, which together look like hatching.
function hatching(colour, map, [one, other], wide) {
  const more = Math.max(1, Math.round(STROKES / Math.max(map.across.length, map.up.length)));
  const [across, up] = [map.across, map.up].map((values) => between(values, more * values.length));
  const at = up.flatMap(([y, r], i) =>
    across.flatMap(([x, k], j) => (map.near_prior[r][k] >= map.unknown_from && i % 2 === j % 2 ? [[x, y]] : [])),
  );
  return {
    x: placed(one, column(at, 0)),
    y: placed(other, column(at, 1)),
    mode: "markers",
    type: "scatter",
    showlegend: false, // the words below the map tell
    hoverinfo: "skip",
    marker: {
      symbol: "line-ne-open",
      size: Math.max(5, Math.min(11, (1.3 * wide) / across.length)),
      color: colour,
      line: { width: 1 },
    },
  };
}

// `name` is the view's, `inputs` are columns.
export function surfacePicture(map, name, inputs) {
  const view = map.views[name];
  const [one, other] = map.places.map((place) => inputs[place]);
  const [x, y] = [placed(one, map.across), placed(other, map.up)];
  const isUnknown = map.near_prior.some((row) => row.some((share) => share >= map.unknown_from));
  const known = map.near_prior.flatMap((row, r) => row.flatMap((share, k) => (share < map.unknown_from ? [[r, k]] : [])));
  return (c, width) => {
    const isNarrow = width < NARROW;
    const spans = [map.across, map.up].map((values) => values.at(-1) - values[0]);
    const room = width - MARGIN.l - MARGIN.r - (isNarrow ? 0 : BAR);
    const tall = map.aspect ? (map.aspect * spans[1]) / spans[0] : 0.66;
    const wide = Math.min(room, TALLEST / tall);
    const inner = Math.max(wide * tall, 160);
    const height = inner + MARGIN.t + MARGIN.b + (isNarrow ? UNDER : 0);
    const lines = contours(view, name);
    const where = { x, y };
    const traces = [
      {
        ...where,
        z: view.values,
        type: "contour",
        ...scaled(COLOURS[name], view.low, view.high),
        contours: { coloring: "heatmap", showlines: Boolean(lines), ...lines },
        autocontour: false,
        line:
          name === "privacy" ? { color: DARK, width: 2 } : { color: alpha(PALE, 0.6), width: 0.8, smoothing: 1 },
        colorbar: colourBar(c, view, isNarrow, height),
        text: view.values.map((row) => row.map((value) => spoken(view, value))),
        hovertemplate: `${plain(one.name)} %{x}<br>${plain(other.name)} %{y}<br>${plain(view.label)} %{text}<extra></extra>`,
      },
    ];
    if (view.hides_unknown && isUnknown)
      traces.push({
        ...where,
        z: map.near_prior,
        type: "contour",
        contours: { type: "constraint", operation: "<", value: map.unknown_from }, // what is not so is filled
        fillcolor: c.card,
        line: { width: 0 },
        showscale: false,
        hoverinfo: "skip",
      });
    const stroke = { prediction: c.edge, uncertainty: alpha(DARK, 0.5), privacy: alpha(PALE, 0.7) }[name];
    if (isUnknown) traces.push(hatching(stroke, map, [one, other], wide));
    if (map.inputs?.length)
      traces.push({
        x: placed(one, column(map.inputs, 0)),
        y: placed(other, column(map.inputs, 1)),
        mode: "markers",
        type: "scatter",
        showlegend: false,
        hoverinfo: "skip",
        marker: {
          size: Math.max(isNarrow ? 1.5 : 2, Math.min(4.5, (isNarrow ? 45 : 70) / Math.sqrt(map.inputs.length))),
          color: alpha(PALE, 0.75),
          line: { width: 0.6, color: alpha(DARK, 0.55) },
        },
      });
    const shape = axes(c, { x: one.name, y: other.name, height: Math.round(height) });
    shape.width = Math.round(wide + MARGIN.l + MARGIN.r + (isNarrow ? 0 : BAR));
    shape.margin = { ...MARGIN, r: MARGIN.r + (isNarrow ? 0 : BAR), b: MARGIN.b + (isNarrow ? UNDER : 0) };
    shape.hovermode = "closest";
    for (const [axis, input, values] of [
      [shape.xaxis, one, map.across],
      [shape.yaxis, other, map.up],
    ]) {
      suit(axis, input, [values[0], values.at(-1)]);
      Object.assign(axis, { showgrid: false, zeroline: false, automargin: false, nticks: isNarrow ? 5 : 7 });
    }
    return { traces, layout: shape, words: words(view, known, map, inputs) };
  };
}

// A value as the colour bar would write it, in more digits: with its sign of money, or its %.
function spoken(view, value) {
  const mark = view.tick_words.find((word) => /^\p{Sc}/u.test(word))?.[0] ?? "";
  if (view.tick_words.some((word) => word.endsWith("%"))) return `${Math.round(100 * value)} %`;
  return `${mark}${new Intl.NumberFormat("en-GB", { maximumSignificantDigits: 3 }).format(value)}`;
}

function words(view, known, map, inputs) {
  const [one, other] = map.places.map((place) => inputs[place].name);
  const cells = map.across.length * map.up.length;
  const values = known.map(([r, k]) => view.values[r][k]);
  if (values.length === 0) return `Map of ${view.label} by ${one} and ${other}. Nothing to speak of is known anywhere.`;
  const share = Math.round((100 * values.length) / cells);
  return `Map of ${view.label} by ${one} and ${other}, from ${spoken(view, Math.min(...values))} to ${spoken(view, Math.max(...values))} where something is known, which is ${share} % of it.`;
}
