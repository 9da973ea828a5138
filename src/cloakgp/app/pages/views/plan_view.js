// One plan, which a custodian may take up again.

import { api } from "../core/api.js";
import { when } from "../core/format.js";
import { go } from "../core/router.js";
import { isCustodian } from "../core/session.js";
import { takeUp } from "../core/take_up.js";
import { noiseTiles } from "../noise/noise_tiles.js";
import { settingsFacts } from "../release/settings_facts.js";
import { button, link } from "../ui/buttons.js";
import { fill, h } from "../ui/dom.js";
import { problem } from "../ui/notes.js";
import { pageHead } from "../ui/page_head.js";
import { tip } from "../ui/tip.js";

// Plans of earlier versions know their noise only.
function whatToExpect({ error_summary: error, summary }) {
  return error
    ? [h("h2", {}, "Error to be expected", tip("expected error")), noiseTiles(error, { noise: summary })]
    : [h("h2", {}, "Noise that a release would carry", tip("noise std")), noiseTiles(summary)];
}

export async function planView(root, { id }) {
  const plan = await api.plan(id);
  const trouble = h("div", {});
  const take = async () => {
    try {
      await takeUp(plan);
      go("/new/preview");
    } catch (error) {
      fill(trouble, problem(error));
    }
  };
  root.append(
    h("p", { class: "crumbs" }, link("Plans", "#/plans")),
    pageHead(plan.name, `Kept ${when(plan.created)} by ${plan.by}. A plan is public and costs nothing.`),
    isCustodian() ? h("p", {}, button("Take up this plan", take, { class: "button primary" })) : "",
    trouble,
    h(
      "section",
      { class: "card" },
      ...whatToExpect(plan),
    ),
    h(
      "section",
      { class: "card" },
      h("h2", {}, "Settings", tip("plan")),
      settingsFacts(plan.settings, plan.certificate),
    ),
  );
}
