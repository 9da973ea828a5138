// Probabilities of several classes in one picture: a curve with its band for each; or, over levels, marks.

import { columnsIn } from "../core/columns.js";
import { predicted } from "../core/outcomes.js";
import { axes } from "./axes.js";
import { alpha } from "./colours.js";
import { PALETTE, placed, suit } from "./positions.js";
import { column, line, outcomeRange, padded, rug, runs, sorted } from "./traces.js";

// Whether one picture can hold them all; else one class is looked at.
export const allAtOnce = (release) => release.settings.inputs.length === 1 && release.by_class.length <= PALETTE.length;

export function classPicture(release, asked) {
  const [input] = columnsIn(release);
  const label = predicted(release.settings);
  const isLevel = input.kind === "level";
  return (c) => {
    const traces = release.by_class.flatMap((one, place) => {
      const own = { name: one.name, legendgroup: one.name };
      const drawn = isLevel ? marks(release, one, place, own) : curve(c, release, input, one, place, own);
      return [...drawn, ...questions(c, asked, input, place, own)];
    });
    const [low, high] = outcomeRange(release);
    if (!isLevel && release.inputs_sample?.length)
      traces.push(rug(c, placed(input, column(release.inputs_sample, 0)), low + 0.04 * (high - low)));
    const shape = axes(c, { x: input.name, y: label, height: 420 });
    shape.yaxis.range = [low, high];
    const others = [...(release.inputs_sample ?? []), ...(asked?.points ?? [])];
    suit(shape.xaxis, input, padded(sorted(release).x, others.filter(([value]) => typeof value === "number")));
    return { traces, layout: shape, words: `${label} by ${input.name}: one ${isLevel ? "mark" : "curve"} for each of ${release.by_class.map((one) => one.name).join(", ")}.` };
  };
}

function curve(c, release, input, one, place, own) {
  const { x: at, pick } = sorted(release);
  const x = placed(input, at);
  const edge = { x, mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false, legendgroup: own.legendgroup };
  const band = [
    { ...edge, y: pick(one.lower) },
    { ...edge, y: pick(one.upper), fill: "tonexty", fillcolor: alpha(PALETTE[place], 0.13) },
  ];
  const found = runs(x, pick(one.probability), pick(one.unknown));
  const lines = found.map((run, first) => ({ ...line(c, run, PALETTE[place], [own.name, own.name]), ...own, showlegend: first === 0 }));
  return [...band, ...lines];
}

const beside = (place, n) => 0.5 * ((place + 0.5) / n - 0.5);

function bars(numbers) {
  return {
    type: "data",
    symmetric: false,
    array: numbers.upper.map((value, at) => value - numbers.probability[at]),
    arrayminus: numbers.lower.map((value, at) => numbers.probability[at] - value),
    thickness: 2,
    width: 4,
  };
}

function marks(release, one, place, own) {
  const shift = beside(place, release.by_class.length);
  const x = column(release.points, 0).map((code) => code + shift);
  return [{ ...own, x, y: one.probability, mode: "markers", marker: { size: 9, color: PALETTE[place] }, error_y: { ...bars(one), color: PALETTE[place] }, hovertemplate: "%{y:.4~g}" }];
}

// Answers to questions: dates are typed as dates, and levels that were not there have no place.
function questions(c, asked, input, place, own) {
  const answer = asked?.by_class?.[place];
  if (!answer) return [];
  const levels = input.levels.map(String);
  const at = ([value]) => (input.kind === "level" ? (levels.includes(String(value)) ? levels.indexOf(String(value)) + beside(place, asked.by_class.length) + 0.05 : null) : value);
  return [
    {
      ...own,
      x: asked.points.map(at),
      y: answer.probability,
      showlegend: false,
      mode: "markers",
      marker: { size: 10, symbol: "diamond", color: PALETTE[place], line: { color: c.card, width: 1.5 } },
      error_y: { ...bars(answer), color: PALETTE[place] },
      hovertemplate: "%{y:.4~g}",
    },
  ];
}
