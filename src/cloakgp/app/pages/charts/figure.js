// Pictures by plotly.js, which the server takes from the installed plotly package. Loaded when first needed.

import { fill, h } from "../ui.js";

let loading = null;

function plotly() {
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

function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    ink: of("ink"),
    soft: of("soft"),
    line: of("line"),
    card: of("card"),
    public: of("public"),
    private: of("private"),
    free: of("free"),
    warn: of("warn"),
  };
}

export const alpha = (hex, share) => {
  const value = Number.parseInt(hex.slice(1), 16);
  return `rgba(${value >> 16}, ${(value >> 8) & 255}, ${value & 255}, ${share})`;
};

const CONFIG = { displayModeBar: false, responsive: true, doubleClick: "reset", showTips: false };

// Names as plotly shows them: it would take <b>, &lt; and %{x} in them for markup of its own.
const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", "{": "&#123;", "}": "&#125;" };

export const plain = (name) => String(name).replace(/[&<>{}]/g, (sign) => ENTITIES[sign]);

export function layout(c, { x, y, height }) {
  const axis = (title) => ({
    title: { text: plain(title), font: { size: 13, color: c.soft }, standoff: 8 },
    gridcolor: c.line,
    zerolinecolor: c.line,
    linecolor: c.line,
    tickfont: { size: 12, color: c.soft },
    automargin: true,
    fixedrange: true,
  });
  return {
    height,
    margin: { l: 48, r: 14, t: 10, b: 44 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: {
      family: "system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif",
      color: c.ink,
      size: 13,
    },
    xaxis: axis(x),
    yaxis: axis(y),
    showlegend: false, // the key is written in HTML, where it wraps and can be read aloud
    hovermode: "x unified",
    hoverlabel: { bgcolor: c.card, bordercolor: c.line, font: { color: c.ink, size: 12 } },
    dragmode: false,
  };
}

const byRank = (one, other) => (one.legendrank ?? 0) - (other.legendrank ?? 0);

// A line of the key: a sample of the trace, and its name.
function swatch(trace) {
  const sample = h("i", { "aria-hidden": "true" });
  const isBand = trace.fill === "tonexty";
  const isLine = trace.mode?.includes("lines") && !isBand;
  const isTick = trace.marker?.symbol === "line-ns-open" || trace.marker?.size === 1;
  sample.className = isBand ? "swatch-band" : isLine ? "swatch-line" : isTick ? "swatch-tick" : "swatch-dot";
  const colour = isBand
    ? trace.fillcolor
    : isLine
      ? trace.line.color
      : (trace.error_y?.color ?? trace.marker.color);
  sample.style.color = typeof colour === "string" ? colour : "var(--public)";
  if (isLine) sample.style.borderTopStyle = { dot: "dotted", dash: "dashed" }[trace.line.dash] ?? "solid";
  return h("li", {}, sample, trace.name);
}

// A figure that redraws itself in the colours of the theme. `draw(c, width)` gives {traces, layout, words}.
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
  async function render() {
    if (!draw) return;
    try {
      const Plotly = await plotly();
      if (!plot.isConnected)
        await new Promise((resolve) => window.addEventListener("shown", resolve, { once: true }));
      if (!plot.isConnected) return; // the reader went elsewhere
      const { traces, layout: shape, words } = draw(colours(), plot.clientWidth || 700);
      plot.setAttribute("aria-label", words);
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
      await Plotly.react(plot, named, shape, CONFIG);
    } catch (error) {
      failed.textContent = error.message;
    }
  }
  window.addEventListener("theme", render);
  root.show = (next) => {
    draw = next;
    return render();
  };
  root.done = () => {
    window.removeEventListener("theme", render);
    if (window.Plotly) window.Plotly.purge(plot);
  };
  return root;
}
