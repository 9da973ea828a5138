// What the chosen roles mean.

import { inputsOf, outputOf } from "../core/draft_parts.js";
import { h } from "../ui/dom.js";
import { chip, note } from "../ui/notes.js";

export function rolesMeaning(d) {
  const inputs = inputsOf(d);
  const output = outputOf(d);
  return [
    output
      ? note(
          "private",
          h(
            "p",
            {},
            chip("private", "private"),
            " ",
            h("b", {}, output),
            " is protected. It is read once, at the release, and only noisy numbers leave. Until then nothing here looks at it.",
          ),
        )
      : null,
    inputs.length
      ? h(
          "p",
          { class: "hint" },
          `Whether ${inputs.join(" and ")} may be known to anybody is asked next. Until then nothing of the table is read.`,
        )
      : null,
  ];
}
