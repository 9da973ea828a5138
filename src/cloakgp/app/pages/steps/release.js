// Step 6: the one private step. Which budget pays, what will be left, and a name to type.

import { api } from "../api.js";
import { datasetForm } from "../dataset_form.js";
import { number } from "../format.js";
import { lastAnswer } from "../preview.js";
import { sameSettings, settingsOf } from "../settings.js";
import { draft } from "../store.js";
import { tip } from "../terms.js";
import {
  bar,
  check,
  chip,
  choice,
  facts,
  field,
  fill,
  h,
  link,
  note,
  problem,
  readOnly,
  sentence,
  textInput,
} from "../ui.js";

const NEW = "\u0000new";

export const release = {
  id: "release",
  name: "Release",
  title: "Release",
  lead: () =>
    "This is the one step that reads the private outcomes, and it cannot be taken back. It spends part of the budget of the people in the data.",
  nextText: null,
  render(root, context) {
    const d = draft.get();
    const settings = settingsOf(d);
    if (!d.plan || !settings || !sameSettings(d.plan.of.settings, settings)) {
      root.append(
        note(
          "warn",
          h(
            "p",
            {},
            "The settings have changed since the plan was kept. ",
            link("Look at the noise again", "#/new/preview"),
            " and keep the plan.",
          ),
        ),
      );
      return null;
    }
    const plan = d.plan;
    const form = { dataset: null, why: "", missing: "error", confirm: "", number: 1 };
    let datasets = [];
    let quote = null;
    let busy = false;

    const who = h("section", { class: "card" });
    const cost = h("section", { class: "card", hidden: true, "aria-live": "polite" });
    const last = h("section", { class: "card danger", hidden: true });

    async function load(choose) {
      try {
        const ledger = await api.ledger();
        if (ledger.read_only) {
          fill(who, readOnly(ledger));
          cost.hidden = last.hidden = true;
          return;
        }
        datasets = ledger.datasets;
      } catch (error) {
        fill(who, problem(error));
        return;
      }
      showWho(choose);
    }

    function showWho(choose) {
      const creator = h("div", {});
      const pick = (name) => {
        form.dataset = name === NEW ? null : name;
        quote = null;
        cost.hidden = last.hidden = true;
        fill(creator, name === NEW ? newDataset() : null);
        if (name !== NEW) ask();
      };
      const options = [
        ...datasets.map((dataset) => [dataset.name, dataset.name]),
        [NEW, datasets.length ? "a new one" : "create the first one"],
      ];
      const chosen = choose ?? (datasets.length ? null : NEW);
      fill(
        who,
        h("h2", {}, "Whose budget pays?", tip("data set")),
        h(
          "p",
          { class: "hint" },
          "One budget for everything about the same people: every outcome, every version of the table.",
        ),
        choice("Data set in the ledger", options, chosen, pick, { hideLegend: true }),
        creator,
      );
      if (chosen) pick(chosen);
    }

    function newDataset() {
      const created = async (name) => {
        await load(name);
        cost.scrollIntoView({ block: "nearest" });
      };
      return h("div", { class: "inset" }, datasetForm(d.delta, created));
    }

    async function ask() {
      cost.hidden = false;
      last.hidden = true;
      fill(cost, h("p", { class: "hint" }, "Asking the ledger…"));
      const asked = form.dataset;
      try {
        const answer = await api.quote(plan.id, asked);
        if (form.dataset !== asked) return;
        quote = answer;
        showCost();
      } catch (error) {
        fill(cost, problem(error));
      }
    }

    function showCost() {
      const dataset = datasets.find((entry) => entry.name === form.dataset);
      const before = quote.left_before?.release ?? 0;
      const after = quote.left_after?.release ?? 0;
      fill(
        cost,
        h(
          "h2",
          {},
          quote.fits ? "It fits into the budget" : "It does not fit into the budget",
          tip("ledger"),
        ),
        bar(before, dataset?.epsilon ?? before, quote.fits ? after : null),
        h(
          "p",
          { class: "before-after" },
          h("span", {}, "left before: ", h("b", {}, `ε ${number(before, 3)}`)),
          quote.fits ? h("span", {}, "left after: ", h("b", {}, `ε ${number(after, 3)}`)) : null,
          dataset ? h("span", {}, "in all: ", h("b", {}, `ε ${number(dataset.epsilon)}`)) : null,
        ),
        quote.fits
          ? h("p", { class: "hint" }, sentence(quote.words))
          : note(
              "bad",
              h("p", {}, sentence(quote.words)),
              h("p", {}, link("Choose a smaller ε", "#/new/budget"), " and look at the noise again."),
            ),
      );
      if (quote.fits && !quote.known && dataset && dataset.delta !== settings.delta)
        cost.append(
          h(
            "p",
            { class: "hint" },
            `The budget counts at its own δ of ${number(dataset.delta)}: there ε ${number(quote.spent_before, 3)} is spent now, and ε ${number(quote.spent_after, 3)} after this release. Spends do not add up like money.`,
          ),
        );
      form.number = 1;
      if (quote.known) {
        cost.append(
          note(
            "good",
            h(
              "p",
              {},
              "This plan was released for these people before. ",
              link("See that release", `#/releases/${encodeURIComponent(quote.known)}`),
              ": it costs nothing to look again.",
            ),
            quote.fits
              ? check("Release it once more with fresh noise, and pay once more", false, (value) => {
                  form.number = value ? quote.next : 1;
                  last.hidden = !value;
                })
              : null,
          ),
        );
      }
      last.hidden = !quote.fits || Boolean(quote.known);
      if (quote.fits) showLast();
    }

    function showLast() {
      const trouble = h("div", {});
      const spend = h("button", { type: "submit", class: "button spend", disabled: true }, "Release now");
      const typedName = textInput(
        "",
        (value) => {
          form.confirm = value;
          spend.disabled = busy || value !== form.dataset;
        },
        { id: "confirm" },
      );

      async function submit(event) {
        event.preventDefault();
        if (busy || form.confirm !== form.dataset) return;
        busy = true;
        spend.disabled = true;
        spend.textContent = "Releasing…";
        fill(trouble);
        try {
          const answer = await api.release(plan.id, {
            dataset: form.dataset,
            confirm: form.confirm,
            why: form.why,
            missing: form.missing,
            number: form.number,
          });
          draft.set({ release: answer.release.id });
          context.on();
          return;
        } catch (error) {
          fill(trouble, problem(error));
          if (error.code === "budget_exceeded") ask();
          if (error.code === "read_only") load();
        }
        busy = false;
        spend.disabled = form.confirm !== form.dataset;
        spend.textContent = "Release now";
      }

      fill(
        last,
        h("h2", {}, "The one private step ", chip("private", "reads the outcomes")),
        h(
          "form",
          { novalidate: true, onsubmit: submit },
          field(
            "Why",
            textInput(
              form.why,
              (value) => {
                form.why = value;
              },
              { id: "why", maxlength: "200" },
            ),
            { hint: "For the ledger, optional. Write nothing here that you learned from the outcomes." },
          ),
          choice(
            "Rows without an outcome",
            [
              ["error", "stop, spend nothing"],
              ["midpoint", "count as the middle of the bounds"],
            ],
            form.missing,
            (value) => {
              form.missing = value;
            },
            { tip: tip("missing outcomes") },
          ),
          field(`Type ${form.dataset} to confirm`, typedName, {
            hint: "The name of the data set that pays, letter by letter.",
          }),
          trouble,
          spend,
        ),
      );
    }

    const known = lastAnswer();
    const summary = h(
      "section",
      { class: "card" },
      h("h2", {}, d.planName, " ", chip("public", "plan")),
      facts([
        ["public inputs", settings.inputs.join(", ")],
        ["private outcome", settings.output],
        ["bounds", `${number(settings.bounds[0])} to ${number(settings.bounds[1])}`],
        ["promise", `ε = ${number(settings.epsilon)}, δ = ${number(settings.delta)}`],
        ...(known && sameSettings(known.settings, settings)
          ? [
              ["median noise std", number(known.answer.summary.median, 3)],
              ["largest noise std", number(known.answer.summary.largest, 3)],
            ]
          : []),
      ]),
      h("p", { class: "hint" }, link("Look at the noise again", "#/new/preview"), ". It costs nothing."),
    );
    root.append(h("div", { class: "columns wide-left" }, h("div", {}, who, cost, last), summary));
    load();
    return null;
  },
};
