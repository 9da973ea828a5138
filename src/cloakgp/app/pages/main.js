// Puts the pages together: who is signed in, the bar at the top, and which view an address shows.

import { api } from "./core/api.js";
import { startAgain } from "./core/draft.js";
import { go, here, otherwise, route, start } from "./core/router.js";
import { isCustodian, session } from "./core/session.js";
import { walk } from "./steps/walk.js";
import { button } from "./ui/buttons.js";
import { fill, h } from "./ui/dom.js";
import { topBar } from "./ui/top_bar.js";
import { budgetView } from "./views/budget_view.js";
import { peopleView } from "./views/people_view.js";
import { planView } from "./views/plan_view.js";
import { plansView } from "./views/plans_view.js";
import { releaseView } from "./views/release_view.js";
import { releasesView } from "./views/releases_view.js";
import { signInView } from "./views/sign_in_view.js";
import { wordsView } from "./views/words_view.js";

const custodianOnly = (view) => (root, parameters) => {
  if (isCustodian()) return view(root, parameters);
  window.location.replace(`#${home()}`);
  return null;
};

const signedIn = (view) => (root, parameters) => {
  if (session.get().me) return view(root, parameters);
  return signInView(root, enter);
};

function home() {
  if (!session.get().me) return "/sign-in";
  return isCustodian() ? "/new/data" : "/releases";
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

const top = () => topBar(home(), signOut);

async function signOut() {
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
    session.set({ defaults: await api.defaults(), me });
    if (me.role !== "custodian") startAgain(); // somebody else's draft may be left in this tab
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
window.addEventListener("signed-out", () => {
  if (!session.get().me) return;
  session.set({ me: null });
  left = here();
  window.location.replace("#/sign-in");
});
// A file that is dropped beside the box must not take the place of the page.
for (const kind of ["dragover", "drop"]) window.addEventListener(kind, (event) => event.preventDefault());

try {
  const terms = api.terms().catch(() => ({})); // while it is found out who is signed in
  await load();
  session.set({ terms: await terms });
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
