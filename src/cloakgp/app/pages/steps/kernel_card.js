// What is expected of the curve before any outcome is seen.

import { draft } from "../core/draft.js";
import { kernelOf, mostInducing, needsInducing, outputOf } from "../core/draft_parts.js";
import { count } from "../core/format.js";
import { isLinked } from "../core/outcomes.js";
import { hidesInputs } from "../core/protection.js";
import { session } from "../core/session.js";
import { isForecast } from "../core/settings.js";
import { fill, h } from "../ui/dom.js";
import { choice, field, numberInput, textInput } from "../ui/forms.js";
import { tip } from "../ui/tip.js";
import { kernelFields } from "./kernel_fields.js";

const FORMS = [
  ["no", "in plain fields"],
  ["yes", "as text, for experts"],
];

const CHANCE = "f = 0 is 50 %, 1 is 84 %, 2 is 98 %; −1 is 16 %.";
const BEHIND = {
  "yes/no": `What you describe is f, a curve behind the probability of yes. ${CHANCE}`,
  classes: `What you describe is f, a curve behind the probability of a class; each class has its own. ${CHANCE} Then they are divided by their total.`,
  count: "What you describe is f, the natural logarithm of the rate: f = 0 is 1, 2.3 is 10.",
};

const set = (name) => (value) => draft.set({ [name]: value });

export function kernelCard() {
  const root = h("section", { class: "card" });

  function chooseForm(value) {
    const now = draft.get();
    draft.set({ asText: value === "yes", kernelText: now.kernelText || kernelOf(now) || "" });
    show();
    root.querySelector("input:checked").focus();
  }

  function show() {
    const d = draft.get();
    fill(
      root,
      h("h2", {}, "What you expect"),
      BEHIND[d.outcome] ? h("p", { class: "hint" }, BEHIND[d.outcome]) : null,
      choice("Kernel", FORMS, d.asText ? "yes" : "no", chooseForm, { hideLegend: true }),
      d.asText ? kernelText(d) : kernelFields(),
      scatterAndMean(d),
      isForecast(d) ? null : inducingField(d),
      h(
        "p",
        { class: "hint" },
        `The numbers here started from ${hidesInputs(d) ? "the box" : "the range of the inputs"}${isLinked(d.outcome) ? "" : " and from your bounds"}: all public. Change them by what you know, not by what you saw in the outcomes.`,
      ),
    );
  }

  show();
  return root;
}

function kernelText(d) {
  const input = textInput(d.kernelText, set("kernelText"), { id: "kernel-text", class: "code" });
  return field("Kernel", input, {
    tip: tip("kernel"),
    hint: "As in Python: EQ, Matern12, Matern32, Matern52, Periodic, RationalQuadratic, Linear, Polynomial, Gibbs, Constant, with + and *.",
  });
}

function countVariance(d) {
  return field("Variance of a count", numberInput(d.scatter, set("scatter"), { id: "scatter" }), {
    hint: "How many times its rate? Empty: 1, as if each came by itself.",
  });
}

// Of f: how single outcomes scatter follows from the probability, and nearly from the rate.
function meanOfF(d) {
  const isCount = d.outcome === "count";
  const mean = field("Prior mean of f", numberInput(d.mean, set("mean"), { id: "mean" }), {
    tip: tip("prior mean"),
    hint: isCount ? "Empty: between the logarithms of the bounds." : "Empty: 0, which is 50 %.",
  });
  return h("div", { class: "pair" }, isCount ? countVariance(d) : null, mean);
}

function scatterAndMean(d) {
  if (isLinked(d.outcome)) return meanOfF(d);
  const output = outputOf(d);
  return h(
    "div",
    { class: "pair" },
    field("Scatter", numberInput(d.scatter, set("scatter"), { id: "scatter" }), {
      tip: tip("scatter"),
      hint: `How far from the curve is one ${output}? (std)`,
      suffix: output,
    }),
    field("Prior mean", numberInput(d.mean, set("mean"), { id: "mean" }), {
      tip: tip("prior mean"),
      hint: "Empty: the middle of the bounds.",
      suffix: output,
    }),
  );
}

function inducingField(d) {
  const input = numberInput(d.inducing, set("inducing"), { id: "inducing", inputmode: "numeric" });
  return field("Inducing inputs", input, {
    tip: tip("inducing inputs"),
    hint: needsInducing(d)
      ? `At most ${mostInducing()}. ${count(d.rows)} rows are too many to do without.`
      : `Empty: every row counts by itself. For thousands of rows, ${session.get().defaults.inducing} is quicker.`,
  });
}
