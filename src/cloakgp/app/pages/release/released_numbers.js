// What was released and what a reader makes of it, as a table.

import { columnsIn, shownCell } from "../core/columns.js";
import { number } from "../core/format.js";
import { numbersTable } from "../ui/numbers_table.js";

// Where the model was learned, what is released is denoised already.
const STAGED = [
  ["denoised", "prediction"],
  ["denoised_std", "its std"],
  ["noise_std", "of it for privacy"],
];
const COLUMNS = [
  ["released", "released"],
  ["noise_std", "noise std"],
  ["denoised", "denoised"],
  ["denoised_std", "its std"],
];

function classNumbers(release) {
  const inputs = columnsIn(release);
  const rowAt = (place) => [
    ...release.points[place].map((value, at) => shownCell(inputs[at], value)),
    ...release.by_class.flatMap((one) => [number(one.probability[place]), number(one.std[place], 2)]),
  ];
  const headings = [...release.settings.inputs, ...release.by_class.flatMap((one) => [one.name, "its std"])];
  return numbersTable(headings, rowAt, release.points.length, "Probabilities of the classes");
}

export function releasedNumbers(release) {
  if (release.by_class) return classNumbers(release);
  const columns = (release.stages ? STAGED : COLUMNS).filter(([key]) => release[key]);
  const inputs = columnsIn(release);
  const rowAt = (place) => [
    ...release.points[place].map((value, at) => shownCell(inputs[at], value)),
    ...columns.map(([key]) => number(release[key][place])),
  ];
  const headings = [...release.settings.inputs, ...columns.map(([, label]) => label)];
  return numbersTable(headings, rowAt, release.points.length, "Released and denoised numbers");
}
