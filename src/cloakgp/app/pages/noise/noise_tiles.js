// How much noise there is, in four numbers.

import { number, percent } from "../core/format.js";
import { tile, tiles } from "../ui/tiles.js";

export function noiseTiles(summary, extra) {
  const width = summary.bounds_width;
  const one = (key, label) =>
    tile(number(summary[key], 3), label, width ? `${percent(summary[key] / width)} of the bounds` : null);
  return tiles(
    one("smallest", "smallest"),
    one("median", "median"),
    one("rms", "root mean square"),
    one("largest", "largest"),
    extra,
  );
}
