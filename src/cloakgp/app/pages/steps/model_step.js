// Step 3: the model, and where predictions are wanted.

import { draft } from "../core/draft.js";
import { missing } from "../core/missing.js";
import { startingValues } from "../core/starting_values.js";
import { noisePanel } from "../noise/noise_panel.js";
import { h } from "../ui/dom.js";
import { kernelCard } from "./kernel_card.js";
import { testPointsCard } from "./test_points_card.js";

export const modelStep = {
  id: "model",
  name: "Model",
  title: "Model and test points",
  lead: () =>
    "Say what you expect before seeing any outcome: how smooth the curve is, how far it moves, and where readers will want it.",
  check: missing.model,
  render(root) {
    draft.set(startingValues(draft.get()));
    const panel = noisePanel({ height: 330 });
    root.append(
      h(
        "div",
        { class: "columns sided" },
        h("div", {}, kernelCard(), testPointsCard()),
        h("div", { class: "sticky" }, panel),
      ),
    );
    return () => panel.done();
  },
};
