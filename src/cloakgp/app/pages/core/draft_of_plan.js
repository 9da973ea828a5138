// The draft that a kept plan came from, as far as its settings tell.

import { short } from "./draft_parts.js";
import { protectDraft } from "./protection.js";

export function draftOfPlan(plan, file, facts, people) {
  const s = plan.settings;
  const roles = Object.fromEntries(s.inputs.map((name) => [name, "input"]));
  const isGrid = typeof s.at === "string";
  const isLearned = s.model === "learn";
  return {
    data: s.data,
    shown: file.shown,
    columns: file.columns,
    rows: file.rows,
    whoNames: file.who,
    roles: { ...roles, [s.output]: "output" },
    ...protectDraft(s),
    facts,
    people,
    outcome: s.outcome ?? "real",
    ...classesPart(s),
    decimal: s.decimal ?? "",
    encoding: s.encoding ?? "",
    categories: s.categories ?? [],
    dropMissing: s.missing_inputs === "drop",
    lower: String(s.bounds[0]),
    upper: String(s.bounds[1]),
    ...(isLearned ? { model: "learn" } : kernelPart(s)),
    where: isGrid ? "grid" : "own",
    perAxis: isGrid ? s.at.replace("grid:", "") : "",
    ownPoints: isGrid ? "" : s.at.points.map((point) => point.join(", ")).join("\n"),
    epsilon: s.epsilon,
    delta: String(s.delta),
    planName: plan.name,
    seen: 5,
  };
}

function classesPart(s) {
  if (s.outcome === "classes") return { classNames: s.classes.join("\n") };
  return { no: s.classes?.[0] ?? "", yes: s.classes?.[1] ?? "" };
}

// Of counts, their variance over the rate; else a std, where there is one.
function scatterOf({ outcome, noise }) {
  if (noise === null || noise === undefined) return "";
  return short(outcome === "count" ? noise : Math.sqrt(noise));
}

function kernelPart(s) {
  return {
    model: "kernel",
    asText: true,
    kernelText: s.kernel,
    scatter: scatterOf(s),
    mean: s.mean === null || s.mean === undefined ? "" : String(s.mean),
    design: s.design,
    kind: s.kind,
    inducing: s.inducing ? String(s.inducing) : "",
  };
}
