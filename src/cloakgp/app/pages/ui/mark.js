// The sign of the app: a curve and its band.

import { svg } from "./dom.js";

export function mark() {
  const path = "M6 42 C18 8, 30 12, 40 30 S58 46, 74 14";
  return svg(
    "svg",
    { viewBox: "0 0 80 52", class: "mark", "aria-hidden": "true" },
    svg("path", { d: path, class: "mark-band" }),
    svg("path", { d: path, class: "mark-line" }),
  );
}
