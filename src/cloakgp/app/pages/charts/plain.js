// Names as plotly shows them: it would take <b>, &lt; and %{x} in them for markup of its own.

const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", "{": "&#123;", "}": "&#125;" };

export const plain = (name) => String(name).replace(/[&<>{}]/g, (sign) => ENTITIES[sign]);
