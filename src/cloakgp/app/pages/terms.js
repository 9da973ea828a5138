// Plain words for every term, one click away. The server's words are used where it has them.

import { session } from "./store.js";
import { append, h, link } from "./ui.js";

const OWN = {
  "differential privacy":
    "A promise about what is released: it would have come out with nearly the same probability if any one row's outcome had been something else. So nobody can learn much about one person from it.",
  epsilon:
    "How much one person's outcome may change what is released. Near 0 it hardly shows; at 1 no result becomes more than 2.7 times as likely through one row; at 10, more than 20,000 times. Smaller is more private, and noisier.",
  delta: "The probability with which the promise may fail. Choose it well below one over the number of rows.",
  "noise std":
    "How far a released number typically lies from the model's own prediction, because of the noise added for privacy. About two in three fall within one std, 95 % within two. It is known exactly beforehand, since it does not depend on the private outcomes.",
  bounds:
    "The smallest and the largest outcome that you know to be possible, from public knowledge. Outcomes beyond them are moved to the nearest bound. Wider bounds need more noise; they must not be read off the data, since the smallest and the largest outcome are somebody's.",
  "public input":
    "What the outcome is predicted from, such as an age or a place. Inputs are treated as public: they are written into the release file as they are.",
  "private outcome":
    "What is protected: one number per row, such as a height or a price. It is read once, at the release, and only noisy numbers leave.",
  kernel:
    "The model's assumption about how smooth the curve is: how strongly outcomes at two inputs go together, by how far apart the inputs are.",
  lengthscale:
    "How far apart two inputs must be for their outcomes to have little to do with each other. A long one averages over more people, which takes less noise; a short one follows finer detail.",
  variance:
    "The square of a std. In the kernel: how far the curve moves up and down over the inputs. As noise: how far single outcomes lie from the curve.",
  spread:
    "How far the curve moves up and down over the inputs, as a std in the outcome's unit. The kernel's variance is its square.",
  scatter:
    "How far single outcomes lie from the curve, as a std in the outcome's unit: people of the same age differ in height. Its square is the model's noise variance. It is no privacy noise.",
  "inducing inputs":
    "Places, spread over the public inputs, through which the curve is seen where there are many rows. More of them follow finer detail and take longer.",
  "prior mean":
    "What the model expects where there are no data at all. The middle of the bounds, unless you say otherwise.",
  "test points":
    "The inputs at which predictions are released. The noise is shaped for them; predictions elsewhere are free afterwards.",
  grid: "Points at equal distances over the range of the inputs: so many along each input column.",
  design:
    "How the noise is shaped. mse: least noise on average (in doubt, take this). max: least noise at the worst point. posterior: least error of denoised predictions. volume: the paper's. All of them cost the same privacy.",
  "whole function":
    "A release that can be asked anywhere, when nobody knows the test points yet. It takes more noise than releasing predictions.",
  denoised:
    "The best prediction that a reader can make from what was released, knowing the model and the law of the noise. It sees no private data and costs nothing.",
  "95 % band": "Where the true curve lies with probability 95 %, if the model is right.",
  plan: "Everything about a release but the outcomes: model, test points, budget, and the noise that follows. A plan is public and costs nothing.",
  release:
    "The one private step: the outcomes are read, noise is added, and part of the budget is spent. Each release spends once more.",
  ledger:
    "The book of what was spent on each data set. It refuses what does not fit before the outcomes are read. Entries can only be added, and each carries a hash of the one before.",
  budget: "The epsilon and delta that all releases about the same people may spend together.",
  "data set":
    "In the ledger: a set of people. Everything about them, whatever the column or the version of the table, is paid from its one budget.",
  "one row":
    "The unit of protection: the outcome of one row. A person who owns several rows is protected less.",
  certificate:
    "What a plan promises and how it was reached: epsilon, delta, how far one row can move the result, and how large the noise is. Anybody can check it from the release file.",
  verified:
    "The numbers in the release file were worked out again: noise of the size stated is enough for the promise. That it was drawn at random, no file can show. In part: the file does not hold all that this takes, so the promise is claimed and not proven.",
  "hash chain":
    "Each entry of the ledger carries a fingerprint of itself and of the entry before. A change anywhere breaks the chain, and is found.",
  "missing outcomes":
    "Rows without an outcome. Dropping them tells something about them; counting them as the middle of the bounds does not.",
  token: "A secret word that signs a person in. It is shown once and kept on the server as a hash only.",
  analyst: "Sees plans and releases, and asks for predictions. Never sees the data and cannot spend.",
  custodian: "Holds the private data: plans, releases and keeps the budget.",
};

export const slug = (term) => term.replace(/[^a-z0-9]+/gi, "-").toLowerCase();

export function explain(term) {
  const server = session.get().terms ?? {};
  const found = Object.keys(server).find((name) => name.toLowerCase() === term.toLowerCase());
  return (found && server[found]) || OWN[term] || "";
}

// Words of the server for which these pages say something else.
const SAME = [
  "chain",
  "missing",
  "function",
  "input",
  "output",
  "unit",
  "verify",
  "mean",
  "noise variance",
  "interval",
];

export function allTerms() {
  const names = new Map();
  for (const name of [...Object.keys(OWN), ...Object.keys(session.get().terms ?? {})]) {
    if (!names.has(name.toLowerCase()) && !SAME.includes(name.toLowerCase()))
      names.set(name.toLowerCase(), name);
  }
  return [...names.values()].sort((a, b) => a.localeCompare(b)).map((name) => [name, explain(name)]);
}

// The "?" beside a word.
export function tip(term) {
  return h(
    "button",
    {
      type: "button",
      class: "tip",
      "aria-label": `What is ${term}?`,
      "aria-haspopup": "dialog",
      onclick: () => openTerm(term),
    },
    "?",
  );
}

export function openTerm(term) {
  const dialog = document.getElementById("term");
  const close = () => dialog.close();
  dialog.replaceChildren();
  append(dialog, [
    h("h2", { id: "term-name" }, term),
    h("p", {}, explain(term)),
    h(
      "p",
      { class: "actions" },
      h("button", { type: "button", class: "button primary", onclick: close, autofocus: true }, "Close"),
      link("All words", "#/words", { class: "quiet", onclick: close }),
    ),
  ]);
  dialog.onclick = (event) => {
    if (event.target === dialog) close(); // outside of it
  };
  dialog.showModal();
}
