// The frame of every picture: axes, letters and colours.

import { plain } from "./plain.js";

export function axes(c, { x, y, height }) {
  const axis = (title) => ({
    title: { text: plain(title), font: { size: 13, color: c.soft }, standoff: 8 },
    gridcolor: c.line,
    zerolinecolor: c.line,
    linecolor: c.line,
    tickfont: { size: 12, color: c.soft },
    automargin: true,
    fixedrange: true,
  });
  return {
    height,
    margin: { l: 48, r: 14, t: 10, b: 44 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: {
      family: "system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif",
      color: c.ink,
      size: 13,
    },
    xaxis: axis(x),
    yaxis: axis(y),
    showlegend: false, // the key is written in HTML, where it wraps and can be read aloud
    hovermode: "x unified",
    hoverlabel: { bgcolor: c.card, bordercolor: c.line, font: { color: c.ink, size: 12 } },
    dragmode: false,
  };
}
