// Addresses after the #: a list of [pattern, view]. A view fills an element and may return how to clean up.

import { announce } from "../ui/announce.js";
import { clear, h } from "../ui/dom.js";
import { problem } from "../ui/notes.js";

const routes = [];
let cleanUp = null;
let fallback = () => "/";
let turn = 0;

export function route(pattern, view) {
  const names = [];
  const source = pattern.replace(/:(\w+)/g, (_, name) => {
    names.push(name);
    return "([^/]+)";
  });
  routes.push({ pattern: new RegExp(`^${source}$`), names, view });
}

export function otherwise(home) {
  fallback = home;
}

export const here = () => window.location.hash.slice(1).split("?")[0] || "/";

export function go(path) {
  if (here() === path) show();
  else window.location.hash = path;
}

async function show() {
  const path = here();
  if (path === "content") return; // the skip link
  const found = routes
    .map((entry) => ({ ...entry, match: entry.pattern.exec(path) }))
    .find((entry) => entry.match);
  if (!found) {
    window.location.replace(`#${fallback()}`);
    return;
  }
  const mine = ++turn;
  if (typeof cleanUp === "function") cleanUp();
  cleanUp = null;
  const parameters = {};
  found.names.forEach((name, place) => {
    parameters[name] = decodeURIComponent(found.match[place + 1]);
  });
  const main = document.getElementById("content");
  const root = h("div", { class: "view" });
  const waiting = window.setTimeout(
    () => mine === turn && main.replaceChildren(h("p", { class: "loading" }, "Loading…")),
    250,
  );
  let undo = null;
  try {
    undo = await found.view(root, parameters);
  } catch (error) {
    clear(root).append(h("h1", {}, "That did not work"), problem(error));
  }
  window.clearTimeout(waiting);
  if (mine !== turn) {
    if (typeof undo === "function") undo();
    return;
  }
  cleanUp = undo;
  main.replaceChildren(root);
  window.dispatchEvent(new CustomEvent("shown", { detail: path }));
  const heading = root.querySelector("h1");
  if (heading) {
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
    document.title = `${heading.textContent} · cloakgp`;
    announce(heading.textContent);
  }
  window.scrollTo(0, 0);
}

export function start() {
  window.addEventListener("hashchange", show);
  return show();
}
