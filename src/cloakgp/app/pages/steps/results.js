// Step 7: what came out.

import { draft, startAgain } from "../store.js";
import { go } from "../router.js";
import { button, h, note, problem } from "../ui.js";
import { showRelease } from "../views/release.js";

export const results = {
  id: "results",
  name: "Results",
  title: "Results",
  lead: () =>
    "These numbers may be published. From here on everything is free: asking, denoising, downloading.",
  nextText: null,
  render(root) {
    const inner = h("div", {}, h("p", { class: "loading" }, "Loading…"));
    let done = null;
    let gone = false;
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
    showRelease(inner, draft.get().release)
      .then((undo) => {
        if (gone) undo?.();
        else done = undo;
      })
      .catch((error) => inner.replaceChildren(problem(error)));
    return () => {
      gone = true;
      done?.();
    };
  },
};
