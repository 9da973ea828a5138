// How large an error or noise is, in a few numbers; beside an error, `noise`'s own part, and `more` tiles.

import { number, percent } from "../core/format.js";
import { tile, tiles } from "../ui/tiles.js";

export function noiseTiles(summary, { noise = null, more = null } = {}) {
  const width = summary.bounds_width;
  const one = (of, key, label) =>
    tile(number(of[key], 3), label, width ? `${percent(of[key] / width)} of the bounds` : null);
  return tiles(
    one(summary, "smallest", "smallest"),
    one(summary, "median", "median"),
    one(summary, "largest", "largest"),
    noise ? one(noise, "median", "privacy noise, median") : null,
    more,
  );
}
