// What the server suggests to begin with, worked out from what is public: the range of the inputs and the bounds.

import { boundsOf, canLearn, inputsOf, needsInducing } from "./draft_parts.js";
import { isLinked } from "./outcomes.js";
import { rangeOf } from "./protection.js";
import { session } from "./session.js";

const round = (value) => String(Number(value.toPrecision(2)));

// Changes to a draft: only what is not filled in yet.
export function startingValues(d) {
  const { defaults } = session.get();
  const changes = {};
  for (const name of ["family", "design", "kind", "epsilon"])
    if (d[name] === null) changes[name] = defaults[name];
  if (d.model === null) changes.model = canLearn(d) ? defaults.model : "kernel";
  const names = inputsOf(d);
  if (d.lengthscales.length !== names.length) {
    changes.lengthscales = names.map((name) => {
      const [low, high] = rangeOf(d, name) ?? [0, 1];
      return round(defaults.lengthscale_share * (high - low) || 1);
    });
  }
  const bounds = boundsOf(d);
  const width = bounds ? bounds[1] - bounds[0] : null;
  const linked = isLinked(d.outcome); // then what is described is behind probabilities or rates
  if (d.level === null) changes.level = linked;
  if (bounds && d.spread === "") changes.spread = linked ? String(defaults.latent_spread) : round(defaults.spread_share * width);
  if (bounds && d.scatter === "" && !linked) changes.scatter = round(defaults.scatter_share * width);
  const grids = defaults.points_per_axis;
  if (names.length && d.perAxis === "") changes.perAxis = String(grids[names.length - 1] ?? grids.at(-1));
  if (needsInducing({ ...d, ...changes }) && d.inducing === "") changes.inducing = String(defaults.inducing);
  return changes;
}
