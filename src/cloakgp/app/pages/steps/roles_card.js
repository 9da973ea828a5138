// What each column of the chosen file is. `fail(error)` hears if the inputs cannot be read, and of null once they are.

import { api } from "../core/api.js";
import { draft } from "../core/draft.js";
import { inputsOf } from "../core/draft_parts.js";
import { fill, h } from "../ui/dom.js";
import { choice } from "../ui/forms.js";
import { tip } from "../ui/tip.js";
import { rolesMeaning } from "./roles_meaning.js";

const ROLES = [
  ["input", "public input"],
  ["output", "private outcome"],
  ["", "not used"],
];

export function rolesCard(fail) {
  const root = h("section", { class: "card", hidden: true });
  const consequences = h("div", { class: "consequences" });
  let asking = null;

  function setRole(column, role) {
    const all = { ...draft.get().roles };
    if (role === "output") {
      for (const name of Object.keys(all)) if (all[name] === "output") delete all[name];
    }
    if (role) all[column] = role;
    else delete all[column];
    const before = inputsOf(draft.get()).join("\n");
    draft.set({ roles: all, given: null, plan: null, release: null, planName: "" });
    if (inputsOf(draft.get()).join("\n") !== before) {
      draft.set({ facts: null, model: null, lengthscales: [], perAxis: "", kernelText: "", asText: false, ownPoints: "" });
      root.reading = readInputs();
    }
    show(column);
  }

  async function readInputs() {
    const d = draft.get();
    const names = inputsOf(d);
    asking?.abort();
    if (!names.length) return;
    asking = new AbortController();
    const mine = asking;
    try {
      const facts = await api.inputs(d.data, names, mine.signal);
      if (mine !== asking) return;
      fail(null);
      draft.set({ facts });
      fill(consequences, rolesMeaning(draft.get()));
    } catch (error) {
      if (error.name !== "AbortError" && mine === asking) fail(error);
    }
  }

  function show(focusOn) {
    const d = draft.get();
    root.hidden = !d.data;
    if (!d.data) return;
    fill(
      root,
      h("h2", {}, `What is what in ${d.data}?`),
      h(
        "p",
        { class: "hint" },
        "Public inputs",
        tip("public input"),
        " are what one predicts from. The private outcome",
        tip("private outcome"),
        " is what is predicted.",
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
      consequences,
    );
    fill(consequences, rolesMeaning(d));
    if (focusOn) {
      const place = d.columns.indexOf(focusOn);
      root.querySelectorAll(".role")[place]?.querySelector("input:checked")?.focus();
    }
  }

  root.reading = draft.get().data && !draft.get().facts ? readInputs() : null; // the input columns, until they are read
  root.show = show;
  root.done = () => asking?.abort();
  return root;
}
