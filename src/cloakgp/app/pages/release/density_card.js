// Where rows are, about: of inputs that are private. Null elsewhere, and where there is no picture of it.

import { densityPicture } from "../charts/density_picture.js";
import { figure } from "../charts/figure.js";
import { h } from "../ui/dom.js";
import { chip } from "../ui/notes.js";
import { tip } from "../ui/tip.js";

export function densityCard(release) {
  const picture = densityPicture(release);
  if (!picture) return null;
  const chart = figure();
  const root = h(
    "section",
    { class: "card" },
    h(
      "div",
      { class: "panel-head" },
      h("h2", {}, "Where the rows are, about", tip("density of rows")),
      chip("private", "inputs are private"),
    ),
    chart,
    h(
      "p",
      { class: "hint" },
      "Noisy counts, made smooth: nobody\u2019s inputs are in them. Where there are few rows, predictions rest on little.",
    ),
  );
  root.done = () => chart.done();
  chart.show(picture);
  return root;
}
