// Step 7: the one private step. Which budget pays, what will be left, and a name to type.

import { api } from "../core/api.js";
import { draft } from "../core/draft.js";
import { deltaOf } from "../core/protection.js";
import { sameSettings, settingsOf } from "../core/settings.js";
import { stoppable } from "../core/watched.js";
import { link } from "../ui/buttons.js";
import { fill, h } from "../ui/dom.js";
import { note, problem, sentence } from "../ui/notes.js";
import { tip } from "../ui/tip.js";
import { confirmForm } from "./confirm_form.js";
import { payerCard } from "./payer_card.js";
import { planSummary } from "./plan_summary.js";
import { quoteCard } from "./quote_card.js";

const privateParts = (d) => (d.protect === "rows" ? "inputs and outcomes" : "outcomes");

export const releaseStep = {
  id: "release",
  name: "Release",
  title: "Release",
  lead: () =>
    `This is the one step that reads the private ${privateParts(draft.get())}, and it cannot be taken back. It spends part of the budget of the people in the data.`,
  nextText: null,
  render(root, context) {
    const d = draft.get();
    const settings = settingsOf(d);
    if (!d.plan || !settings || !sameSettings(d.plan.of.settings, settings)) {
      root.append(outOfDate());
      return null;
    }
    const cost = h("section", { class: "card", hidden: true, "aria-live": "polite" });
    const last = h("section", { class: "card danger", hidden: true });
    const payer = payerCard(String(deltaOf(d)), pick, () => cost.scrollIntoView({ block: "nearest" }));
    const form = { why: "", title: "", units: "", source: "", date: "", missing: "error", confirm: "" };
    let busy = false;
    let dataset = null; // whose budget pays
    let number = 1; // which release of this plan

    function pick(chosen) {
      dataset = chosen;
      cost.hidden = last.hidden = true;
      if (chosen) ask();
    }

    async function ask() {
      cost.hidden = false;
      last.hidden = true;
      fill(cost, h("p", { class: "hint" }, "Asking the ledger…"));
      const asked = dataset;
      try {
        const quote = await api.quote(d.plan.id, asked.name);
        if (dataset === asked) show(quote);
      } catch (error) {
        const refused = { other_unit: otherUnit, other_terms: otherTerms }[error.code];
        if (dataset === asked) fill(cost, refused ? refused(asked, error) : problem(error));
      }
    }

    function show(quote) {
      number = 1;
      const again = (wanted) => {
        number = wanted ? quote.next : 1;
        last.hidden = !wanted;
      };
      fill(cost, quoteCard(quote, dataset, settings.delta, again));
      last.hidden = !quote.fits || Boolean(quote.known);
      if (quote.fits) fill(last, confirmForm(form, dataset.name, privateParts(d), spend));
    }

    async function spend(told) {
      if (busy) throw new Error("A release is under way. Wait for it.");
      busy = true;
      try {
        const request = { ...form, dataset: dataset.name, number };
        const work = stoppable((options) => api.release(d.plan.id, request, options), told.show);
        told.stop = work.stop;
        const answer = await work.asking;
        draft.set({ release: answer.release.id });
        context.on();
      } catch (error) {
        if (error.code === "budget_exceeded") ask();
        if (error.code === "read_only") payer.load();
        throw error;
      } finally {
        busy = false;
      }
    }

    root.append(
      h("div", { class: "columns wide-left" }, h("div", {}, payer, cost, last), planSummary(d.planName, settings)),
    );
    payer.load();
    return null;
  },
};

// Promises about one row and about one person do not add up, so a budget is about one of them for ever.
function otherUnit(dataset, error) {
  return [
    h("h2", {}, "This budget is for another promise", tip("data set")),
    note(
      "warn",
      h("p", {}, sentence(error.message)),
      h("p", {}, link("Change who is protected", "#/new/who"), `, or pay from another data set than ${dataset.name}.`),
    ),
  ];
}

// A plan may ask for other columns, or for a larger δ, than a custodian has agreed to.
function otherTerms(dataset, error) {
  return [
    h("h2", {}, "This budget has other terms", tip("data set")),
    note(
      "warn",
      h("p", {}, sentence(error.message)),
      h("p", {}, link(`Terms of ${dataset.name}`, "#/budget"), ", or pay from another data set."),
    ),
  ];
}

function outOfDate() {
  return note(
    "warn",
    h(
      "p",
      {},
      "The settings have changed since the plan was kept. ",
      link("Look at the noise again", "#/new/preview"),
      " and keep the plan.",
    ),
  );
}
