// Plan another release of the same data, given this one. For custodians, where the model was learned; else null.

import { draft } from "../core/draft.js";
import { go } from "../core/router.js";
import { isCustodian } from "../core/session.js";
import { takeUp } from "../core/take_up.js";
import { button } from "../ui/buttons.js";
import { fill, h } from "../ui/dom.js";
import { problem } from "../ui/notes.js";
import { tip } from "../ui/tip.js";

export function moreCard(release) {
  const whole = release.settings.protect === "rows"; // a plan of whole rows starts from nothing
  if (!release.learned || whole || !isCustodian()) return null;
  const trouble = h("div", {});
  const plan = async () => {
    try {
      await takeUp(release, [release.id]);
      draft.set({ planName: `${release.name}, more` });
      go("/new/budget");
    } catch (error) {
      fill(trouble, problem(error));
    }
  };
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Not exact enough?", tip("given")),
    h(
      "p",
      {},
      "Plan another release of the same outcomes that starts from this one. What is known already is not measured again; it pays from the same budget.",
    ),
    h("p", {}, button("Ask for more", plan)),
    trouble,
  );
}
