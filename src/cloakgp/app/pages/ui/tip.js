// The "?" beside a word, which explains it.

import { explain } from "../core/glossary.js";
import { link } from "./buttons.js";
import { append, h } from "./dom.js";

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

function openTerm(term) {
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
