// How many rows each cell of a box has, with what is unsure about it: over one input, or as a map.

import { columnsIn } from "../core/columns.js";
import { axes } from "./axes.js";
import { alpha } from "./colours.js";
import { placed, suit } from "./positions.js";
import { VIRIDIS, colourBar, column, makeRoom, markerSize, pointLabel, short } from "./traces.js";

function byInput({ points, rows, std }, input) {
  const { name } = input;
  const x = placed(input, column(points, 0));
  const edge = { x, mode: "lines", line: { width: 0, shape: "hvh" }, hoverinfo: "skip" };
  const drawn = (c) => ({
    traces: [
      { ...edge, y: rows.map((n, cell) => Math.max(0, n - 1.96 * std[cell])), showlegend: false },
      {
        ...edge,
        y: rows.map((n, cell) => n + 1.96 * std[cell]),
        fill: "tonexty",
        fillcolor: alpha(c.private, 0.16),
        name: "95 % band",
      },
      {
        x,
        y: rows,
        mode: "lines",
        line: { color: c.private, width: 2, shape: "hvh" },
        name: "rows in a cell",
        hovertemplate: "%{y:.3~g} rows",
      },
    ],
    layout: axes(c, { x: name, y: "rows in a cell", height: 260 }),
    words: `About how many rows each of ${rows.length} cells of ${name} has: from ${short(Math.min(...rows))} to ${short(Math.max(...rows))}.`,
  });
  return (c) => {
    const picture = drawn(c);
    suit(picture.layout.xaxis, input);
    return picture;
  };
}

function byPlace({ points, rows, std }, inputs) {
  return (c, width) => {
    const shape = axes(c, { x: inputs[0].name, y: inputs[1].name, height: 380 });
    makeRoom(shape, width);
    suit(shape.xaxis, inputs[0]);
    suit(shape.yaxis, inputs[1]);
    shape.hovermode = "closest";
    const trace = {
      x: placed(inputs[0], column(points, 0)),
      y: placed(inputs[1], column(points, 1)),
      mode: "markers",
      type: "scatter",
      name: "cells",
      text: rows.map((n, cell) => `${short(n)} rows, give or take ${short(std[cell])}`),
      hovertemplate: pointLabel(inputs),
      marker: {
        size: markerSize(points.length, width),
        symbol: "square",
        color: rows,
        cmin: 0,
        colorscale: VIRIDIS,
        line: { width: 0 },
        colorbar: colourBar(c, "rows in a cell", width),
      },
    };
    return {
      traces: [trace],
      layout: shape,
      words: `Map of about how many rows each of ${rows.length} cells has, from ${short(Math.min(...rows))} to ${short(Math.max(...rows))}.`,
    };
  };
}

// Null for more inputs than two, and where inputs are public.
export function densityPicture(release) {
  const { density } = release;
  const inputs = columnsIn(release);
  if (!density || inputs.length > 2) return null;
  return inputs.length === 1 ? byInput(density, inputs[0]) : byPlace(density, inputs);
}
