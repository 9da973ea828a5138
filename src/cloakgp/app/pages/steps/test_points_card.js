// Where predictions are wanted: on a grid, or at points of one's own.

import { draft } from "../core/draft.js";
import { howToWrite } from "../core/columns.js";
import { columnsOf, inputsOf, pointsOf } from "../core/draft_parts.js";
import { count } from "../core/format.js";
import { hidesInputs } from "../core/protection.js";
import { isForecast } from "../core/settings.js";
import { typed } from "../core/typed.js";
import { fill, h } from "../ui/dom.js";
import { choice, field, numberInput } from "../ui/forms.js";
import { tip } from "../ui/tip.js";
import { noiseShape } from "./noise_shape.js";
import { ownPoints } from "./own_points.js";

const GRIDS = { 1: "along a line", 2: "on a map" };
const gridWords = (d) =>
  columnsOf(d).some((column) => column.kind === "level") ? "on a grid, for each level" : (GRIDS[inputsOf(d).length] ?? "on a grid");

const allLevels = (d) => columnsOf(d).every((column) => column.kind === "level");
const gridSize = (d, per) => columnsOf(d).reduce((all, column) => all * (column.levels.length || per), 1);

// What was understood of the draft's points, in words.
function understood(d) {
  const names = inputsOf(d);
  if (d.where === "own") {
    try {
      const rows = pointsOf(d);
      return rows.length ? `${count(rows.length)} points understood.` : "";
    } catch (error) {
      return error.message;
    }
  }
  if (allLevels(d)) return `${count(gridSize(d, 1))} points in all: every level of ${names.join(" with every one of ")}.`;
  const per = typed(d.perAxis);
  return Number.isInteger(per) && per > 1
    ? `${count(gridSize(d, per))} points in all, over ${hidesInputs(d) ? "the box" : `the range of ${names.join(" and ")}`}.`
    : "A whole number of at least 2.";
}

export function testPointsCard() {
  const root = h("section", { class: "card" });

  function show() {
    const d = draft.get();
    const names = inputsOf(d);
    const points = h("p", { class: "hint", "aria-live": "polite" }, understood(d));
    const change = (name) => (value) => {
      draft.set({ [name]: value });
      points.textContent = understood(draft.get());
    };
    const perAxis = () =>
      field(
        names.length === 1 ? "Number of points" : "Points along each input",
        numberInput(d.perAxis, change("perAxis"), { id: "per-axis", inputmode: "numeric" }),
        { tip: tip("grid") },
      );
    const options = [
      ["grid", gridWords(d)],
      ["own", "my own points"],
    ];
    fill(
      root,
      h("h2", {}, "Where readers want predictions", tip("test points")),
      choice("Test points", options, d.where, chooseWhere, { hideLegend: true }),
      d.where === "grid" ? (allLevels(d) ? null : perAxis()) : ownPoints(names, d.ownPoints, change("ownPoints"), howToWrite(columnsOf(d))),
      points,
      isForecast(d) ? null : noiseShape(kindChanged),
    );
  }

  function chooseWhere(value) {
    draft.set({ where: value });
    show();
    root.querySelector("input:checked").focus();
  }

  function kindChanged() {
    show();
    root.querySelector("details").open = true;
    root.querySelector("details input:checked").focus();
  }

  show();
  return root;
}
