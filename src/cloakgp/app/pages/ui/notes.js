// Chips, notes, and pages that are still empty.

import { h } from "./dom.js";
import { mark } from "./mark.js";

export function chip(kind, text) {
  return h("span", { class: `chip ${kind}` }, text);
}

export function note(kind, ...children) {
  return h("div", { class: `note ${kind}`, role: kind === "bad" ? "alert" : null }, ...children);
}

// The server's sentences may begin in small letters. Names are left as they are.
export function sentence(text) {
  return String(text ?? "").replace(
    /^(the|this|that|these|there|a|an|one|only|no|nobody|too|data|dataset|bounds|epsilon|delta|kernel|noise)\b/,
    (word) => word[0].toUpperCase() + word.slice(1),
  );
}

// An error, in the server's own sentence.
export function problem(error, ...more) {
  const [first, ...rest] = String(error?.message ?? error).split("\n"); // what follows points at a place in a text
  return note(
    "bad",
    h("p", {}, sentence(first)),
    rest.length ? h("pre", {}, rest.join("\n")) : null,
    ...more,
  );
}

export function empty(title, text, ...actions) {
  return h(
    "div",
    { class: "empty" },
    mark(),
    h("h2", {}, title),
    h("p", {}, text),
    actions.length ? h("p", { class: "actions" }, ...actions) : null,
  );
}
