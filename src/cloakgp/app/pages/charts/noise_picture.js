// The noise, before anything is spent: over one input, as a map, or in the order of its size.

import { axes } from "./axes.js";
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

function noiseByInput(answer, sample, names, output, { height = 360 } = {}) {
  const { x, pick } = sorted(answer);
  const noise = pick(answer.noise_std);
  const own = pick(answer.gp_std);
  const limit = answer.fades_at;
  const faded = noise.map((value) => value >= limit);
  const most = Math.max(...noise, ...(own ?? [0]));
  const top = Math.max(Math.min(most * 1.12, limit * 1.6), Math.min(...noise) * 1.2);
  return (c) => {
    const traces = runs(x, noise, faded).map((run) =>
      line(c, run, c.public, ["privacy noise", "too noisy to use"], { filled: true }),
    );
    if (own)
      traces.push({
        x,
        y: own,
        name: "what the model does not know anyway",
        legendrank: 2,
        mode: "lines",
        line: { color: c.soft, width: 1.5, dash: "dot" },
        hovertemplate: "%{y:.3~g}",
      });
    if (sample?.length) traces.push(rug(c, column(sample, 0), -0.035 * top));
    const shape = axes(c, { x: names[0], y: `std, in units of ${output}`, height });
    shape.yaxis.range = [-0.06 * top, top];
    shape.xaxis.range = padded(x, sample);
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
      words: `Privacy noise by ${names[0]}: std from ${short(Math.min(...noise))} to ${short(Math.max(...noise))}, ${faded.filter(Boolean).length} of ${noise.length} points too noisy to use.`,
    };
  };
}

function noiseMap(answer, sample, names, { height = 440 } = {}) {
  const limit = answer.fades_at;
  return (c, width) => {
    const traces = [
      {
        x: column(answer.points, 0),
        y: column(answer.points, 1),
        mode: "markers",
        type: "scatter",
        name: "test points",
        text: answer.noise_std.map(short),
        hovertemplate: pointLabel(names, "noise std "),
        marker: {
          size: markerSize(answer.points.length, width),
          color: answer.noise_std,
          colorscale: BLUE_TO_RED,
          cmin: 0,
          cmax: limit,
          opacity: clarity(answer.noise_std, limit),
          line: { width: 0 },
          colorbar: colourBar(c, "noise std", width),
        },
      },
    ];
    if (sample?.length) traces.push(dots(c, sample));
    const shape = axes(c, { x: names[0], y: names[1], height });
    shape.hovermode = "closest";
    return {
      traces,
      layout: shape,
      words: `Map of the privacy noise at ${answer.points.length} points: std from ${short(Math.min(...answer.noise_std))} to ${short(Math.max(...answer.noise_std))}. Faint circles are too noisy to use.`,
    };
  };
}

// For three and more inputs: the points in the order of their noise.
function noiseRanked(answer, output, { height = 320 } = {}) {
  const noise = [...answer.noise_std].sort((a, b) => a - b);
  const share = noise.map((_, place) => (100 * (place + 0.5)) / noise.length);
  const faded = noise.map((value) => value >= answer.fades_at);
  return (c) => ({
    traces: runs(share, noise, faded).map((run) =>
      line(c, run, c.public, ["privacy noise", "too noisy to use"], { filled: true }),
    ),
    layout: axes(c, { x: "share of the test points, %", y: `std, in units of ${output}`, height }),
    words: `Privacy noise of the test points in order: std from ${short(noise[0])} to ${short(noise.at(-1))}.`,
  });
}

export function noisePicture(answer, sample, names, output, options) {
  if (names.length === 1) return noiseByInput(answer, sample, names, output, options);
  return names.length === 2 ? noiseMap(answer, sample, names, options) : noiseRanked(answer, output, options);
}
