// The expected error against epsilon, and the noise.

import { number } from "../core/format.js";
import { axes } from "./axes.js";
import { short } from "./traces.js";

export function curvePicture(curve, epsilon, width, output, { height = 270 } = {}) {
  const eps = curve.map((point) => point.epsilon);
  const paper = curve.filter((point) => point.paper_rms !== null && point.paper_rms !== undefined);
  return (c) => {
    const traces = [
      {
        x: eps,
        y: curve.map((point) => point.rms),
        name: "expected error (root mean square)",
        mode: "lines+markers",
        line: { color: c.public, width: 3 },
        marker: { size: 6 },
        hovertemplate: "%{y:.3~g}",
      },
      {
        x: eps,
        y: curve.map((point) => point.noise_rms),
        name: "privacy noise",
        mode: "lines",
        line: { color: c.private, width: 1.6, dash: "dash" },
        hovertemplate: "%{y:.3~g}",
      },
    ];
    if (paper.length)
      traces.push({
        x: paper.map((point) => point.epsilon),
        y: paper.map((point) => point.paper_rms),
        name: "privacy noise by the paper's method",
        mode: "lines",
        line: { color: c.warn, width: 1.6, dash: "dot" },
        hovertemplate: "%{y:.3~g}",
      });
    const shape = axes(c, { x: "ε: more private to the left", y: `std, in units of ${output}`, height });
    Object.assign(shape.xaxis, {
      type: "log",
      tickvals: eps,
      ticktext: eps.map(String),
    });
    Object.assign(shape.yaxis, { type: "log", dtick: 1, tickformat: "~g" });
    shape.shapes = [
      {
        type: "line",
        yref: "paper",
        x0: epsilon,
        x1: epsilon,
        y0: 0,
        y1: 1,
        line: { color: c.private, width: 2 },
      },
      {
        type: "line",
        xref: "paper",
        x0: 0,
        x1: 1,
        y0: width,
        y1: width,
        line: { color: c.line, width: 1.5, dash: "dot" },
      },
    ];
    shape.annotations = [
      {
        x: Math.log10(epsilon),
        yref: "paper",
        y: 1,
        yanchor: "bottom",
        showarrow: false,
        text: `ε = ${number(epsilon, 3)}`,
        font: { size: 12, color: c.private },
      },
      {
        xref: "paper",
        x: 0,
        xanchor: "left",
        y: Math.log10(width),
        yanchor: "bottom",
        showarrow: false,
        text: "width of the bounds",
        font: { size: 11, color: c.soft },
      },
    ];
    shape.margin.t = 26;
    return {
      traces,
      layout: shape,
      words: `Expected error against epsilon: from ${short(curve[0].rms)} at epsilon ${short(eps[0])} to ${short(curve.at(-1).rms)} at epsilon ${short(eps.at(-1))}. Chosen: ${short(epsilon)}.`,
    };
  };
}
