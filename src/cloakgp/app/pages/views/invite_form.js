// Gives somebody a token. `done` gets the person and the token.

import { api } from "../core/api.js";
import { typed } from "../core/typed.js";
import { fill, h } from "../ui/dom.js";
import { choice, field, numberInput, textInput } from "../ui/forms.js";
import { note, problem } from "../ui/notes.js";
import { tip } from "../ui/tip.js";

const ROLES = [
  ["analyst", "analyst"],
  ["custodian", "custodian"],
];

export function inviteForm(done) {
  const fresh = { name: "", role: "analyst", days: "90" };
  const trouble = h("div", {});
  const set = (name) => (value) => {
    fresh[name] = value;
  };

  async function invite(event) {
    event.preventDefault();
    const days = typed(fresh.days);
    if (!fresh.name.trim() || !Number.isInteger(days) || days < 1) {
      fill(trouble, note("bad", h("p", {}, "A person needs a name, and a whole number of days.")));
      return;
    }
    try {
      const answer = await api.invite({ name: fresh.name.trim(), role: fresh.role, days });
      fill(trouble);
      await done(answer);
    } catch (error) {
      fill(trouble, problem(error));
    }
  }

  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Let somebody in"),
    h(
      "form",
      { novalidate: true, onsubmit: invite },
      h(
        "div",
        { class: "pair" },
        field("Name", textInput("", set("name"), { id: "person-name", maxlength: "80" })),
        field("Days until it ends", numberInput(fresh.days, set("days"), { inputmode: "numeric" })),
      ),
      choice("Role", ROLES, fresh.role, set("role"), { tip: tip("analyst") }),
      trouble,
      h("button", { type: "submit", class: "button primary" }, "Make a token"),
    ),
  );
}
