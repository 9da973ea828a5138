// Test points of one's own, typed or from a file.

import { h } from "../ui/dom.js";
import { field } from "../ui/forms.js";

export function ownPoints(names, text, change, levels = "") {
  const upload = h("input", {
    type: "file",
    accept: ".csv,.txt",
    id: "points-file",
    class: "hidden-text",
    onchange: async () => {
      if (!upload.files[0]) return;
      const contents = await upload.files[0].text();
      upload.value = ""; // so that the same file can be taken again
      area.value = contents;
      change(contents);
    },
  });
  const area = h("textarea", {
    rows: "5",
    class: "code",
    spellcheck: "false",
    oninput: (event) => change(event.target.value),
  });
  area.value = text;
  return [
    field(`Points: ${names.join(", ")} on each line`, area, {
      hint: `Separated by commas${levels ? "" : " or blanks"}.${levels}`,
    }),
    h(
      "p",
      { class: "file-line" },
      upload,
      h("label", { htmlFor: "points-file", class: "button small" }, "From a CSV file"),
    ),
  ];
}
