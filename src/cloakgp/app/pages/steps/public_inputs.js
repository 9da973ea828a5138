// What will be published of the inputs, as soon as they are read.

import { draft } from "../core/draft.js";
import { inputsOf } from "../core/draft_parts.js";
import { number } from "../core/format.js";
import { fill, h } from "../ui/dom.js";
import { chip, note } from "../ui/notes.js";

export function publicInputs() {
  const root = h("div", {});

  function show(d) {
    const range = (name) => {
      const found = d.facts?.ranges?.[name];
      return found ? ` (${number(found[0])} to ${number(found[1])})` : "";
    };
    fill(
      root,
      note(
        "public",
        h(
          "p",
          {},
          chip("public", "public"),
          " ",
          h("b", {}, inputsOf(d).map((name) => name + range(name)).join(", ")),
          " will be in the release file exactly as they are, row by row. Use only what anybody may know; otherwise hide whole rows.",
        ),
      ),
    );
  }

  show(draft.get());
  const stop = draft.subscribe((d) => (root.isConnected ? show(d) : stop()));
  return root;
}
