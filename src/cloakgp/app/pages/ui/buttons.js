// Buttons and links.

import { h } from "./dom.js";

export function button(text, action, props = {}) {
  return h("button", { type: "button", class: "button", onclick: action, ...props }, text);
}

// A button that asks once more before it acts.
export function sureButton(text, question, action, props = {}) {
  let sure = false;
  const root = button(
    text,
    () => {
      if (sure) {
        action();
        return;
      }
      sure = true;
      root.textContent = question;
      root.removeAttribute("aria-label");
      root.classList.add("spend");
    },
    { class: "button small", ...props },
  );
  root.addEventListener("blur", () => {
    sure = false;
    root.textContent = text;
    root.classList.remove("spend");
    if (props["aria-label"]) root.setAttribute("aria-label", props["aria-label"]);
  });
  return root;
}

export function link(text, href, props = {}) {
  return h("a", { href, ...props }, text);
}
