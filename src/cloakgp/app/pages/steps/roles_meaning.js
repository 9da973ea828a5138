// What the chosen roles mean for what is published and what is protected.

import { inputsOf, outputOf } from "../core/draft_parts.js";
import { number } from "../core/format.js";
import { h } from "../ui/dom.js";
import { chip, note } from "../ui/notes.js";
import { tip } from "../ui/tip.js";

export function rolesMeaning(d) {
  const inputs = inputsOf(d);
  const output = outputOf(d);
  const range = (name) =>
    d.facts?.ranges?.[name]
      ? ` (${number(d.facts.ranges[name][0])} to ${number(d.facts.ranges[name][1])})`
      : "";
  return [
    inputs.length
      ? note(
          "public",
          h(
            "p",
            {},
            chip("public", "public"),
            " ",
            h("b", {}, inputs.map((name) => name + range(name)).join(", ")),
            " will be in the release file exactly as they are, row by row. Use only what anybody may know.",
          ),
        )
      : null,
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
    inputs.length && output
      ? h(
          "p",
          { class: "hint" },
          "Protected is the outcome of one row",
          tip("one row"),
          ". If a person owns several rows, that person is protected less.",
        )
      : null,
  ];
}
