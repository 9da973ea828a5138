// The settings of a plan or a release, one by one.

import { number, percent } from "../core/format.js";
import { OUTCOMES, isChance } from "../core/outcomes.js";
import { boxWords, inputsLabel, protectedWords } from "../core/protection.js";
import { isForecast } from "../core/settings.js";
import { h } from "../ui/dom.js";
import { facts } from "../ui/tables.js";
import { given } from "./given.js";

function noiseFacts({ outcome, noise }) {
  if (isChance(outcome)) return [];
  return outcome === "count" ? [["variance of a count", `${number(noise ?? 1)} times its rate`]] : [["noise variance", number(noise)]];
}

const kernelFacts = (settings) => [
  ["kernel", h("code", {}, settings.kernel)],
  ...noiseFacts(settings),
  ...(settings.inducing ? [["inducing inputs", settings.inducing]] : []),
];

function classFacts({ outcome, classes }) {
  if (!classes) return [];
  return outcome === "classes" ? [["classes", classes.join(", ")]] : [["no and yes", classes.join(" and ")]];
}

export function settingsFacts(settings, certificate) {
  return facts([
    [inputsLabel(settings), settings.inputs.join(", ")],
    ["private outcome", `${settings.output}, ${OUTCOMES[settings.outcome ?? "real"]}`],
    ...classFacts(settings),
    ...(settings.categories ? [["categories", settings.categories.join(", ")]] : []),
    ...(settings.missing_inputs === "drop" ? [["missing inputs", "such rows are left out"]] : []),
    ["protects", protectedWords(settings)],
    ...(settings.box ? [["box", boxWords(settings)]] : []),
    ...(isChance(settings.outcome) ? [] : [["bounds", `${number(settings.bounds[0])} to ${number(settings.bounds[1])}`]]),
    ...(settings.model === "learn" ? [["model", "learned, privately"]] : kernelFacts(settings)),
    ...(settings.given ? [["starts from", given(settings.given)]] : []),
    [
      "test points",
      typeof settings.at === "string" ? settings.at : `${settings.at?.points?.length ?? 0} points`,
    ],
    ["kind", settings.kind === "function" ? "the whole function" : "predictions"],
    ...(certificate?.shares?.length > 1 ? [["stages", `at most ${certificate.shares.length}`]] : []),
    ...(isForecast(settings) ? [] : [["design", certificate?.design ?? settings.design]]),
    ["promise", `ε = ${number(settings.epsilon)}, δ = ${number(settings.delta)}`],
    ...givenFacts(certificate?.before ?? []),
    [settings.n_people ? "people" : "rows", settings.n_people ?? certificate?.n_rows ?? "–"],
    ...(settings.ids === "exact" ? [["ids", "each way of writing one counts as another person"]] : []),
    ["numbers measured", certificate?.n_measurements ?? "–"],
    ...(certificate?.gap === undefined ? [] : [["gap to the best noise", `at most ${percent(certificate.gap)}`]]),
  ]);
}

// What was spent before on the same outcomes, by releases that this one was given.
function givenFacts(before) {
  if (!before.length) return [];
  const pairs = before.map(([epsilon, delta]) => `ε = ${number(epsilon)}, δ = ${number(delta)}`);
  return [["not the total", `it was given ${pairs.join("; ")}`]];
}
