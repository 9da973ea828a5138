// What each column of the chosen file is. Nothing is read for it but the names.

import { draft } from "../core/draft.js";
import { inputsOf } from "../core/draft_parts.js";
import { fill, h } from "../ui/dom.js";
import { choice } from "../ui/forms.js";
import { tip } from "../ui/tip.js";
import { outcomeKind } from "./outcome_kind.js";
import { rolesMeaning } from "./roles_meaning.js";

const ROLES = [
  ["input", "input"],
  ["output", "private outcome"],
  ["", "not used"],
];

// What was found out, or typed, about other inputs.
const UNREAD = { protect: null, who: null, box: {}, nPeople: "", maxRows: "", facts: null, people: null };
const UNSAID = { categories: [], dropMissing: false };
const UNSET = { model: null, lengthscales: [], perAxis: "", kernelText: "", asText: false, ownPoints: "" };

export function rolesCard() {
  const root = h("section", { class: "card", hidden: true });

  function setRole(column, role) {
    const all = { ...draft.get().roles };
    if (role === "output") {
      for (const name of Object.keys(all)) if (all[name] === "output") delete all[name];
    }
    if (role) all[column] = role;
    else delete all[column];
    const before = inputsOf(draft.get()).join("\n");
    draft.set({ roles: all, given: null, plan: null, release: null, planName: "" });
    if (inputsOf(draft.get()).join("\n") !== before) draft.set({ ...UNREAD, ...UNSAID, ...UNSET });
    if (draft.get().who === column && role === "output") draft.set({ ...UNREAD });
    show(column);
  }

  function show(focusOn) {
    const d = draft.get();
    root.hidden = !d.data;
    if (!d.data) return;
    fill(
      root,
      h("h2", {}, `What is what in ${d.shown ?? d.data}?`),
      h(
        "p",
        { class: "hint" },
        "Inputs",
        tip("input"),
        " are what one predicts from. The outcome",
        tip("private outcome"),
        " is what is predicted, and always private.",
      ),
      h(
        "div",
        { class: "roles" },
        d.columns.map((column) =>
          h(
            "div",
            { class: `role ${d.roles[column] ?? ""}` },
            h("span", { class: "role-name", "aria-hidden": "true" }, column),
            choice(`Role of ${column}`, ROLES, d.roles[column] ?? "", (role) => setRole(column, role), {
              hideLegend: true,
            }),
          ),
        ),
      ),
      outcomeKind(),
      h("div", { class: "consequences" }, rolesMeaning(d)),
    );
    if (focusOn) {
      const place = d.columns.indexOf(focusOn);
      root.querySelectorAll(".role")[place]?.querySelector("input:checked")?.focus();
    }
  }

  root.show = show;
  return root;
}
