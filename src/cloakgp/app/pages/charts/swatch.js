// A line of a picture's key: a sample of the trace, and its name.

import { h } from "../ui/dom.js";

export function swatch(trace) {
  const sample = h("i", { "aria-hidden": "true" });
  const isBand = trace.fill === "tonexty";
  const isLine = trace.mode?.includes("lines") && !isBand;
  const isTick = trace.marker?.symbol === "line-ns-open" || trace.marker?.size === 1;
  sample.className = isBand ? "swatch-band" : isLine ? "swatch-line" : isTick ? "swatch-tick" : "swatch-dot";
  const colour = isBand
    ? trace.fillcolor
    : isLine
      ? trace.line.color
      : (trace.error_y?.color ?? trace.marker.color);
  sample.style.color = typeof colour === "string" ? colour : "var(--public)";
  if (isLine) sample.style.borderTopStyle = { dot: "dotted", dash: "dashed" }[trace.line.dash] ?? "solid";
  return h("li", {}, sample, trace.name);
}
