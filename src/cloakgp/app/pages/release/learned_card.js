// What a release learned of the model, and, folded, how its stages went. Null where the model was given.

import { number, percent } from "../core/format.js";
import { h } from "../ui/dom.js";
import { table } from "../ui/tables.js";
import { tip } from "../ui/tip.js";

const MEANINGS = [
  [/^size/, "how far the curve moves up and down"],
  [/^lengthscale/, "over how much the curve changes"],
  [/^share of numbers/, "of the curve's variance: what all levels have in common"],
  [/^share of together/, "of the curve's variance: what each combination has for itself"],
  [/^share/, "of the curve's variance: what a level adds"],
  [/^variance of a count/, "how many times its rate: 1 if counts come independently"],
  [/^noise/, "how far single outcomes lie from the curve"],
];

const meaning = (what) => MEANINGS.find(([start]) => start.test(what))?.[1] ?? "";

function likely({ low, high }) {
  const [from, to] = [number(low, 2), number(high, 2)];
  return from === to ? "–" : `${from} to ${to}`;
}

export function learnedCard(release) {
  if (!release.learned) return null;
  const { learned, stages } = release;
  return h(
    "section",
    { class: "card learned" },
    h("h2", {}, "What was learned", tip("learned model")),
    table(
      ["learned", "about", "likely"],
      learned.map((row) => [
        [h("b", {}, row.what), h("br"), h("span", { class: "hint" }, `${meaning(row.what)}${row.unit ? `, in units of ${row.unit}` : ""}`)],
        number(row.about, 2),
        likely(row),
      ]),
      { caption: "What was learned", numeric: [1, 2] },
    ),
    h(
      "details",
      { class: "more" },
      h("summary", {}, `In ${stages.length} stages`),
      h(
        "p",
        { class: "hint" },
        "Each stage looks through windows that close in on where outcomes are, as far as the stages before told. Narrow windows need less noise. Part of a stage's budget is for what its windows cut off.",
      ),
      table(
        ["stage", "budget", "of it, for what is cut off", "window width"],
        stages.map((stage, place) => [place + 1, percent(stage.share), stage.outside === null ? "–" : percent(stage.outside / stage.share), stage.width === null ? (place ? "counts where outcomes fell" : "counts rows") : number(stage.width, 3)]),
        { caption: "Stages", numeric: [0, 1, 2, 3] },
      ),
    ),
  );
}
