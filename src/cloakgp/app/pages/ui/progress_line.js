// What is being done and how far, with a way to stop it. Hidden while there is nothing to tell.

import { fill, h } from "./dom.js";

const WORDS = {
  "": "Working",
  waiting: "Waiting for other work to end",
  forecast: "Forecasting the error",
  stages: "Measuring, stage by stage",
  map: "Working out the map",
  models: "Asking each of the models that were learned",
  "reading X": "Reading the inputs",
};

// `stop()` is called once, if somebody wants it; `word` is on the button.
export function progressLine(stop, word = "Cancel") {
  const said = h("span", {});
  const bar = h("progress", { max: "1", "aria-label": "How far it is" });
  const button = h("button", { type: "button", class: "button small" }, word);
  const root = h("div", { class: "progress-line", hidden: true, role: "status" }, bar, said, button);
  button.addEventListener("click", () => {
    button.disabled = true;
    fill(said, "Stopping…");
    stop();
  });

  // `work` is {doing, done, total}, or null when it is over.
  root.show = (work) => {
    root.hidden = !work;
    if (!work || button.disabled) {
      if (!work) button.disabled = false;
      return;
    }
    const words = WORDS[work.doing] ?? `Working: ${work.doing}`;
    if (work.total) {
      bar.value = work.done / work.total;
      fill(said, `${words}: ${work.done} of ${work.total}`);
    } else {
      bar.removeAttribute("value");
      fill(said, `${words}…`);
    }
  };
  return root;
}
