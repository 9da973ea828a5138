// A figure that redraws itself in the colours of the theme. `draw(c, width)` gives {traces, layout, words}.

import { fill, h } from "../ui/dom.js";
import { colours } from "./colours.js";
import { plain } from "./plain.js";
import { plotly } from "./plotly.js";
import { swatch } from "./swatch.js";

const CONFIG = { displayModeBar: false, doubleClick: "reset", showTips: false };

const byRank = (one, other) => (one.legendrank ?? 0) - (other.legendrank ?? 0);

export function figure(caption) {
  const plot = h("div", { class: "plot", role: "img" });
  const key = h("ul", { class: "key" });
  const failed = h("p", { class: "hint" });
  const root = h(
    "figure",
    { class: "figure" },
    key,
    plot,
    failed,
    caption ? h("figcaption", {}, caption) : null,
  );
  let draw = null;
  let drawnWidth = 0;
  async function render() {
    if (!draw) return;
    try {
      const Plotly = await plotly();
      if (!plot.isConnected)
        await new Promise((resolve) => window.addEventListener("shown", resolve, { once: true }));
      if (!plot.isConnected) return; // the reader went elsewhere
      const width = plot.clientWidth || 700;
      drawnWidth = width;
      const { traces, layout: shape, words } = draw(colours(), width);
      plot.setAttribute("aria-label", words);
      plot.style.height = `${shape.height}px`; // its own, whatever the window does
      fill(
        key,
        traces.length > 1
          ? traces
              .filter((trace) => trace.name && trace.showlegend !== false)
              .sort(byRank)
              .map(swatch)
          : null,
      );
      const named = traces.map((trace) => ({ ...trace, name: plain(trace.name ?? "") }));
      await Plotly.react(plot, named, { width, ...shape }, CONFIG);
    } catch (error) {
      failed.textContent = error.message;
    }
  }
  window.addEventListener("theme", render);
  // Drawn anew, and not stretched: what is beside a map in a wide window is under it in a narrow one.
  const watch = new ResizeObserver(() => {
    if (drawnWidth && plot.clientWidth && plot.clientWidth !== drawnWidth) window.requestAnimationFrame(render);
  });
  watch.observe(plot);
  root.show = (next) => {
    draw = next;
    return render();
  };
  root.done = () => {
    window.removeEventListener("theme", render);
    watch.disconnect();
    if (window.Plotly) window.Plotly.purge(plot);
  };
  return root;
}
