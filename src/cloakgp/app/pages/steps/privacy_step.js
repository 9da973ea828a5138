// Step 4: how private the release is to be, and what that costs in noise.

import { missing } from "../core/missing.js";
import { noisePanel } from "../noise/noise_panel.js";
import { fill, h } from "../ui/dom.js";
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
      fill(
        meaning,
        (answer?.promise ?? []).map((sentence) => h("p", {}, sentence)),
      );
    const panel = noisePanel({ height: 300, onAnswer: sayMeaning });
    const curve = curveCard();
    root.append(
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
