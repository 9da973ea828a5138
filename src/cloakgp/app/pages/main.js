// Puts the pages together: who is signed in, the bar at the top, and which view an address shows.

import { api } from "./api.js";
import { go, here, otherwise, route, start } from "./router.js";
import { walk } from "./steps/frame.js";
import { session, startAgain } from "./store.js";
import { button, fill, h, link, mark } from "./ui.js";
import { budgetView } from "./views/budget.js";
import { plansView, planView, releasesView, wordsView } from "./views/lists.js";
import { peopleView } from "./views/people.js";
import { releaseView } from "./views/release.js";
import { signInView } from "./views/signin.js";

const custodianOnly = (view) => (root, parameters) => {
  if (session.get().me?.role === "custodian") return view(root, parameters);
  window.location.replace(`#${home()}`);
  return null;
};

const signedIn = (view) => (root, parameters) => {
  if (session.get().me) return view(root, parameters);
  return signInView(root, enter);
};

function home() {
  const { me } = session.get();
  if (!me) return "/sign-in";
  return me.role === "custodian" ? "/new/data" : "/releases";
}

route("/sign-in", (root) => signInView(root, enter));
route("/new/:step", signedIn(custodianOnly(walk)));
route("/releases", signedIn(releasesView));
route("/releases/:id", signedIn(releaseView));
route("/plans", signedIn(plansView));
route("/plans/:id", signedIn(planView));
route("/budget", signedIn(custodianOnly(budgetView)));
route("/people", signedIn(custodianOnly(peopleView)));
route("/words", signedIn(wordsView));
otherwise(home);

const PAGES = [
  ["/new/data", "New release", "/new", "custodian"],
  ["/releases", "Releases", "/releases"],
  ["/plans", "Plans", "/plans"],
  ["/budget", "Budget", "/budget", "custodian"],
  ["/people", "People", "/people", "custodian"],
];

function top() {
  const { me } = session.get();
  const path = here();
  const theme = () => (window.cloakTheme.current() === "dark" ? "Light" : "Dark");
  const toggle = button(
    theme(),
    () => {
      window.cloakTheme.toggle();
    },
    { class: "button quiet small theme", id: "theme-toggle" },
  );
  fill(
    document.getElementById("top"),
    h(
      "div",
      { class: "top-inner" },
      h(
        "a",
        { class: "brand", href: `#${home()}`, "aria-label": "cloakgp, start" },
        mark(),
        h("span", {}, "cloakgp"),
      ),
      me
        ? h(
            "nav",
            { "aria-label": "Pages" },
            PAGES.filter(([, , , role]) => !role || role === me.role).map(([href, text, stem]) =>
              link(text, `#${href}`, {
                "aria-current": path === stem || path.startsWith(`${stem}/`) ? "page" : null,
              }),
            ),
          )
        : h("span", {}),
      h(
        "div",
        { class: "who" },
        me
          ? h("span", { class: "who-name" }, me.name, h("small", {}, me.demo ? `${me.role}, demo` : me.role))
          : null,
        toggle,
        me ? button("Sign out", leave, { class: "button quiet small" }) : null,
      ),
    ),
  );
  fill(
    document.getElementById("foot"),
    h("p", {}, "A plan is public, a release is private, a prediction is free."),
    me ? h("p", {}, link("All words explained", "#/words"), ` · cloakgp ${me.version}`) : null,
  );
}

async function leave() {
  try {
    await api.signOut();
  } finally {
    session.set({ me: null });
    window.sessionStorage.clear();
    window.location.replace("#/sign-in");
    window.location.reload();
  }
}

async function load() {
  try {
    const me = await api.me();
    session.set({ me });
    if (me.role !== "custodian") startAgain(); // somebody else's draft may be left in this tab
    session.set({ terms: await api.terms().catch(() => null) });
  } catch (error) {
    session.set({ me: null });
    if (error.status !== 401) throw error;
  }
}

let left = null; // where somebody was when the session ended

async function enter() {
  await load();
  top();
  go(left ?? home());
  left = null;
}

window.addEventListener("shown", top);
window.addEventListener("theme", () => {
  const toggle = document.getElementById("theme-toggle");
  if (toggle) toggle.textContent = window.cloakTheme.current() === "dark" ? "Light" : "Dark";
});
window.addEventListener("signed-out", () => {
  if (!session.get().me) return;
  session.set({ me: null });
  left = here();
  window.location.replace("#/sign-in");
});
// A file that is dropped beside the box must not take the place of the page.
for (const kind of ["dragover", "drop"]) window.addEventListener(kind, (event) => event.preventDefault());

try {
  await load();
} catch (error) {
  fill(
    document.getElementById("content"),
    h("h1", {}, "Not available"),
    h("p", {}, error.message),
    button("Try again", () => window.location.reload()),
  );
}
if (session.get().me || !document.querySelector("#content h1")) {
  if (!session.get().me && here() !== "/sign-in") window.location.replace("#/sign-in");
  top();
  await start();
}
