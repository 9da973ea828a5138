// Predictions where an input has levels: a mark for each of them, or a curve over the other input.

import { columnsIn } from "../core/columns.js";
import { predicted } from "../core/outcomes.js";
import { axes } from "./axes.js";
import { alpha } from "./colours.js";
import { curves, placed, splitByLevel, suit } from "./positions.js";
import { column, outcomeRange, padded } from "./traces.js";

// One input with levels: what is predicted of each, with where it lies.
export function marks(release, asked) {
  const [input] = columnsIn(release);
  const label = predicted(release.settings);
  const bars = (from, means) => ({
    type: "data",
    symmetric: false,
    array: from.upper.map((value, place) => value - means[place]),
    arrayminus: from.lower.map((value, place) => means[place] - value),
    thickness: 2,
    width: 6,
  });
  return (c) => {
    const own = {
      x: column(release.points, 0),
      y: release.denoised ?? release.released,
      mode: "markers",
      name: "prediction, with where it lies (95 %)",
      marker: { size: 10, color: c.free },
      hovertemplate: "%{y:.4~g}",
    };
    if (release.lower) own.error_y = { ...bars(release, own.y), color: c.free };
    const shape = axes(c, { x: input.name, y: label, height: 380 });
    suit(shape.xaxis, input);
    shape.yaxis.range = outcomeRange(release);
    return { traces: [own, ...questions(c, asked, input, bars)], layout: shape, words: `Predicted ${label} for ${input.levels.length} levels of ${input.name}.` };
  };
}

// Levels that were not there have no place.
function questions(c, asked, input, bars) {
  const known = (asked?.points ?? []).map(([level]) => input.levels.map(String).indexOf(String(level)));
  if (!known.some((code) => code >= 0)) return [];
  const means = asked.mean;
  return [
    {
      x: known.map((code) => (code < 0 ? null : code + 0.2)),
      y: means,
      mode: "markers",
      name: "your questions",
      marker: { size: 9, color: c.public },
      error_y: { ...bars(asked, means), color: c.public },
      hovertemplate: "%{y:.4~g}",
    },
  ];
}

// Two inputs of which one has levels.
export function curvesByLevel(release) {
  const inputs = columnsIn(release);
  const split = splitByLevel(inputs);
  const along = inputs[split.along];
  const label = predicted(release.settings);
  const values = release.denoised ?? release.released;
  return (c) => {
    const traces = curves(release.points, inputs, split).flatMap(({ level, colour, places }) => {
      const pick = (list) => places.map((place) => list[place]);
      const x = placed(along, places.map((place) => release.points[place][split.along]));
      const edge = { x, mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false };
      const band = release.lower
        ? [
            { ...edge, y: pick(release.lower) },
            { ...edge, y: pick(release.upper), fill: "tonexty", fillcolor: alpha(colour, 0.13) },
          ]
        : [];
      const line = { x, y: pick(values), name: level, mode: "lines", line: { color: colour, width: 3 }, hovertemplate: "%{y:.4~g}" };
      return [...band, line];
    });
    const shape = axes(c, { x: along.name, y: label, height: 420 });
    const range = padded(column(release.points, split.along).sort((a, b) => a - b));
    suit(shape.xaxis, along, range);
    shape.yaxis.range = outcomeRange(release);
    return { traces, layout: shape, words: `Predicted ${label} by ${along.name}, one curve for each level of ${inputs[split.by].name}.` };
  };
}
