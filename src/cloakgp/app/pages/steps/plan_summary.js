// The plan that is about to be released, in a few lines.

import { number } from "../core/format.js";
import { OUTCOMES } from "../core/outcomes.js";
import { inputsLabel, protectedWords } from "../core/protection.js";
import { sameSettings } from "../core/settings.js";
import { lastPreview } from "../noise/last_preview.js";
import { link } from "../ui/buttons.js";
import { h } from "../ui/dom.js";
import { chip } from "../ui/notes.js";
import { facts } from "../ui/tables.js";

export function planSummary(name, settings) {
  const known = lastPreview.get();
  return h(
    "section",
    { class: "card" },
    h("h2", {}, name, " ", chip("public", "plan")),
    facts([
      [inputsLabel(settings), settings.inputs.join(", ")],
      ["private outcome", `${settings.output}, ${OUTCOMES[settings.outcome ?? "real"]}`],
      ["protects", protectedWords(settings)],
      ...(settings.bounds ? [["bounds", `${number(settings.bounds[0])} to ${number(settings.bounds[1])}`]] : []),
      ["promise", `ε = ${number(settings.epsilon)}, δ = ${number(settings.delta)}`],
      ...(known && sameSettings(known.settings, settings)
        ? [
            ["median expected error", number(known.answer.error_summary.median, 3)],
            ["largest expected error", number(known.answer.error_summary.largest, 3)],
            ["median privacy noise", number(known.answer.summary.median, 3)],
          ]
        : []),
    ]),
    h("p", { class: "hint" }, link("Look at the noise again", "#/new/preview"), ". It costs nothing."),
  );
}
