// What outcomes are, and what is predicted of them.

export const OUTCOMES = { real: "a number", "yes/no": "yes or no", count: "a count", classes: "one of several classes" };

// Those that are told as probabilities, and need no bounds.
export const isChance = (outcome) => outcome === "yes/no" || outcome === "classes";

// Those whose kernel is of f behind a probability or a rate.
export const isLinked = (outcome) => (outcome ?? "real") !== "real";

// What an axis, or a number, is about.
export function predicted(settings) {
  if (settings.outcome === "yes/no") return `probability of ${settings.output}${settings.classes ? `: ${settings.classes[1]}` : ""}`;
  if (settings.outcome === "classes") return `${settings.output}: probability of each class`;
  return settings.outcome === "count" ? `${settings.output}, expected` : settings.output;
}

// In which unit an error is told.
export const errorUnit = (outcome, output) => (isChance(outcome) ? "std, as a probability" : `std, in units of ${output}`);

// A release of several classes as if it were of one: is it this one, yes or no?
export function ofClass(release, name) {
  const own = release.by_class.find((each) => each.name === name);
  return {
    ...release,
    ...own,
    by_class: null,
    denoised: own.probability,
    denoised_std: own.std,
    name: release.name,
    settings: { ...release.settings, outcome: "yes/no", classes: [null, name] },
  };
}
