// Building blocks. Text reaches the page as text nodes only: nothing here reads markup, so no name or sentence
// from a file or from the server can become an element.

const SVG = "http://www.w3.org/2000/svg";

export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) set(element, name, value);
  append(element, children);
  return element;
}

function set(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name === "class") element.className = value;
  else if (["value", "checked", "disabled", "selected", "htmlFor", "hidden", "open"].includes(name))
    element[name] = value;
  else element.setAttribute(name, value === true ? "" : String(value));
}

export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

export function clear(element) {
  element.replaceChildren();
  return element;
}

export function fill(element, ...children) {
  return append(clear(element), children);
}

export function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

let serial = 0;
export const newId = (word = "id") => `${word}-${++serial}`;

export function announce(text) {
  const live = document.getElementById("live");
  if (live) live.textContent = text;
}

export function debounce(action, milliseconds) {
  let timer = null;
  const later = (...given) => {
    window.clearTimeout(timer);
    timer = window.setTimeout(() => action(...given), milliseconds);
  };
  later.cancel = () => window.clearTimeout(timer);
  return later;
}

// ---- small pieces

export function chip(kind, text) {
  return h("span", { class: `chip ${kind}` }, text);
}

export function note(kind, ...children) {
  return h("div", { class: `note ${kind}`, role: kind === "bad" ? "alert" : null }, ...children);
}

// The server's sentences may begin in small letters. Names are left as they are.
export function sentence(text) {
  return String(text ?? "").replace(
    /^(the|this|that|these|there|a|an|one|only|no|nobody|too|data|bounds|epsilon|delta|kernel|noise)\b/,
    (word) => word[0].toUpperCase() + word.slice(1),
  );
}

// An error, in the server's own sentence.
export function problem(error, ...more) {
  const [first, ...rest] = String(error?.message ?? error).split("\n"); // what follows points at a place in a text
  return note(
    "bad",
    h("p", {}, sentence(first)),
    rest.length ? h("pre", {}, rest.join("\n")) : null,
    ...more,
  );
}

// Why nothing can be spent now, and what to do.
export function readOnly(ledger) {
  return note(
    "bad",
    h("h2", {}, "Read-only: nothing can be spent"),
    h("p", {}, sentence(ledger.problem)),
    h("p", {}, sentence(ledger.remedy)),
    h("p", {}, "Releases, downloads and predictions work as before."),
  );
}

export function empty(title, text, ...actions) {
  return h(
    "div",
    { class: "empty" },
    mark(),
    h("h2", {}, title),
    h("p", {}, text),
    actions.length ? h("p", { class: "actions" }, ...actions) : null,
  );
}

export function mark() {
  const path = "M6 42 C18 8, 30 12, 40 30 S58 46, 74 14";
  return svg(
    "svg",
    { viewBox: "0 0 80 52", class: "mark", "aria-hidden": "true" },
    svg("path", { d: path, class: "mark-band" }),
    svg("path", { d: path, class: "mark-line" }),
  );
}

export function button(text, action, props = {}) {
  return h("button", { type: "button", class: "button", onclick: action, ...props }, text);
}

// A button that asks once more before it acts.
export function sureButton(text, question, action, props = {}) {
  let sure = false;
  const root = button(
    text,
    () => {
      if (sure) {
        action();
        return;
      }
      sure = true;
      root.textContent = question;
      root.removeAttribute("aria-label");
      root.classList.add("spend");
    },
    { class: "button small", ...props },
  );
  root.addEventListener("blur", () => {
    sure = false;
    root.textContent = text;
    root.classList.remove("spend");
    if (props["aria-label"]) root.setAttribute("aria-label", props["aria-label"]);
  });
  return root;
}

export function link(text, href, props = {}) {
  return h("a", { href, ...props }, text);
}

// A label, its "?" and a control, with the hint and the error tied to the control.
export function field(label, control, { hint, tip, suffix } = {}) {
  const id = control.id || newId("field");
  control.id = id;
  const hintId = `${id}-hint`;
  const errorId = `${id}-error`;
  control.setAttribute("aria-describedby", `${hint ? `${hintId} ` : ""}${errorId}`);
  const error = h("p", { class: "field-error", id: errorId, "aria-live": "polite" });
  const root = h(
    "div",
    { class: "field" },
    h("div", { class: "field-label" }, h("label", { htmlFor: id }, label), tip),
    hint ? h("p", { class: "hint", id: hintId }, hint) : null,
    suffix ? h("div", { class: "with-suffix" }, control, h("span", { class: "suffix" }, suffix)) : control,
    error,
  );
  root.fail = (text) => {
    error.textContent = text ?? "";
    control.toggleAttribute("aria-invalid", Boolean(text));
    if (text) control.setAttribute("aria-invalid", "true");
  };
  return root;
}

export function textInput(value, action, props = {}) {
  return h("input", {
    type: "text",
    value: value ?? "",
    autocomplete: "off",
    spellcheck: "false",
    oninput: (event) => action(event.target.value),
    ...props,
  });
}

export function numberInput(value, action, props = {}) {
  return textInput(value, action, { inputmode: "decimal", class: "number", ...props });
}

// One choice of a few, as radio buttons that look like a row of buttons.
export function choice(legend, options, chosen, action, { tip, hideLegend } = {}) {
  const name = newId("choice");
  return h(
    "fieldset",
    { class: "choice" },
    h("legend", { class: hideLegend ? "hidden-text" : null }, legend, tip),
    h(
      "div",
      { class: "choice-row" },
      options.map(([value, text, disabled]) => {
        const id = newId("option");
        return h(
          "span",
          { class: "option" },
          h("input", {
            type: "radio",
            name,
            id,
            value,
            checked: value === chosen,
            disabled: Boolean(disabled),
            onchange: () => action(value),
          }),
          h("label", { htmlFor: id }, text),
        );
      }),
    ),
  );
}

export function check(text, chosen, action, { tip } = {}) {
  const id = newId("check");
  return h(
    "div",
    { class: "check" },
    h("input", { type: "checkbox", id, checked: chosen, onchange: (event) => action(event.target.checked) }),
    h("label", { htmlFor: id }, text),
    tip,
  );
}

export function table(headings, rows, { caption, numeric = [], stacked = false } = {}) {
  const isNumber = (place) => (numeric.includes(place) ? "num" : null);
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "group", "aria-label": caption },
    h(
      "table",
      { class: stacked ? "stacked" : null },
      caption ? h("caption", { class: "hidden-text" }, caption) : null,
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          headings.map((text, place) => h("th", { scope: "col", class: isNumber(place) }, text)),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map((row) =>
          h(
            "tr",
            {},
            row.map((cell, place) =>
              h("td", { class: isNumber(place), "data-label": headings[place] }, cell),
            ),
          ),
        ),
      ),
    ),
  );
}

export function facts(pairs) {
  return h(
    "dl",
    { class: "facts" },
    pairs.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
}

export function tile(value, label, sub, kind) {
  return h(
    "li",
    { class: kind ?? null },
    h("b", {}, value),
    h("span", {}, label),
    sub ? h("small", {}, sub) : null,
  );
}

export const tiles = (...entries) => h("ul", { class: "tiles" }, ...entries);

// A bar of what is left. `after` draws what would be left then.
export function bar(left, whole, after) {
  const share = (value) => `${Math.max(0, Math.min(100, (100 * value) / whole))}%`;
  const root = h("div", { class: "bar", "aria-hidden": "true" }, h("i", { class: "left" }));
  root.firstChild.style.width = share(left);
  if (after !== undefined && after !== null) {
    const rest = h("i", { class: "after" });
    rest.style.width = share(after);
    root.append(rest);
  }
  return root;
}
