// Lists that both roles see: releases, plans, and the words.

import { api } from "../api.js";
import { number, percent, when } from "../format.js";
import { noiseTiles } from "../preview.js";
import { go } from "../router.js";
import { draftOf } from "../settings.js";
import { draft, session, startAgain } from "../store.js";
import { allTerms, slug, tip } from "../terms.js";
import { button, chip, empty, fill, h, link, problem } from "../ui.js";
import { settingsFacts } from "./release.js";

const isCustodian = () => session.get().me?.role === "custodian";

function head(root, title, lead) {
  root.append(h("div", { class: "step-head" }, h("h1", {}, title), h("p", { class: "lead" }, lead)));
}

function entry(item, href, kind) {
  const s = item.settings;
  const summary = item.summary ?? {};
  return h(
    "li",
    { class: "card entry" },
    h(
      "div",
      {},
      h("h2", {}, link(item.name, href)),
      h("p", { class: "hint" }, `${when(item.created)}, ${item.by}`),
    ),
    h(
      "p",
      { class: "badges" },
      chip(kind, `ε ${number(s.epsilon)}`),
      chip("plain", `${s.output} by ${s.inputs.join(", ")}`),
      s.kind === "function" ? chip("plain", "whole function") : null,
      summary.median !== undefined
        ? chip(
            "plain",
            `median noise ${number(summary.median, 3)}, ${percent(summary.median / summary.bounds_width)} of the bounds`,
          )
        : null,
    ),
  );
}

export async function releasesView(root) {
  head(
    root,
    "Releases",
    "What may be seen by everybody who is signed in. Asking a release costs nothing, however often.",
  );
  const all = await api.releases();
  root.append(
    all.length
      ? h(
          "ul",
          { class: "entries" },
          all.map((item) => entry(item, `#/releases/${encodeURIComponent(item.id)}`, "private")),
        )
      : empty(
          "Nothing released yet",
          isCustodian()
            ? "Walk from a file to a release; nothing is spent before its last step."
            : "As soon as a custodian releases something, it is here.",
          isCustodian() ? link("Start a release", "#/new/data", { class: "button primary" }) : null,
        ),
  );
}

export async function plansView(root) {
  head(
    root,
    "Plans",
    "What is or was meant to be released: model, test points, promise and noise. Plans hold nothing of the outcomes.",
  );
  const all = await api.plans();
  root.append(
    all.length
      ? h(
          "ul",
          { class: "entries" },
          all.map((item) => entry(item, `#/plans/${encodeURIComponent(item.id)}`, "public")),
        )
      : empty(
          "No plans yet",
          isCustodian()
            ? "A plan is kept at the end of the noise preview."
            : "As soon as a custodian keeps a plan, it is here.",
        ),
  );
}

export async function planView(root, { id }) {
  const plan = await api.plan(id);
  root.append(h("p", { class: "crumbs" }, link("Plans", "#/plans")));
  head(root, plan.name, `Kept ${when(plan.created)} by ${plan.by}. A plan is public and costs nothing.`);
  const trouble = h("div", {});
  const takeUp = async () => {
    try {
      const file = (await api.data()).find((one) => one.name === plan.settings.data);
      if (!file) throw new Error(`The file ${plan.settings.data} is no longer on this server.`);
      const facts = await api.inputs(file.name, plan.settings.inputs);
      startAgain();
      draft.set(draftOf(plan, file, facts));
      go("/new/preview");
    } catch (error) {
      fill(trouble, problem(error));
    }
  };
  root.append(
    isCustodian() ? h("p", {}, button("Take up this plan", takeUp, { class: "button primary" })) : "",
    trouble,
    h(
      "section",
      { class: "card" },
      h("h2", {}, "Noise that a release would carry", tip("noise std")),
      plan.summary ? noiseTiles(plan.summary) : null,
    ),
    h(
      "section",
      { class: "card" },
      h("h2", {}, "Settings", tip("plan")),
      settingsFacts(plan.settings, plan.certificate),
    ),
  );
}

export function wordsView(root) {
  head(root, "Words", "Every term in these pages, in plain words.");
  root.append(
    h(
      "dl",
      { class: "card words" },
      allTerms().map(([name, text]) =>
        h("div", { id: `word-${slug(name)}` }, h("dt", {}, name), h("dd", {}, text)),
      ),
    ),
  );
}
