// The picture of a release, with the numbers behind it. `show(asked)` adds answers to questions.

import { figure } from "../charts/figure.js";
import { releasePicture } from "../charts/release_picture.js";
import { splitByLevel } from "../charts/positions.js";
import { columnsIn } from "../core/columns.js";
import { number } from "../core/format.js";
import { predicted } from "../core/outcomes.js";
import { h } from "../ui/dom.js";
import { choice } from "../ui/forms.js";
import { chip } from "../ui/notes.js";
import { tip } from "../ui/tip.js";
import { mapFigure } from "./map_figure.js";
import { releasedNumbers } from "./released_numbers.js";
import { verifiedBadge } from "./verified_badge.js";

const STAGED_KINDS = [
  ["denoised", "prediction"],
  ["noise_std", "noise"],
];
const KINDS = [
  ["denoised", "denoised"],
  ["released", "released"],
  ["noise_std", "noise"],
];
const STAGED = {
  1: "Line: the prediction. Band: where the curve lies with probability 95 %.",
};
const HINTS = {
  1: "Thin: what was released, with the privacy noise as bars of one std. Bold: what a reader makes of it, knowing the law of the noise.",
  2: "Large circles are large values; at faint ones hardly more is known than before the release.",
};
const LEVELS = "What is predicted, and where it lies with probability 95 %.";
const SHOWN = { 1: " Ticks: the inputs, which are public.", 2: " Dots: the inputs, which are public." };

export function pictureCard(release) {
  const { settings, certificate } = release;
  const names = settings.inputs;
  const chart = figure();
  const inputs = columnsIn(release);
  const hasLevels = inputs.some((input) => input.kind === "level");
  const surface = release.has_map ? mapFigure(release) : null;
  const isMap = !surface && names.length === 2 && !splitByLevel(inputs); // of levels: points, one by one
  const drawn = (release.stages && STAGED[names.length]) || HINTS[names.length];
  const plainHint = drawn && drawn + (release.inputs_sample?.length ? SHOWN[names.length] : "");
  const hint = surface ? null : hasLevels && !isMap && names.length < 3 ? LEVELS : plainHint;
  let which = release.denoised ? "denoised" : "released";

  function show(asked) {
    if (surface) return; // it has what it needs
    const picture = releasePicture(release, which, asked);
    if (picture) chart.show(picture);
    else chart.hidden = true;
  }

  function chooseNumbers() {
    const shown = (release.stages ? STAGED_KINDS : KINDS).filter(([key]) => release[key]);
    const take = (value) => {
      which = value;
      show();
    };
    return choice("What to draw", shown, which, take, { hideLegend: true });
  }

  const root = h(
    "section",
    { class: "card" },
    h(
      "div",
      { class: "panel-head" },
      h("h2", {}, `${predicted(settings)} by ${names.join(" and ")}`, tip("denoised")),
      h(
        "span",
        { class: "badges" },
        chip("plain", `protects ${certificate.unit}`),
        chip("private", `ε ${number(certificate.epsilon)}, δ ${number(certificate.delta)}`),
        verifiedBadge(release.id),
        tip("verified"),
      ),
    ),
    isMap ? chooseNumbers() : null,
    surface ?? chart,
    hint ? h("p", { class: "hint" }, hint) : null,
    releasedNumbers(release),
  );
  root.show = show;
  root.done = () => (surface ?? chart).done();
  surface?.show();
  return root;
}
