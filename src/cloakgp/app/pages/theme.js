// Light or dark, before anything is drawn. Not a module, so that it runs first: no flash of the other one.
(function () {
  const KEY = "cloakgp-theme";
  const root = document.documentElement;
  const prefers = window.matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try {
    chosen = window.localStorage.getItem(KEY);
  } catch {
    chosen = null; // storage may be switched off; the system's preference remains
  }

  function current() {
    return chosen === "light" || chosen === "dark" ? chosen : prefers.matches ? "dark" : "light";
  }

  function apply() {
    root.dataset.theme = current();
    window.dispatchEvent(new CustomEvent("theme", { detail: current() }));
  }

  window.cloakTheme = {
    current,
    toggle() {
      chosen = current() === "dark" ? "light" : "dark";
      try {
        window.localStorage.setItem(KEY, chosen);
      } catch {
        // it then lasts until the page is closed
      }
      apply();
      return chosen;
    },
  };
  prefers.addEventListener("change", apply);
  apply();
})();
