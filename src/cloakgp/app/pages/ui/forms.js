// What people fill in: fields, choices and boxes to tick.

import { h, newId } from "./dom.js";

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

// The browser's own way to enter a day; its value is as 2024-05-31, or empty.
export function dateInput(value, action, props = {}) {
  return textInput(value, action, { type: "date", min: "1000-01-01", max: "9999-12-31", ...props });
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

export function checkbox(text, chosen, action, { tip } = {}) {
  const id = newId("check");
  return h(
    "div",
    { class: "check" },
    h("input", { type: "checkbox", id, checked: chosen, onchange: (event) => action(event.target.checked) }),
    h("label", { htmlFor: id }, text),
    tip,
  );
}
