// The expected error, before anything is spent: over one input, as a map, or in the order of its size.

import { errorUnit } from "../core/outcomes.js";
import { axes } from "./axes.js";
import { alpha } from "./colours.js";
import { curves, placed, splitByLevel, suit } from "./positions.js";
import { surfacePicture } from "./surface_picture.js";
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
  makeRoom,
  pointLabel,
  clarity,
  dots,
  column,
} from "./traces.js";

const LINE = ["expected error", "hardly more known than before"];
const OWN = "even without privacy noise";
const noiseName = (isForecast) => (isForecast ? "of which privacy noise" : "privacy noise in what is released");

function noiseByInput(answer, sample, [input], unit, { height = 360, isForecast } = {}) {
  const { x: at, pick } = sorted(answer);
  const x = placed(input, at);
  const [error, noise, own, unknown] = [answer.expected_error, answer.noise_std, answer.gp_std, answer.unknown].map(pick);
  // Noise that readers see through may be far larger than what they will be off by: it may leave the picture.
  const top = Math.min(1.12 * Math.max(...error, ...noise), 1.7 * Math.max(...error));
  const thin = (c, y, name, rank, colour, dash) => ({
    x,
    y,
    name,
    legendrank: rank,
    mode: "lines",
    line: { color: colour, width: 1.6, dash },
    hovertemplate: "%{y:.3~g}",
  });
  return (c) => {
    const traces = runs(x, error, unknown).map((run) => line(c, run, c.public, LINE, { filled: true }));
    traces.push(thin(c, noise, noiseName(isForecast), 2, c.private, "dash"), thin(c, own, OWN, 3, c.soft, "dot"));
    if (sample?.length) traces.push(rug(c, placed(input, column(sample, 0)), -0.035 * top));
    const shape = axes(c, { x: input.name, y: unit, height });
    shape.yaxis.range = [-0.06 * top, top];
    suit(shape.xaxis, input, padded(at, sample));
    return { traces, layout: shape, words: `Expected error by ${input.name}: ${said(answer)}` };
  };
}

// The numbers of a surface, where the test points are a whole grid; null where they are not.
function surfaceOf(answer, sample) {
  const { plane, points, expected_error: error } = answer;
  if (!plane) return null;
  const [across, up] = plane.places.map((place) => [...new Set(column(points, place))].sort((a, b) => a - b));
  if (across.length < 3 || up.length < 3 || across.length * up.length !== points.length) return null;
  const [x, y] = [across, up].map((values) => new Map(values.map((value, place) => [value, place])));
  const rows = (list) => {
    const found = up.map(() => new Array(across.length).fill(0));
    points.forEach((point, place) => {
      found[y.get(point[plane.places[1]])][x.get(point[plane.places[0]])] = list[place];
    });
    return found;
  };
  const high = Math.max(...error);
  const ticks = tickValues(high);
  return {
    ...plane,
    across,
    up,
    near_prior: rows(answer.unknown.map(Number)),
    unknown_from: 0.5,
    inputs: sample?.map((row) => plane.places.map((place) => row[place])),
    views: {
      uncertainty: { values: rows(error), low: 0, high, ticks, tick_words: ticks.map(short), label: "expected error", hides_unknown: false },
    },
  };
}

// From 0 on, in steps of 1, 2 or 5 times a power of ten.
function tickValues(high) {
  const power = 10 ** Math.floor(Math.log10(high / 4 || 1));
  const step = power * ([1, 2, 5].find((times) => times * power >= high / 5) ?? 10);
  return Array.from({ length: Math.floor(high / step) + 1 }, (_, place) => place * step);
}

function noiseMap(answer, sample, inputs, { height = 440 } = {}) {
  const surface = surfaceOf(answer, sample);
  if (surface) return surfacePicture(surface, "uncertainty", inputs);
  const { expected_error: error, noise_std: noise, unknown } = answer;
  return (c, width) => {
    const traces = [
      {
        x: placed(inputs[0], column(answer.points, 0)),
        y: placed(inputs[1], column(answer.points, 1)),
        mode: "markers",
        type: "scatter",
        name: "test points",
        text: error.map((value, place) => `${short(value)}, privacy noise ${short(noise[place])}`),
        hovertemplate: pointLabel(inputs, "expected error "),
        marker: {
          size: markerSize(answer.points.length, width),
          color: error,
          colorscale: BLUE_TO_RED,
          cmin: 0,
          cmax: Math.max(...error),
          opacity: clarity(unknown),
          line: { width: 0 },
          colorbar: colourBar(c, "expected error", width),
        },
      },
    ];
    if (sample?.length) traces.push(dots(c, sample, inputs));
    const shape = axes(c, { x: inputs[0].name, y: inputs[1].name, height });
    makeRoom(shape, width);
    suit(shape.xaxis, inputs[0]);
    suit(shape.yaxis, inputs[1]);
    shape.hovermode = "closest";
    return { traces, layout: shape, words: `Map of the expected error: ${said(answer)}` };
  };
}

function said({ expected_error: error, unknown }) {
  const faded = unknown.filter(Boolean).length;
  return `std from ${short(Math.min(...error))} to ${short(Math.max(...error))}; at ${faded} of ${error.length} points hardly more will be known than before.`;
}

// For three and more inputs: the points in the order of their error.
function noiseRanked(answer, unit, { height = 320, isForecast } = {}) {
  const order = answer.expected_error.map((_, place) => place).sort((a, b) => answer.expected_error[a] - answer.expected_error[b]);
  const [error, noise, unknown] = [answer.expected_error, answer.noise_std, answer.unknown].map((list) => order.map((place) => list[place]));
  const share = error.map((_, place) => (100 * (place + 0.5)) / error.length);
  const dot = (c) => ({ color: alpha(c.private, 0.5), size: 4 });
  return (c) => ({
    traces: [
      ...runs(share, error, unknown).map((run) => line(c, run, c.public, LINE, { filled: true })),
      { x: share, y: noise, name: noiseName(isForecast), legendrank: 2, mode: "markers", marker: dot(c), hovertemplate: "%{y:.3~g}" },
    ],
    layout: axes(c, { x: "test points in the order of their error, %", y: unit, height }),
    words: `Expected error of the test points in order: ${said(answer)}`,
  });
}

// Where inputs have levels: a bar for each, or a curve over the other input.
function noiseByLevel(answer, inputs, unit, { height = 360 } = {}) {
  const error = answer.expected_error;
  const split = splitByLevel(inputs);
  const along = inputs[split?.along ?? 0];
  const words = `Expected error by ${inputs.map(({ name }) => name).join(" and ")}: ${said(answer)}`;
  const bars = (c) => [
    { x: column(answer.points, 0), y: error, type: "bar", name: LINE[0], width: 0.5, marker: { color: c.public, opacity: clarity(answer.unknown) }, hovertemplate: "%{y:.3~g}" },
  ];
  const lines = (c) =>
    curves(answer.points, inputs, split).flatMap(({ level, colour, places }) => {
      const x = placed(along, places.map((place) => answer.points[place][split.along]));
      const [y, unknown] = [error, answer.unknown].map((list) => places.map((place) => list[place]));
      return runs(x, y, unknown).map((run, place) => ({ ...line(c, run, colour, [level, level]), showlegend: place === 0 }));
    });
  return (c) => {
    const shape = axes(c, { x: along.name, y: unit, height });
    suit(shape.xaxis, along);
    shape.yaxis.range = [0, 1.12 * Math.max(...error)];
    return { traces: split ? lines(c) : bars(c), layout: shape, words };
  };
}

// `inputs` are columns; `what` is {output, outcome}.
export function noisePicture(answer, sample, inputs, { output, outcome }, options) {
  const unit = errorUnit(outcome, output);
  if (inputs.length > 2) return noiseRanked(answer, unit, options);
  if (splitByLevel(inputs) || (inputs.length === 1 && inputs[0].kind === "level")) return noiseByLevel(answer, inputs, unit, options);
  return inputs.length === 1 ? noiseByInput(answer, sample, inputs, unit, options) : noiseMap(answer, sample, inputs, options);
}
