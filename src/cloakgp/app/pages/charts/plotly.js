// plotly.js, which the server takes from the installed package. Loaded when first needed.

import { h } from "../ui/dom.js";

let loading = null;

export function plotly() {
  if (window.Plotly) return Promise.resolve(window.Plotly);
  loading ??= new Promise((resolve, reject) => {
    const script = h("script", { src: "/static/plotly.min.js" });
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => {
      loading = null;
      reject(new Error("The chart library could not be loaded. The numbers are in the table below."));
    };
    document.head.append(script);
  });
  return loading;
}
