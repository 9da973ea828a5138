// Sign in with a token.

import { api } from "../core/api.js";
import { fill, h } from "../ui/dom.js";
import { field } from "../ui/forms.js";
import { mark } from "../ui/mark.js";
import { problem } from "../ui/notes.js";
import { tip } from "../ui/tip.js";

export function signInView(root, onSignedIn) {
  const trouble = h("div", {});
  const token = h("input", {
    type: "password",
    autocomplete: "current-password",
    spellcheck: "false",
    class: "code",
    id: "token",
  });
  async function submit(event) {
    event.preventDefault();
    try {
      await api.signIn(token.value.trim());
      await onSignedIn();
    } catch (error) {
      fill(trouble, problem(error));
      token.focus();
    }
  }
  root.append(
    h(
      "section",
      { class: "card sign-in" },
      mark(),
      h("h1", {}, "Sign in"),
      h(
        "p",
        { class: "lead" },
        "Regressions of private outcomes, published under differential privacy.",
        tip("differential privacy"),
      ),
      h(
        "form",
        { novalidate: true, onsubmit: submit },
        field("Your token", token, {
          hint: "You got it from a custodian. On your own machine, the link that cloakgp serve printed signs you in.",
          tip: tip("token"),
        }),
        trouble,
        h("button", { type: "submit", class: "button primary" }, "Sign in"),
      ),
    ),
  );
}
