// Who may sign in: a token for each person, shown once, and revoked when it should end.

import { api } from "../api.js";
import { typed, when } from "../format.js";
import { tip } from "../terms.js";
import {
  announce,
  button,
  chip,
  choice,
  empty,
  field,
  fill,
  h,
  note,
  numberInput,
  problem,
  sureButton,
  table,
  textInput,
} from "../ui.js";

export async function peopleView(root) {
  const shown = h("div", {});
  const list = h("section", { class: "card" });
  const trouble = h("div", {});
  const fresh = { name: "", role: "analyst", days: "90" };

  async function refresh() {
    const people = await api.people();
    fill(
      list,
      h("h2", {}, "People"),
      people.length
        ? table(["name", "role", "since", "until", "token"], people.map(person), {
            caption: "People",
            stacked: true,
          })
        : empty(
            "Nobody else yet",
            "Give a colleague a token below. Analysts see plans and releases, never data.",
          ),
    );
  }

  function person(one) {
    const over = one.revoked
      ? chip("bad", "revoked")
      : one.expires && new Date(one.expires) < new Date()
        ? chip("warn", "expired")
        : null;
    const end = sureButton(
      "Revoke",
      `Really revoke ${one.name}?`,
      async () => {
        try {
          await api.revoke(one.id);
          announce(`${one.name} can no longer sign in.`);
          await refresh();
        } catch (error) {
          fill(trouble, problem(error));
        }
      },
      { "aria-label": `Revoke ${one.name}` },
    );
    return [
      h("b", {}, one.name),
      one.role,
      when(one.created),
      one.expires ? when(one.expires) : "–",
      over ?? end,
    ];
  }

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
      showToken(answer);
      await refresh();
    } catch (error) {
      fill(trouble, problem(error));
    }
  }

  function showToken({ person: one, token }) {
    const text = h("input", {
      type: "text",
      readonly: true,
      value: token,
      class: "code",
      id: "token",
      "aria-label": `Token of ${one.name}`,
    });
    const copy = button("Copy", async () => {
      text.select();
      try {
        await navigator.clipboard.writeText(token);
        copy.textContent = "Copied";
      } catch {
        copy.textContent = "Selected: copy it now";
      }
    });
    fill(
      shown,
      h(
        "section",
        { class: "card token" },
        h("h2", {}, `Token of ${one.name}`, tip("token")),
        h("p", {}, "Shown this once. Pass it on in a safe way; whoever has it is that person."),
        h("div", { class: "token-line" }, text, copy),
        h("p", { class: "hint" }, `They sign in by pasting it, or at ${window.location.origin}/enter/…`),
      ),
    );
    text.focus();
    text.select();
  }

  root.append(
    h(
      "div",
      { class: "step-head" },
      h("h1", {}, "People"),
      h(
        "p",
        { class: "lead" },
        "Custodians plan, release and keep the budget. Analysts see plans and releases, and ask for predictions.",
      ),
    ),
    shown,
    list,
    h(
      "section",
      { class: "card" },
      h("h2", {}, "Let somebody in"),
      h(
        "form",
        { novalidate: true, onsubmit: invite },
        h(
          "div",
          { class: "pair" },
          field(
            "Name",
            textInput(
              "",
              (value) => {
                fresh.name = value;
              },
              { id: "person-name", maxlength: "80" },
            ),
          ),
          field(
            "Days until it ends",
            numberInput(
              "90",
              (value) => {
                fresh.days = value;
              },
              { inputmode: "numeric" },
            ),
          ),
        ),
        choice(
          "Role",
          [
            ["analyst", "analyst"],
            ["custodian", "custodian"],
          ],
          fresh.role,
          (value) => {
            fresh.role = value;
          },
          { tip: tip("analyst") },
        ),
        trouble,
        h("button", { type: "submit", class: "button primary" }, "Make a token"),
      ),
    ),
  );
  await refresh();
}
