// Step 8: what came out.

import { draft, startAgain } from "../core/draft.js";
import { go } from "../core/router.js";
import { loadingResults } from "../release/loading_results.js";
import { button } from "../ui/buttons.js";
import { h } from "../ui/dom.js";
import { note } from "../ui/notes.js";

export const resultsStep = {
  id: "results",
  name: "Results",
  title: "Results",
  lead: () =>
    "These numbers may be published. From here on everything is free: asking, denoising, downloading.",
  nextText: null,
  render(root) {
    const inner = h("div", {});
    root.append(
      note(
        "good",
        h(
          "p",
          {},
          "Released, and written into the ledger. Any change from here on is a new plan, and a new spend.",
        ),
      ),
      inner,
      h(
        "div",
        { class: "step-buttons" },
        h("span", {}),
        button("Start another one", () => {
          startAgain();
          go("/new/data");
        }),
      ),
    );
    return loadingResults(inner, draft.get().release);
  },
};
