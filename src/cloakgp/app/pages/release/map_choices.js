// Which inputs are the axes of a map, and where the others are held. `changed(asked)` hears of each choice.

import { shownCell } from "../core/columns.js";
import { typed } from "../core/typed.js";
import { debounce } from "../ui/debounce.js";
import { fill, h } from "../ui/dom.js";
import { checkbox, field, numberInput, textInput } from "../ui/forms.js";

const select = (names, chosen, action) =>
  h(
    "select",
    { onchange: (event) => action(event.target.value) },
    names.map((name) => h("option", { value: name, selected: name === chosen }, name)),
  );

// As the server wants it: levels and dates as texts. Null while it cannot be one.
const cellOf = (input, text) => (input.kind === "number" ? typed(text) : text.trim() || null);

export function mapChoices(inputs, changed) {
  const inner = h("div", { class: "map-choices" });
  const root = h("details", { class: "more", hidden: true }, h("summary", {}, inputs.length > 2 ? "Axes, and where the others are held" : "Axes"), inner);
  const numeric = inputs.filter(({ kind }) => kind !== "level").map(({ name }) => name);
  const asked = { coordinates: null, geographic: null, held: {} };
  let shown = null; // the pair whose fields are there
  const later = debounce(() => changed({ ...asked }), 600);

  function axis(map, which, name) {
    const pair = map.places.map((place) => inputs[place].name);
    const other = pair[1 - which];
    // Who takes the other axis' input wants them swapped.
    const next = name === other ? [pair[1], pair[0]] : which === 0 ? [name, other] : [other, name];
    const held = Object.entries(asked.held).filter(([key]) => !next.includes(key));
    // Their names say whether they are longitude and latitude: swapped, they are not.
    Object.assign(asked, { coordinates: next, geographic: null, held: Object.fromEntries(held) });
    changed({ ...asked });
  }

  function hold(input, text) {
    const cell = cellOf(input, text);
    if (cell === null) return;
    asked.held = { ...asked.held, [input.name]: cell };
    later();
  }

  function heldField(input, value) {
    const now = shownCell(input, value);
    const take = (text) => hold(input, text);
    if (input.kind === "level") return field(input.name, select(input.levels.map(String), String(value), take));
    return field(input.name, (input.kind === "date" ? textInput : numberInput)(now, take));
  }

  // After each answer: fields are made anew only where other inputs are the axes, so that nothing typed is lost.
  root.follow = (map) => {
    const pair = map.places.map((place) => inputs[place].name);
    const key = JSON.stringify([pair, map.geographic]);
    root.hidden = false;
    if (key === shown) return;
    shown = key;
    const others = inputs.filter(({ name }) => !pair.includes(name));
    const mark = (value) => {
      Object.assign(asked, { coordinates: pair, geographic: value });
      changed({ ...asked });
    };
    fill(
      inner,
      h(
        "div",
        { class: "pair" },
        field("Across", select(numeric, pair[0], (name) => axis(map, 0, name))),
        field("Up", select(numeric, pair[1], (name) => axis(map, 1, name))),
      ),
      checkbox("The first is longitude, the second latitude", map.geographic, mark),
      others.length ? h("p", { class: "hint" }, "The map is a cut through the other inputs. Held at:") : null,
      h(
        "div",
        { class: "held" },
        others.map((input) => heldField(input, map.held[input.name])),
      ),
    );
  };
  root.done = later.cancel;
  return root;
}
