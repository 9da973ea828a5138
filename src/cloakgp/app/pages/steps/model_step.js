// Step 4: the model, which is learned unless experts say otherwise, and where predictions are wanted.

import { draft } from "../core/draft.js";
import { missing } from "../core/missing.js";
import { startingValues } from "../core/starting_values.js";
import { noisePanel } from "../noise/noise_panel.js";
import { fill, h } from "../ui/dom.js";
import { kernelCard } from "./kernel_card.js";
import { modelCard } from "./model_card.js";
import { testPointsCard } from "./test_points_card.js";

export const modelStep = {
  id: "model",
  name: "Model",
  title: "Model and test points",
  lead: () => "Nothing needs to be known here. Go on, or look at what experts can set.",
  check: missing.model,
  render(root) {
    const suggest = () => draft.set(startingValues(draft.get()));
    suggest();
    const panel = noisePanel({ height: 330 });
    const inside = h("div", {});
    const experts = h("details", { class: "more experts" }, h("summary", {}, "Expert settings"), inside);

    function show() {
      const isLearned = draft.get().model === "learn";
      fill(inside, isLearned ? null : kernelCard(), testPointsCard());
    }

    function changed() {
      suggest(); // a kernel needs more than a model that is learned
      show();
      experts.open = draft.get().model !== "learn";
    }

    changed();
    root.append(
      h(
        "div",
        { class: "columns sided" },
        h("div", {}, modelCard(changed), experts),
        h("div", { class: "sticky" }, panel),
      ),
    );
    return () => panel.done();
  },
};
