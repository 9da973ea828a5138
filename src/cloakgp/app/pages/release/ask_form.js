// Questions to a release, anywhere and for nothing.

import { api } from "../core/api.js";
import { number } from "../core/format.js";
import { columnsIn, examplePoint, howToWrite } from "../core/columns.js";
import { typed } from "../core/typed.js";
import { typedPoints } from "../core/typed_points.js";
import { clear, fill, h } from "../ui/dom.js";
import { checkbox, field, numberInput } from "../ui/forms.js";
import { chip, problem } from "../ui/notes.js";
import { table } from "../ui/tables.js";
import { tip } from "../ui/tip.js";

const SHOWN = 200;
const chance = (value) => value.toFixed(3);
const ANSWERED = { real: "mean", "yes/no": "probability", count: "rate" };

// A level that was not there is predicted from the others; or it is a slip of the pen.
function unknownLevels(rows, inputs) {
  const isNew = (value, input) => input.kind === "level" && !input.levels.map(String).includes(String(value));
  const found = inputs.flatMap((input, at) => rows.filter((row) => isNew(row[at], input)).map((row) => `${input.name} ${row[at]}`));
  const named = [...new Set(found)].slice(0, 3).join(", ");
  return named ? h("p", { class: "hint warn" }, `Not among the levels, so predicted from the others: ${named}.`) : null;
}

export function askForm(release, onAnswer) {
  const names = release.settings.inputs;
  const inputs = columnsIn(release);
  const outcome = release.settings.outcome ?? "real";
  const state = { text: "", level: "0.95", one: false };
  const area = h("textarea", {
    rows: "4",
    class: "code",
    spellcheck: "false",
    placeholder: names.length === 1 && inputs[0].kind === "number" ? "12.5\n80" : `such as ${examplePoint(inputs)}`,
    oninput: (event) => {
      state.text = event.target.value;
    },
  });
  const answerBox = h("div", { "aria-live": "polite" });
  const question = field(`${names.join(", ")} on each line`, area, {
    hint: `Anywhere, not only at the test points. Up to 10,000 points.${howToWrite(inputs)}`,
  });

  async function ask(event) {
    event.preventDefault();
    question.fail(null);
    let rows;
    try {
      rows = typedPoints(state.text, inputs);
    } catch (error) {
      question.fail(error.message);
      return;
    }
    const level = typed(state.level);
    if (!rows.length) {
      question.fail("Type at least one point.");
      return;
    }
    if (!(level > 0 && level < 1)) {
      question.fail("The probability of the interval must lie between 0 and 1.");
      return;
    }
    try {
      const answer = await api.predict(release.id, { points: rows, level, include_noise: state.one });
      const interval = ({ lower, upper }, place) => `${number(lower[place])} to ${number(upper[place])}`;
      const headings = answer.by_class
        ? [...names, ...answer.by_class.map((one) => one.name)]
        : [...names, ANSWERED[outcome], "std", `${number(100 * level)} % interval`];
      const numbers = (place) =>
        answer.by_class
          ? answer.by_class.map((one) => [h("b", {}, chance(one.probability[place])), h("br"), h("span", { class: "hint" }, `${chance(one.lower[place])} to ${chance(one.upper[place])}`)])
          : [number(answer.mean[place]), number(answer.std[place], 3), interval(answer, place)];
      const lines = rows
        .slice(0, SHOWN)
        .map((row, place) => [...row.map((value) => (typeof value === "string" ? value : number(value))), ...numbers(place)]);
      fill(
        answerBox,
        table(headings, lines, { caption: answer.by_class ? `Probabilities, with their ${number(100 * level)} % intervals` : "Answers", numeric: headings.map((_, place) => place) }),
        unknownLevels(rows, inputs),
        rows.length > SHOWN ? h("p", { class: "hint" }, `The first ${SHOWN} of ${rows.length}.`) : null,
      );
      onAnswer({ points: rows, ...answer });
    } catch (error) {
      clear(answerBox);
      fill(answerBox, problem(error));
    }
  }

  return h(
    "section",
    { class: "card" },
    h("div", { class: "panel-head" }, h("h2", {}, "Ask anywhere"), chip("free", "costs nothing")),
    h(
      "form",
      { novalidate: true, onsubmit: ask, class: "ask" },
      question,
      h(
        "div",
        { class: "pair" },
        field(
          "Probability of the interval",
          numberInput(state.level, (value) => {
            state.level = value;
          }),
          { tip: tip("95 % band") },
        ),
      ),
      outcome === "real"
        ? checkbox(
            "for one new outcome, not for the curve",
            state.one,
            (value) => {
              state.one = value;
            },
            { tip: tip("scatter") },
          )
        : null,
      h("button", { type: "submit", class: "button primary" }, "Ask"),
    ),
    answerBox,
  );
}
