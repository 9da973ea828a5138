// Who may sign in: a token for each person, shown once, and revoked when it should end.

import { api } from "../core/api.js";
import { when } from "../core/format.js";
import { announce } from "../ui/announce.js";
import { sureButton } from "../ui/buttons.js";
import { fill, h } from "../ui/dom.js";
import { chip, empty, problem } from "../ui/notes.js";
import { pageHead } from "../ui/page_head.js";
import { table } from "../ui/tables.js";
import { inviteForm } from "./invite_form.js";
import { tokenCard } from "./token_card.js";

const HEADINGS = ["name", "role", "since", "until", "token"];

function ended(person) {
  if (person.revoked) return chip("bad", "revoked");
  return person.expires && new Date(person.expires) < new Date() ? chip("warn", "expired") : null;
}

export async function peopleView(root) {
  const shown = h("div", {});
  const list = h("section", { class: "card" });
  const trouble = h("div", {});

  async function refresh() {
    const people = await api.people();
    fill(
      list,
      h("h2", {}, "People"),
      people.length
        ? table(HEADINGS, people.map(cells), { caption: "People", stacked: true })
        : empty(
            "Nobody else yet",
            "Give a colleague a token below. Analysts see plans and releases, never data.",
          ),
    );
  }

  async function revoke(person) {
    try {
      await api.revoke(person.id);
      announce(`${person.name} can no longer sign in.`);
      await refresh();
      fill(trouble);
    } catch (error) {
      fill(trouble, problem(error));
    }
  }

  const cells = (person) => [
    h("b", {}, person.name),
    person.role,
    when(person.created),
    person.expires ? when(person.expires) : "–",
    ended(person) ??
      sureButton("Revoke", `Really revoke ${person.name}?`, () => revoke(person), {
        "aria-label": `Revoke ${person.name}`,
      }),
  ];

  async function invited(answer) {
    const card = tokenCard(answer);
    fill(shown, card);
    card.select();
    await refresh();
  }

  root.append(
    pageHead(
      "People",
      "Custodians plan, release and keep the budget. Analysts see plans and releases, and ask for predictions.",
    ),
    shown,
    list,
    trouble,
    inviteForm(invited),
  );
  await refresh();
}
