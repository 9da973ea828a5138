// What will be published of the inputs, as soon as they are read; and how they were read.

import { shownCell } from "../core/columns.js";
import { draft } from "../core/draft.js";
import { inputsOf } from "../core/draft_parts.js";
import { count } from "../core/format.js";
import { fill, h } from "../ui/dom.js";
import { chip, note } from "../ui/notes.js";
import { facts } from "../ui/tables.js";
import { writtenFields } from "./written_fields.js";

const LEVELS = 6; // that are named

function holds(column, [low, high]) {
  if (column.kind !== "level") {
    const what = column.kind === "date" ? "dates" : "numbers";
    return `${what}, ${shownCell(column, low)} to ${shownCell(column, high)}`;
  }
  const { levels } = column;
  const named = levels.slice(0, LEVELS).join(", ");
  return `${count(levels.length)} levels: ${named}${levels.length > LEVELS ? ", …" : ""}`;
}

const lost = (n) => `${count(n)} row${n === 1 ? " is" : "s are"} left out: an input is missing there. `;

export function publicInputs() {
  const root = h("section", { class: "card" });

  function show(d) {
    fill(
      root,
      h("h2", {}, "What is published of the inputs ", chip("public", "public")),
      note(
        "public",
        h(
          "p",
          {},
          h("b", {}, inputsOf(d).join(", ")),
          " will be in the release file exactly as they are, row by row. Use only what anybody may know; otherwise hide whole rows.",
        ),
      ),
      d.facts ? facts(d.facts.columns.map((column) => [column.name, holds(column, d.facts.ranges[column.name])])) : null,
      d.facts?.dropped ? h("p", { class: "hint" }, lost(d.facts.dropped)) : null,
      writtenFields(),
    );
  }

  let last = null;
  const follow = (d) => {
    const now = JSON.stringify([d.facts, d.categories]);
    if (now !== last) show(d);
    last = now;
  };
  follow(draft.get());
  const stop = draft.subscribe((d) => (root.isConnected ? follow(d) : stop()));
  return root;
}
