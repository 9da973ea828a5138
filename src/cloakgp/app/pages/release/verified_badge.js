// Whether the server could work out the promise again from the release file.

import { api } from "../core/api.js";
import { h } from "../ui/dom.js";

const WORDS = { bad: "not verified", warn: "verified in part", good: "verified" };

export function verifiedBadge(id) {
  const badge = h("span", { class: "chip wait" }, "checking…");
  const say = (kind, text, title) => {
    badge.className = `chip ${kind}`;
    badge.textContent = text;
    if (title) badge.title = title;
  };
  api
    .verify(id)
    .then((answer) => {
      const kind = !answer.ok ? "bad" : answer.complete ? "good" : "warn";
      const total = answer.earlier.length ? ", not the total" : ""; // it was given earlier releases
      say(kind, `${WORDS[kind]}${total}`, answer.words);
    })
    .catch(() => say("bad", "could not be checked"));
  return badge;
}
