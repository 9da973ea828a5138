// A new token, which is shown this once.

import { button } from "../ui/buttons.js";
import { h } from "../ui/dom.js";
import { tip } from "../ui/tip.js";

export function tokenCard({ person, token }) {
  const text = h("input", {
    type: "text",
    readonly: true,
    value: token,
    class: "code",
    id: "token",
    "aria-label": `Token of ${person.name}`,
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
  const root = h(
    "section",
    { class: "card token" },
    h("h2", {}, `Token of ${person.name}`, tip("token")),
    h("p", {}, "Shown this once. Pass it on in a safe way; whoever has it is that person."),
    h("div", { class: "token-line" }, text, copy),
    h("p", { class: "hint" }, `They sign in by pasting it, or at ${window.location.origin}/enter/…`),
  );
  root.select = () => {
    text.focus();
    text.select();
  };
  return root;
}
