// The bar above every page and the lines below it: where one is, who one is, light or dark.

import { here } from "../core/router.js";
import { session } from "../core/session.js";
import { button, link } from "./buttons.js";
import { fill, h } from "./dom.js";
import { mark } from "./mark.js";

const PAGES = [
  ["/new/data", "New release", "/new", "custodian"],
  ["/releases", "Releases", "/releases"],
  ["/plans", "Plans", "/plans"],
  ["/budget", "Budget", "/budget", "custodian"],
  ["/people", "People", "/people", "custodian"],
];

const otherTheme = () => (window.cloakTheme.current() === "dark" ? "Light" : "Dark");

window.addEventListener("theme", () => {
  const toggle = document.getElementById("theme-toggle");
  if (toggle) toggle.textContent = otherTheme();
});

function pages(me) {
  const path = here();
  return h(
    "nav",
    { "aria-label": "Pages" },
    PAGES.filter(([, , , role]) => !role || role === me.role).map(([href, text, stem]) =>
      link(text, `#${href}`, {
        "aria-current": path === stem || path.startsWith(`${stem}/`) ? "page" : null,
      }),
    ),
  );
}

function who(me, signOut) {
  const toggle = button(otherTheme(), () => window.cloakTheme.toggle(), {
    class: "button quiet small theme",
    id: "theme-toggle",
  });
  return h(
    "div",
    { class: "who" },
    me
      ? h("span", { class: "who-name" }, me.name, h("small", {}, me.demo ? `${me.role}, demo` : me.role))
      : null,
    toggle,
    me ? button("Sign out", signOut, { class: "button quiet small" }) : null,
  );
}

export function topBar(home, signOut) {
  const { me } = session.get();
  fill(
    document.getElementById("top"),
    h(
      "div",
      { class: "top-inner" },
      h(
        "a",
        { class: "brand", href: `#${home}`, "aria-label": "cloakgp, start" },
        mark(),
        h("span", {}, "cloakgp"),
      ),
      me ? pages(me) : h("span", {}),
      who(me, signOut),
    ),
  );
  fill(
    document.getElementById("foot"),
    h("p", {}, "A plan is public, a release is private, a prediction is free."),
    me ? h("p", {}, link("All words explained", "#/words"), ` · cloakgp ${me.version}`) : null,
  );
}
