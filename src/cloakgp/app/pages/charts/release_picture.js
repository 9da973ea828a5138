// What was released, and what a reader makes of it.

import { columnsIn } from "../core/columns.js";
import { predicted } from "../core/outcomes.js";
import { axes } from "./axes.js";
import { alpha } from "./colours.js";
import { curvesByLevel, marks } from "./level_picture.js";
import { placed, splitByLevel, suit } from "./positions.js";
import {
  rug,
  runs,
  line,
  sorted,
  outcomeRange,
  padded,
  short,
  BLUE_TO_RED,
  VIRIDIS,
  markerSize,
  colourBar,
  makeRoom,
  pointLabel,
  clarity,
  dots,
  column,
} from "./traces.js";

function band(c, x, low, high, colour, name) {
  const edge = { mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false };
  return [
    { x, y: low, ...edge },
    { x, y: high, ...edge, fill: "tonexty", fillcolor: colour, name, showlegend: Boolean(name) },
  ];
}

function releaseByInput(release, which, asked) {
  const [input] = columnsIn(release);
  const label = predicted(release.settings);
  const { x: at, pick } = sorted(release);
  const x = placed(input, at);
  const released = which === "released" ? pick(release.released) : null;
  const noise = pick(release.noise_std);
  const denoised = pick(release.denoised);
  const [lower, upper] = [pick(release.lower), pick(release.upper)];
  const unknown = pick(release.unknown) ?? x.map(() => false); // where hardly more is known than before
  return (c) => {
    const traces = [];
    if (lower) traces.push(...band(c, x, lower, upper, alpha(c.free, 0.2), "95 % band"));
    if (released) {
      traces.push(
        ...runs(x, released, unknown).map((run) =>
          line(c, run, c.private, ["released", "released, too noisy to use"], { width: 1.8 }),
        ),
        noiseBars(c, x, released, noise, unknown),
      );
    }
    if (denoised) {
      const names = ["prediction", "prediction, hardly known"];
      traces.push(...runs(x, denoised, unknown).map((run) => line(c, run, c.free, names)));
    }
    if (asked?.points.length) {
      traces.push({
        x: column(asked.points, 0), // dates are typed as dates
        y: asked.mean,
        name: "your questions",
        mode: "markers",
        marker: { size: 9, color: c.public, line: { color: c.card, width: 1.5 } },
        error_y: {
          type: "data",
          symmetric: false,
          array: asked.upper.map((v, i) => v - asked.mean[i]),
          arrayminus: asked.lower.map((v, i) => asked.mean[i] - v),
          color: c.public,
          thickness: 1.5,
          width: 4,
        },
        hovertemplate: "%{y:.4~g}",
      });
    }
    const [low, high] = outcomeRange(release);
    if (release.inputs_sample?.length)
      traces.push(rug(c, placed(input, column(release.inputs_sample, 0)), low + 0.04 * (high - low)));
    const shape = axes(c, { x: input.name, y: label, height: 420 });
    shape.yaxis.range = [low, high];
    const others = [...(release.inputs_sample ?? []), ...(asked?.points ?? [])];
    suit(shape.xaxis, input, padded(at, others.filter(([value]) => typeof value === "number")));
    return {
      traces,
      layout: shape,
      words: `${released ? "Released" : "Predicted"} ${label} by ${input.name}, at ${x.length} points.`,
    };
  };
}

// Bars of one std at some twenty points: all of them would hide the line.
function noiseBars(c, x, released, noise, faded) {
  const every = Math.max(1, Math.round(x.length / 20));
  const kept = x.map((_, place) => place).filter((place) => place % every === 0 && !faded[place]);
  const pick = (list) => kept.map((place) => list[place]);
  return {
    x: pick(x),
    y: pick(released),
    mode: "markers",
    name: "noise, one std",
    marker: { size: 1, color: alpha(c.private, 0.5) },
    hoverinfo: "skip",
    error_y: { type: "data", array: pick(noise), color: alpha(c.private, 0.45), thickness: 1.2, width: 3 },
  };
}

function releaseMap(release, which) {
  const inputs = columnsIn(release);
  const output = predicted(release.settings);
  const values = release[which];
  const certain = which === "noise_std" || !release.unknown ? null : clarity(release.unknown);
  return (c, width) => {
    const low = Math.min(...values);
    const span = Math.max(...values) - low || 1;
    const size = markerSize(values.length, width);
    const traces = [
      {
        x: placed(inputs[0], column(release.points, 0)),
        y: placed(inputs[1], column(release.points, 1)),
        mode: "markers",
        type: "scatter",
        name: output,
        text: values.map(
          (value, place) =>
            `${short(value)}${which === "noise_std" ? "" : ` (noise std ${short(release.noise_std[place])})`}`,
        ),
        hovertemplate: pointLabel(inputs),
        marker: {
          size: values.map((value) => size * (0.55 + (0.6 * (value - low)) / span)),
          color: values,
          colorscale: which === "noise_std" ? BLUE_TO_RED : VIRIDIS,
          opacity: certain ?? 0.9,
          line: { width: 0 },
          colorbar: colourBar(c, which === "noise_std" ? "noise std" : output, width),
        },
      },
    ];
    if (release.inputs_sample?.length) traces.push(dots(c, release.inputs_sample, inputs));
    const shape = axes(c, { x: inputs[0].name, y: inputs[1].name, height: 470 });
    makeRoom(shape, width);
    suit(shape.xaxis, inputs[0]);
    suit(shape.yaxis, inputs[1]);
    shape.hovermode = "closest";
    return {
      traces,
      layout: shape,
      words: `Map of ${output} at ${values.length} points, from ${short(low)} to ${short(low + span)}. At faint circles hardly more is known than before.`,
    };
  };
}

// `which` numbers are shown; `asked` are questions and their answers, shown over one input. Null for more inputs.
export function releasePicture(release, which, asked) {
  const inputs = columnsIn(release);
  const n = inputs.length;
  if (n === 1) return inputs[0].kind === "level" ? marks(release, asked) : releaseByInput(release, which, asked);
  if (n === 2 && splitByLevel(inputs)) return curvesByLevel(release);
  return n === 2 ? releaseMap(release, which) : null;
}
