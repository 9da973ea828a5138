// Step 4: how private the release is to be, and what that costs in noise.

import { api } from "../api.js";
import { curvePicture } from "../charts/curve.js";
import { figure } from "../charts/figure.js";
import { count, number, typed } from "../format.js";
import { noisePanel } from "../preview.js";
import { boundsOf, missing, outputOf, settingsOf } from "../settings.js";
import { draft } from "../store.js";
import { tip } from "../terms.js";
import { button, chip, debounce, field, fill, h, numberInput, problem } from "../ui.js";
import { epsilonSlider } from "./epsilon.js";

const EPSILONS = [0.01, 0.03, 0.1, 0.3, 1, 3, 10];
let last = null; // {key, curve}

export const budget = {
  id: "budget",
  name: "Privacy",
  title: "How private?",
  lead: () =>
    "Move the slider: a smaller ε hides each person better and takes more noise. Looking is free, so try as many as you like.",
  check: missing.budget,
  render(root) {
    const chart = figure();
    const trouble = h("div", {});
    const state = h("p", { class: "hint", role: "status" });
    const meaning = h("div", { class: "promise", "aria-live": "polite" });
    let running = null;

    const deltaWords = () => {
      const d = draft.get();
      const value = typed(d.delta);
      const rows = d.facts?.rows;
      delta.fail(
        value === null || value <= 0 || value >= 1 ? "A number between 0 and 1, such as 0.0001." : null,
      );
      fill(
        advice,
        rows && value * rows >= 0.5
          ? h(
              "p",
              { class: "hint warn" },
              `That is large for ${count(rows)} rows: stay well below ${number(1 / rows, 2)}. `,
              button(
                "Use a safe one",
                () => {
                  const safe = String(10 ** -(Math.ceil(Math.log10(rows)) + 1));
                  delta.querySelector("input").value = safe;
                  draft.set({ delta: safe });
                  deltaWords();
                },
                { class: "button small" },
              ),
            )
          : null,
      );
    };
    const advice = h("div", {});
    const delta = field(
      "δ, delta",
      numberInput(
        draft.get().delta,
        (value) => {
          draft.set({ delta: value });
          deltaWords();
        },
        { id: "delta" },
      ),
      { tip: tip("delta"), hint: "How likely the promise may fail. Well below one over the number of rows." },
    );

    const drawCurve = () => {
      const d = draft.get();
      const bounds = boundsOf(d);
      if (last && bounds) chart.show(curvePicture(last.curve, d.epsilon, bounds[1] - bounds[0], outputOf(d)));
    };

    async function askCurve() {
      const settings = settingsOf(draft.get());
      if (!settings) return;
      const key = JSON.stringify({ ...settings, epsilon: 1 });
      if (last?.key === key) {
        drawCurve();
        return;
      }
      running?.abort();
      running = new AbortController();
      const mine = running;
      state.textContent = "Working out the curve…";
      try {
        const curve = await api.curve(settings, EPSILONS, mine.signal);
        if (mine !== running) return;
        last = { key, curve };
        fill(trouble);
        state.textContent = "";
        drawCurve();
      } catch (error) {
        if (error.name === "AbortError" || mine !== running) return;
        state.textContent = "";
        fill(trouble, problem(error));
      }
    }

    const later = debounce(askCurve, 600);
    const stop = draft.subscribe((d, changes) => {
      if (Object.keys(changes).length === 1 && "epsilon" in changes) drawCurve();
      later();
    });
    const panel = noisePanel({
      height: 300,
      onAnswer: (answer) =>
        fill(
          meaning,
          (answer?.promise ?? []).map((sentence) => h("p", {}, sentence)),
        ),
    });
    root.append(
      h(
        "div",
        { class: "columns sided" },
        h(
          "div",
          {},
          h("section", { class: "card" }, epsilonSlider(), delta, advice),
          h(
            "section",
            { class: "card" },
            h("h2", {}, "What this promises", tip("differential privacy")),
            meaning,
          ),
        ),
        h(
          "div",
          {},
          panel,
          h(
            "section",
            { class: "card" },
            h("div", { class: "panel-head" }, h("h2", {}, "Noise against ε"), chip("free", "costs nothing")),
            state,
            trouble,
            chart,
          ),
        ),
      ),
    );
    deltaWords();
    askCurve();
    return () => {
      stop();
      later.cancel();
      running?.abort();
      panel.done();
      chart.done();
    };
  },
};
