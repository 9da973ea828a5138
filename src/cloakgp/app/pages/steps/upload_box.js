// Where a file is chosen or dropped. `store(name, contents)` takes it, `fail(error)` hears why it cannot be.

import { bytes } from "../core/format.js";
import { session } from "../core/session.js";
import { h } from "../ui/dom.js";

// The server would refuse it, too, but here it is said before the file is read and sent.
function checkSize(file) {
  const most = session.get().me?.upload_bytes ?? Infinity;
  if (file.size > most)
    throw new Error(`${file.name} has ${bytes(file.size)}; this server takes at most ${bytes(most)}.`);
}

const readWhole = (file) =>
  file.arrayBuffer().catch(() => {
    throw new Error(`${file.name} cannot be read. Is it a folder, or was it changed just now?`);
  });

export function uploadBox(store, fail) {
  const picker = h("input", {
    type: "file",
    id: "upload",
    class: "hidden-text",
    onchange: () => take(picker.files[0]),
  });
  const drop = h(
    "div",
    {
      class: "drop",
      ondragover: (event) => {
        event.preventDefault();
        drop.classList.add("over");
      },
      ondragleave: () => drop.classList.remove("over"),
      ondrop: (event) => {
        event.preventDefault();
        drop.classList.remove("over");
        take(event.dataTransfer.files[0]);
      },
    },
    picker,
    h("label", { htmlFor: "upload", class: "button" }, "Upload a file"),
    h(
      "span",
      { class: "hint" },
      "CSV or Parquet, or drop it here. It stays on this server and is never shown. From Excel: File, Save As, CSV UTF-8.",
    ),
  );

  async function take(file) {
    if (!file) return;
    try {
      checkSize(file);
      await store(file.name, await readWhole(file));
    } catch (error) {
      fail(error);
    }
    picker.value = "";
  }

  return drop;
}
