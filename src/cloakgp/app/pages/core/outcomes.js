// What outcomes are, and what is predicted of them.

export const OUTCOMES = { real: "a number", "yes/no": "yes or no", count: "a count" };

// What an axis, or a number, is about.
export function predicted(settings) {
  if (settings.outcome === "yes/no") return `probability of ${settings.output}${settings.classes ? `: ${settings.classes[1]}` : ""}`;
  return settings.outcome === "count" ? `${settings.output}, expected` : settings.output;
}

// In which unit an error is told.
export const errorUnit = (outcome, output) => (outcome === "yes/no" ? "std, as a probability" : `std, in units of ${output}`);
