// Step 5: how private the release is to be, and what that costs in noise.

import { draft } from "../core/draft.js";
import { missing } from "../core/missing.js";
import { noisePanel } from "../noise/noise_panel.js";
import { given } from "../release/given.js";
import { fill, h } from "../ui/dom.js";
import { note } from "../ui/notes.js";
import { tip } from "../ui/tip.js";
import { curveCard } from "./curve_card.js";
import { deltaField } from "./delta_field.js";
import { epsilonSlider } from "./epsilon_slider.js";

export const privacyStep = {
  id: "budget",
  name: "Privacy",
  title: "How private?",
  lead: () =>
    "Move the slider: a smaller ε hides each person better and takes more noise. Looking is free, so try as many as you like.",
  check: missing.budget,
  render(root) {
    const meaning = h("div", { class: "promise", "aria-live": "polite" });
    const sayMeaning = (answer) =>
      answer?.rough ||
      fill(
        meaning,
        (answer?.promise ?? []).map((sentence) => h("p", {}, sentence)),
      );
    const panel = noisePanel({ height: 300, onAnswer: sayMeaning });
    const curve = curveCard();
    const earlier = draft.get().model === "learn" ? draft.get().given : null;
    root.append(
      ...(earlier ? [note("public", h("p", {}, "This plan starts from ", given(earlier), ", which is paid for."))] : []),
      h(
        "div",
        { class: "columns sided" },
        h(
          "div",
          {},
          h("section", { class: "card" }, epsilonSlider(), deltaField()),
          h(
            "section",
            { class: "card" },
            h("h2", {}, "What this promises", tip("differential privacy")),
            meaning,
          ),
        ),
        h("div", {}, panel, curve),
      ),
    );
    return () => {
      panel.done();
      curve.done();
    };
  },
};
