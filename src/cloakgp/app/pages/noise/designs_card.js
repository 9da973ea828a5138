// All designs side by side, for a model that is described: asked for by a button, since each has to be planned.

import { api } from "../core/api.js";
import { draft } from "../core/draft.js";
import { number } from "../core/format.js";
import { settingsOf } from "../core/settings.js";
import { watched } from "../core/watched.js";
import { button } from "../ui/buttons.js";
import { fill, h } from "../ui/dom.js";
import { note, sentence } from "../ui/notes.js";
import { progressLine } from "../ui/progress_line.js";
import { table } from "../ui/tables.js";

const HEAD = ["design", "expected error", "at worst", "released noise", "at worst"];

function shown(found) {
  const columns = ["expected_error", "worst_expected_error", "noise_std", "worst_noise_std"];
  const rows = found.design.map((name, place) => [
    name === found.best ? h("b", {}, `${name}: least error`) : name,
    ...columns.map((column) => number(found[column][place])),
  ]);
  return h(
    "div",
    {},
    table(HEAD, rows, { caption: "Designs side by side", numeric: [1, 2, 3, 4] }),
    found.notes.map((words) => h("p", { class: "hint" }, words)),
  );
}

export function designsCard() {
  const answer = h("div", { "aria-live": "polite" });
  const ask = async () => {
    const leaving = new AbortController();
    const progress = progressLine(() => leaving.abort());
    fill(answer, progress);
    try {
      const send = (options) => api.designs(settingsOf(draft.get()), options);
      fill(answer, shown(await watched(send, progress.show, leaving.signal)));
    } catch (error) {
      fill(answer, error.name === "AbortError" ? null : note("bad", h("p", {}, sentence(error.message))));
    }
  };
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Which design?"),
    h("p", { class: "hint" }, "What readers will be off by, design by design, for the same promise. Free."),
    button("Compare designs", ask),
    answer,
  );
}
