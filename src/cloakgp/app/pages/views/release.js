// One release: pictures, the promise, downloads, and questions anywhere.

import { api } from "../api.js";
import { figure } from "../charts/figure.js";
import { releaseByInput, releaseMap } from "../charts/results.js";
import { number, percent, points, typed, when } from "../format.js";
import { noiseTiles } from "../preview.js";
import { session } from "../store.js";
import { tip } from "../terms.js";
import {
  check,
  chip,
  choice,
  clear,
  facts,
  field,
  fill,
  h,
  link,
  note,
  numberInput,
  problem,
  table,
} from "../ui.js";

const DOWNLOADS = [
  ["csv", "Numbers", "CSV"],
  ["file", "Release file", ".cloak, to check and to ask"],
  ["report", "Report", "one HTML page to pass on"],
  ["script", "Script", ".py"],
  ["notebook", "Notebook", ".ipynb"],
];
const REDO = { custodian: "that redoes it", analyst: "that reads it and predicts" };
const FADE = 0.4; // of the bounds' width: above this a point says next to nothing
const SHOWN = 200;

export async function releaseView(root, { id }) {
  const inner = h("div", {});
  const done = await showRelease(inner, id, root);
  root.append(inner);
  return done;
}

export async function showRelease(root, id, head) {
  const release = await api.releaseOf(id);
  const { settings, certificate } = release;
  const names = settings.inputs;
  const output = settings.output;
  const limit = FADE * (settings.bounds[1] - settings.bounds[0]);
  const badge = h("span", { class: "chip wait" }, "checking…");
  const chart = figure();
  let which = release.denoised ? "denoised" : "released";
  let asked = null;

  const draw = () => {
    if (names.length === 1)
      return chart.show(releaseByInput(release, names, output, settings.bounds, limit, asked));
    if (names.length === 2) return chart.show(releaseMap(release, which, names, output, limit));
    chart.hidden = true;
    return null;
  };

  head?.append(
    h("p", { class: "crumbs" }, link("Releases", "#/releases")),
    h(
      "div",
      { class: "step-head" },
      h("h1", {}, release.name),
      h(
        "p",
        { class: "lead" },
        `${output} by ${names.join(" and ")}, released ${when(release.created)} by ${release.by}.`,
      ),
    ),
  );
  const shown = [
    ["denoised", "denoised"],
    ["released", "released"],
    ["noise_std", "noise"],
  ].filter(([key]) => release[key]);
  fill(
    root,
    certificate.insecure
      ? note(
          "bad",
          h(
            "p",
            {},
            "INSECURE: the noise came from a known seed. Nothing is promised to anyone. Do not publish this.",
          ),
        )
      : null,
    h(
      "section",
      { class: "card" },
      h(
        "div",
        { class: "panel-head" },
        h("h2", {}, `${output} by ${names.join(" and ")}`, tip("denoised")),
        h(
          "span",
          { class: "badges" },
          chip("private", `ε ${number(certificate.epsilon)}, δ ${number(certificate.delta)}`),
          badge,
          tip("verified"),
        ),
      ),
      names.length === 2
        ? choice(
            "What to draw",
            shown,
            which,
            (value) => {
              which = value;
              draw();
            },
            { hideLegend: true },
          )
        : null,
      chart,
      names.length === 1
        ? h(
            "p",
            { class: "hint" },
            "Thin: what was released, with the privacy noise as bars of one std. Bold: what a reader makes of it, knowing the law of the noise. Ticks: the inputs, which are public.",
          )
        : null,
      names.length === 2
        ? h(
            "p",
            { class: "hint" },
            "Large circles are large values; faint ones carry so much noise that they say little. Dots: the inputs, which are public.",
          )
        : null,
      numbersTable(release, names),
    ),
    h(
      "div",
      { class: "columns" },
      askAnywhere(release, (answer) => {
        asked = answer;
        if (names.length === 1) draw();
      }),
      h(
        "section",
        { class: "card" },
        h("h2", {}, "Take it with you"),
        h(
          "ul",
          { class: "downloads" },
          DOWNLOADS.map(([what, label, sub]) =>
            h(
              "li",
              {},
              h(
                "a",
                { href: api.download(id, what), download: "", class: "download", "data-what": what },
                h("b", {}, label),
                h(
                  "span",
                  {},
                  sub,
                  ["script", "notebook"].includes(what) ? ` ${REDO[session.get().me?.role] ?? ""}` : null,
                ),
              ),
            ),
          ),
        ),
      ),
    ),
    h(
      "div",
      { class: "columns" },
      h(
        "section",
        { class: "card" },
        h("h2", {}, "What is promised", tip("differential privacy")),
        h(
          "div",
          { class: "promise" },
          (release.promise ?? []).map((sentence) => h("p", {}, sentence)),
        ),
      ),
      h(
        "section",
        { class: "card" },
        h("h2", {}, "What is not promised"),
        h(
          "ul",
          { class: "plain" },
          (release.limits ?? []).map((sentence) => h("li", {}, sentence)),
        ),
      ),
    ),
    h(
      "section",
      { class: "card" },
      h("h2", {}, "How much noise privacy took", tip("noise std")),
      release.summary ? noiseTiles(release.summary) : null,
    ),
    h(
      "section",
      { class: "card" },
      h("h2", {}, "Settings", tip("certificate")),
      settingsFacts(settings, certificate),
      receipt(release.receipt),
    ),
  );
  draw();
  api
    .verify(id)
    .then((answer) => {
      const [kind, text] = !answer.ok
        ? ["bad", "not verified"]
        : answer.complete
          ? ["good", "verified"]
          : ["warn", "verified in part"];
      badge.className = `chip ${kind}`;
      badge.textContent = text;
      badge.title = answer.words;
    })
    .catch(() => {
      badge.className = "chip bad";
      badge.textContent = "could not be checked";
    });
  return () => chart.done();
}

export function settingsFacts(settings, certificate) {
  return facts([
    ["public inputs", settings.inputs.join(", ")],
    ["private outcome", settings.output],
    ["bounds", `${number(settings.bounds[0])} to ${number(settings.bounds[1])}`],
    ["kernel", h("code", {}, settings.kernel)],
    ["noise variance", number(settings.noise)],
    ...(settings.inducing ? [["inducing inputs", settings.inducing]] : []),
    [
      "test points",
      typeof settings.at === "string" ? settings.at : `${settings.at?.points?.length ?? 0} points`,
    ],
    ["kind", settings.kind === "function" ? "the whole function" : "predictions"],
    ["design", certificate?.design ?? settings.design],
    ["promise", `ε = ${number(settings.epsilon)}, δ = ${number(settings.delta)}`],
    ["rows", certificate?.n_rows ?? "–"],
    ["numbers measured", certificate?.n_measurements ?? "–"],
    ["gap to the best noise", certificate?.gap === undefined ? "–" : `at most ${percent(certificate.gap)}`],
  ]);
}

function receipt(slip) {
  if (!slip) return null;
  const entry = slip.entry ?? slip.number;
  const hash = String(slip.head ?? "");
  return h(
    "p",
    { class: "hint" },
    "Paid from ",
    h("b", {}, slip.dataset ?? "the ledger"),
    entry === undefined ? null : `, entry ${entry}`,
    hash ? [", hash ", h("code", { title: hash }, hash.slice(0, 12))] : null,
    ".",
  );
}

function numbersTable(release, names) {
  const columns = [
    ["released", "released"],
    ["noise_std", "noise std"],
    ["denoised", "denoised"],
    ["denoised_std", "its std"],
  ].filter(([key]) => release[key]);
  const rows = release.points
    .slice(0, SHOWN)
    .map((point, place) => [
      ...point.map((value) => number(value)),
      ...columns.map(([key]) => number(release[key][place])),
    ]);
  const headings = [...names, ...columns.map(([, label]) => label)];
  return h(
    "details",
    { class: "more" },
    h("summary", {}, rows.length < release.points.length ? `The first ${SHOWN} numbers` : "The numbers"),
    table(headings, rows, {
      caption: "Released and denoised numbers",
      numeric: headings.map((_, place) => place),
    }),
  );
}

function askAnywhere(release, onAnswer) {
  const names = release.settings.inputs;
  const state = { text: "", level: "0.95", one: false };
  const area = h("textarea", {
    rows: "4",
    class: "code",
    spellcheck: "false",
    placeholder: names.length === 1 ? "12.5\n80" : "one point per line",
    oninput: (event) => {
      state.text = event.target.value;
    },
  });
  const answerBox = h("div", { "aria-live": "polite" });
  const question = field(`${names.join(", ")} on each line`, area, {
    hint: "Anywhere, not only at the test points. Up to 10,000 points.",
  });

  async function ask(event) {
    event.preventDefault();
    question.fail(null);
    let rows;
    try {
      rows = points(state.text, names.length);
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
      const headings = [...names, "mean", "std", `${number(100 * level)} % interval`];
      const lines = rows
        .slice(0, SHOWN)
        .map((row, place) => [
          ...row.map((value) => number(value)),
          number(answer.mean[place]),
          number(answer.std[place], 3),
          `${number(answer.lower[place])} to ${number(answer.upper[place])}`,
        ]);
      fill(
        answerBox,
        table(headings, lines, { caption: "Answers", numeric: headings.map((_, place) => place) }),
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
      check(
        "for one new outcome, not for the curve",
        state.one,
        (value) => {
          state.one = value;
        },
        { tip: tip("scatter") },
      ),
      h("button", { type: "submit", class: "button primary" }, "Ask"),
    ),
    answerBox,
  );
}
