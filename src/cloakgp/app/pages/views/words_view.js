// All terms, in plain words.

import { allTerms } from "../core/glossary.js";
import { h } from "../ui/dom.js";
import { pageHead } from "../ui/page_head.js";

const slug = (term) => term.replace(/[^a-z0-9]+/gi, "-").toLowerCase();

export function wordsView(root) {
  root.append(
    pageHead("Words", "Every term in these pages, in plain words."),
    h(
      "dl",
      { class: "card words" },
      allTerms().map(([name, text]) =>
        h("div", { id: `word-${slug(name)}` }, h("dt", {}, name), h("dd", {}, text)),
      ),
    ),
  );
}
