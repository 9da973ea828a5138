// Step 6: the noise, large, with the settings that move it most. Ends by keeping the plan.

import { api } from "../core/api.js";
import { draft } from "../core/draft.js";
import { boundsOf, classNamesOf, inputsOf, kernelOf, outputOf } from "../core/draft_parts.js";
import { number } from "../core/format.js";
import { OUTCOMES, isChance } from "../core/outcomes.js";
import { deltaOf, inputsLabel, protectSettings, protectedWords } from "../core/protection.js";
import { isForecast, sameSettings, settingsOf } from "../core/settings.js";
import { watched } from "../core/watched.js";
import { given } from "../release/given.js";
import { designsCard } from "../noise/designs_card.js";
import { noisePanel } from "../noise/noise_panel.js";
import { link } from "../ui/buttons.js";
import { fill, h } from "../ui/dom.js";
import { field, textInput } from "../ui/forms.js";
import { chip, note, sentence } from "../ui/notes.js";
import { progressLine } from "../ui/progress_line.js";
import { facts } from "../ui/tables.js";
import { tip } from "../ui/tip.js";
import { epsilonSlider } from "./epsilon_slider.js";

const learnedFacts = (d) => [
  ["model", "learned, privately"],
  ...(d.given ? [["starts from", given(d.given)]] : []),
];

const kernelFacts = (d) => [
  ["kernel", h("code", {}, kernelOf(d) ?? "")],
  ...(d.inducing.trim() && !isForecast(d) ? [["inducing inputs", d.inducing]] : []),
];

const suggestedName = (d) => `${outputOf(d)} by ${inputsOf(d).join(" and ")}`;

export const previewStep = {
  id: "preview",
  name: "Preview",
  title: "The noise, beforehand",
  lead: () =>
    isForecast(draft.get())
      ? "A forecast of the error, from what is public so far. The smoother and the less scattered outcomes are, the smaller it gets. Looking costs nothing."
      : "This is not a simulation. Neither the noise nor what the model leaves unknown depends on the private outcomes, so both are known before anything is spent. Looking costs nothing.",
  nextText: "Keep this plan and go on",
  check: (d) => (d.planName.trim() === "" ? "Give the plan a name." : null),
  async next(context) {
    const d = draft.get();
    const settings = settingsOf(d);
    if (d.plan && sameSettings(d.plan.of, { settings, name: d.planName })) {
      context.on();
      return;
    }
    const leaving = new AbortController();
    const progress = progressLine(() => leaving.abort());
    context.busy(progress);
    try {
      const send = (options) => api.savePlan(settings, d.planName.trim(), options);
      const plan = await watched(send, progress.show, leaving.signal);
      draft.set({ plan: { id: plan.id, of: { settings, name: d.planName } }, release: null });
      context.on();
    } catch (error) {
      if (error.name !== "AbortError") context.fail(sentence(error.message));
    } finally {
      context.busy(null);
    }
  },
  render(root) {
    if (draft.get().planName === "") draft.set({ planName: suggestedName(draft.get()) });
    const summary = h("div", {});
    const say = (d) =>
      fill(
        summary,
        facts([
          ["file", d.shown ?? d.data],
          [inputsLabel(d), inputsOf(d).join(", ")],
          ["private outcome", `${outputOf(d)}, ${OUTCOMES[d.outcome]}`],
          ["protects", protectedWords(protectSettings(d))],
          ...(d.outcome === "classes" ? [["classes", classNamesOf(d).join(", ")]] : []),
          ...(isChance(d.outcome) ? [] : [["bounds", (boundsOf(d) ?? []).map((bound) => number(bound)).join(" to ")]]),
          ...(d.model === "learn" ? learnedFacts(d) : kernelFacts(d)),
          ["promise", `ε = ${number(d.epsilon)}, δ = ${number(deltaOf(d))}`],
        ]),
      );
    const stop = draft.subscribe(say);
    say(draft.get());
    const warning = h("div", {});
    const panel = noisePanel({
      height: 430,
      full: true,
      onAnswer: (answer) => {
        fill(
          warning,
          answer?.unknown.every(Boolean)
            ? note(
                "warn",
                h(
                  "p",
                  {},
                  "Hardly more would be known than before, at any point. More rows, narrower bounds or a larger ε would help; nothing has been spent.",
                ),
              )
            : null,
        );
      },
    });
    root.append(
      h(
        "div",
        { class: "columns wide-left" },
        h("div", {}, panel, warning, isForecast(draft.get()) ? null : designsCard()),
        h(
          "div",
          {},
          h(
            "section",
            { class: "card" },
            epsilonSlider(),
            h(
              "p",
              { class: "hint" },
              "Change anything else ",
              link("in the model", "#/new/model"),
              " or ",
              link("the bounds", "#/new/bounds"),
              ".",
            ),
          ),
          h(
            "section",
            { class: "card" },
            h("h2", {}, "The plan", tip("plan"), " ", chip("public", "public")),
            field(
              "Name",
              textInput(draft.get().planName, (value) => draft.set({ planName: value }), {
                id: "plan-name",
                maxlength: "80",
              }),
              { hint: "Analysts will see it, with the settings below." },
            ),
            summary,
          ),
        ),
      ),
    );
    return () => {
      stop();
      panel.done();
    };
  },
};
