// The picture of a release, with the numbers behind it. `show(asked)` adds answers to questions; `chosen` hears of
// what is chosen for a map.

import { figure } from "../charts/figure.js";
import { allAtOnce, classPicture } from "../charts/class_picture.js";
import { releasePicture } from "../charts/release_picture.js";
import { splitByLevel } from "../charts/positions.js";
import { columnsIn } from "../core/columns.js";
import { number } from "../core/format.js";
import { ofClass, predicted } from "../core/outcomes.js";
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
const CURVES = [
  ["denoised", "prediction"],
  ["released", "what was released"],
];
const CURVE_HINTS = {
  denoised: "Line: the prediction. Band: where the curve lies with probability 95 %, if the model is right.",
  released:
    "Thin: what was released, with the privacy noise as bars of one std. Bold: the prediction, which a reader makes of it, knowing the law of the noise.",
};
const HINTS = {
  2: "Large circles are large values; at faint ones hardly more is known than before the release.",
};
const LEVELS = "What is predicted, and where it lies with probability 95 %.";
const CLASSES = "Lines: how likely each class is. Bands: where that lies with probability 95 %. Dotted: hardly more is known than before the release.";
const ALL = ""; // no class has such a name
const SHOWN = { 1: " Ticks: the inputs, which are public.", 2: " Dots: the inputs, which are public." };

// What was answered of one class.
function answersOf(asked, name) {
  const own = asked?.by_class.find((each) => each.name === name);
  return own ? { points: asked.points, mean: own.probability, lower: own.lower, upper: own.upper } : null;
}

export function pictureCard(release, chosen) {
  const { settings, certificate } = release;
  const names = settings.inputs;
  const chart = figure();
  const inputs = columnsIn(release);
  const hasLevels = inputs.some((input) => input.kind === "level");
  const surface = release.has_map ? mapFigure(release, chosen) : null;
  const isMap = !surface && names.length === 2 && !splitByLevel(inputs); // of levels: points, one by one
  const isCurve = names.length === 1 && !hasLevels;
  const hint = h("p", { class: "hint" });
  let which = release.denoised || release.by_class ? "denoised" : "released";
  let of = release.by_class && (allAtOnce(release) ? ALL : release.by_class[0].name);
  let answers = null;

  function say() {
    const drawn = isCurve ? (release.by_class ? CLASSES : CURVE_HINTS[which]) : HINTS[names.length];
    const plainHint = drawn && drawn + (release.inputs_sample?.length ? SHOWN[names.length] : "");
    const words = surface ? null : hasLevels && !isMap && names.length < 3 ? LEVELS : plainHint;
    hint.hidden = !words;
    hint.textContent = words ?? "";
  }

  function show(asked = answers) {
    answers = asked;
    if (surface) return; // it has what it needs
    say();
    const picture = of === ALL ? classPicture(release, asked) : releasePicture(of ? ofClass(release, of) : release, which, of ? answersOf(asked, of) : asked);
    if (picture) chart.show(picture);
    else chart.hidden = true;
  }

  function chooseClass() {
    const all = allAtOnce(release) ? [[ALL, "all classes"]] : [];
    const take = (value) => {
      of = value;
      if (surface) surface.choose(value);
      else show();
    };
    return choice("Class", [...all, ...release.by_class.map(({ name }) => [name, name])], of, take, { hideLegend: true });
  }

  // What came out as it did is one click away; in stages, it is the prediction.
  function chooseNumbers() {
    const kinds = isCurve ? CURVES : release.stages ? STAGED_KINDS : KINDS;
    const shown = kinds.filter(([key]) => of || release[key]);
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
    release.by_class ? chooseClass() : null,
    isMap || (isCurve && !release.stages && !release.by_class && release.denoised) ? chooseNumbers() : null,
    surface ?? chart,
    hint,
    releasedNumbers(release),
  );
  root.show = show;
  root.done = () => (surface ?? chart).done();
  say();
  surface?.show();
  return root;
}
