// The noise, before anything is spent: over one input, as a map, or in the order of its size.

import { errorUnit } from "../core/outcomes.js";
import { axes } from "./axes.js";
import { curves, placed, splitByLevel, suit } from "./positions.js";
import {
  rug,
  runs,
  line,
  sorted,
  padded,
  short,
  BLUE_TO_RED,
  markerSize,
  colourBar,
  pointLabel,
  clarity,
  dots,
  column,
} from "./traces.js";

const NAMES = {
  noise: { short: "Privacy noise", line: ["privacy noise", "too noisy to use"], own: "what the model does not know anyway" },
  error: { short: "Expected error", line: ["expected error", "may say little"], own: "even without privacy noise" },
};
const valuesOf = (answer) => answer.expected_error ?? answer.noise_std;
const namesOf = (answer) => (answer.expected_error ? NAMES.error : NAMES.noise);

function noiseByInput(answer, sample, [input], unit, { height = 360 } = {}) {
  const { x: at, pick } = sorted(answer);
  const x = placed(input, at);
  const noise = pick(valuesOf(answer));
  const said = namesOf(answer);
  const own = pick(answer.gp_std);
  const limit = answer.fades_at;
  const faded = noise.map((value) => value >= limit);
  const most = Math.max(...noise, ...(own ?? [0]));
  const top = Math.max(Math.min(most * 1.12, limit * 1.6), Math.min(...noise) * 1.2);
  return (c) => {
    const traces = runs(x, noise, faded).map((run) => line(c, run, c.public, said.line, { filled: true }));
    if (own)
      traces.push({
        x,
        y: own,
        name: said.own,
        legendrank: 2,
        mode: "lines",
        line: { color: c.soft, width: 1.5, dash: "dot" },
        hovertemplate: "%{y:.3~g}",
      });
    if (sample?.length) traces.push(rug(c, placed(input, column(sample, 0)), -0.035 * top));
    const shape = axes(c, { x: input.name, y: unit, height });
    shape.yaxis.range = [-0.06 * top, top];
    suit(shape.xaxis, input, padded(at, sample));
    if (limit < top) {
      shape.shapes = [
        {
          type: "line",
          xref: "paper",
          x0: 0,
          x1: 1,
          y0: limit,
          y1: limit,
          line: { color: c.warn, width: 1.5, dash: "dash" },
        },
      ];
      shape.annotations = [
        {
          xref: "paper",
          x: 0.5,
          xanchor: "center",
          y: limit,
          yanchor: "bottom",
          showarrow: false,
          text: "above: too noisy to use",
          font: { size: 12, color: c.warn },
        },
      ];
    }
    return {
      traces,
      layout: shape,
      words: `${said.short} by ${input.name}: std from ${short(Math.min(...noise))} to ${short(Math.max(...noise))}, ${faded.filter(Boolean).length} of ${noise.length} points too noisy to use.`,
    };
  };
}

function noiseMap(answer, sample, inputs, { height = 440 } = {}) {
  const limit = answer.fades_at;
  const noise = valuesOf(answer);
  const said = namesOf(answer);
  return (c, width) => {
    const traces = [
      {
        x: placed(inputs[0], column(answer.points, 0)),
        y: placed(inputs[1], column(answer.points, 1)),
        mode: "markers",
        type: "scatter",
        name: "test points",
        text: noise.map(short),
        hovertemplate: pointLabel(inputs, `${said.short.toLowerCase()} `),
        marker: {
          size: markerSize(answer.points.length, width),
          color: noise,
          colorscale: BLUE_TO_RED,
          cmin: 0,
          cmax: limit,
          opacity: clarity(noise, limit),
          line: { width: 0 },
          colorbar: colourBar(c, said.short.toLowerCase(), width),
        },
      },
    ];
    if (sample?.length) traces.push(dots(c, sample, inputs));
    const shape = axes(c, { x: inputs[0].name, y: inputs[1].name, height });
    suit(shape.xaxis, inputs[0]);
    suit(shape.yaxis, inputs[1]);
    shape.hovermode = "closest";
    return {
      traces,
      layout: shape,
      words: `Map of the ${said.short.toLowerCase()} at ${noise.length} points: std from ${short(Math.min(...noise))} to ${short(Math.max(...noise))}. Faint circles are too noisy to use.`,
    };
  };
}

// For three and more inputs: the points in the order of their noise.
function noiseRanked(answer, unit, { height = 320 } = {}) {
  const said = namesOf(answer);
  const noise = [...valuesOf(answer)].sort((a, b) => a - b);
  const share = noise.map((_, place) => (100 * (place + 0.5)) / noise.length);
  const faded = noise.map((value) => value >= answer.fades_at);
  return (c) => ({
    traces: runs(share, noise, faded).map((run) => line(c, run, c.public, said.line, { filled: true })),
    layout: axes(c, { x: "share of the test points, %", y: unit, height }),
    words: `${said.short} of the test points in order: std from ${short(noise[0])} to ${short(noise.at(-1))}.`,
  });
}

// Where inputs have levels: a bar for each, or a curve over the other input.
function noiseByLevel(answer, inputs, unit, { height = 360 } = {}) {
  const noise = valuesOf(answer);
  const said = namesOf(answer);
  const split = splitByLevel(inputs);
  const along = inputs[split?.along ?? 0];
  const words = `${said.short} by ${inputs.map(({ name }) => name).join(" and ")}: std from ${short(Math.min(...noise))} to ${short(Math.max(...noise))}.`;
  const bars = (c) => [
    { x: column(answer.points, 0), y: noise, type: "bar", name: said.line[0], width: 0.5, marker: { color: c.public }, hovertemplate: "%{y:.3~g}" },
  ];
  const lines = () =>
    curves(answer.points, inputs, split).map(({ level, colour, places }) => ({
      x: placed(along, places.map((place) => answer.points[place][split.along])),
      y: places.map((place) => noise[place]),
      name: level,
      mode: "lines",
      line: { color: colour, width: 3 },
      hovertemplate: "%{y:.3~g}",
    }));
  return (c) => {
    const shape = axes(c, { x: along.name, y: unit, height });
    suit(shape.xaxis, along);
    shape.yaxis.range = [0, 1.12 * Math.max(...noise)];
    return { traces: split ? lines() : bars(c), layout: shape, words };
  };
}

// `inputs` are columns; `what` is {output, outcome}.
export function noisePicture(answer, sample, inputs, { output, outcome }, options) {
  const unit = errorUnit(outcome, output);
  if (inputs.length > 2) return noiseRanked(answer, unit, options);
  if (splitByLevel(inputs) || (inputs.length === 1 && inputs[0].kind === "level")) return noiseByLevel(answer, inputs, unit, options);
  return inputs.length === 1 ? noiseByInput(answer, sample, inputs, unit, options) : noiseMap(answer, sample, inputs, options);
}
