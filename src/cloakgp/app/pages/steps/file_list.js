// The files on this server, of which one is chosen.

import { bytes, count } from "../core/format.js";
import { sureButton } from "../ui/buttons.js";
import { h } from "../ui/dom.js";

export function fileList(files, chosen, { choose, remove }) {
  return h(
    "fieldset",
    { class: "files" },
    h("legend", {}, "Files on this server"),
    files.map((file, place) =>
      h(
        "div",
        { class: "file" },
        h("input", {
          type: "radio",
          name: "file",
          id: `file-${place}`,
          value: file.name,
          checked: file.name === chosen,
          onchange: () => choose(file),
        }),
        h(
          "label",
          { htmlFor: `file-${place}` },
          h("b", {}, file.shown),
          h(
            "span",
            { class: "hint" },
            `${file.rows === null ? "" : `${count(file.rows)} rows, `}${file.columns.length} columns, ${bytes(file.bytes)}`,
          ),
        ),
        sureButton("Remove", `Really remove ${file.shown}?`, () => remove(file.name), {
          "aria-label": `Remove ${file.shown}`,
        }),
      ),
    ),
  );
}
