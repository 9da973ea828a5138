// Step 1: which file, and what each of its columns is.

import { api } from "../core/api.js";
import { draft, startAgain } from "../core/draft.js";
import { EXAMPLE_NAME, exampleFile } from "../core/example_file.js";
import { missing } from "../core/missing.js";
import { session } from "../core/session.js";
import { announce } from "../ui/announce.js";
import { button, link } from "../ui/buttons.js";
import { append, clear, fill, h } from "../ui/dom.js";
import { empty, note, problem } from "../ui/notes.js";
import { fileList } from "./file_list.js";
import { rolesCard } from "./roles_card.js";
import { uploadBox } from "./upload_box.js";

// Generated heights are there already: from this page, or from the start of a demo.
const isThere = (known) => session.get().me?.demo || known.some((file) => file.name === EXAMPLE_NAME);

export const dataStep = {
  id: "data",
  name: "Data",
  title: "Data and roles",
  lead: () =>
    "Choose a table, and say what is predicted from what. Nothing but the names of its columns is looked at here.",
  check: missing.data,
  render(root) {
    const files = h("div", {});
    const trouble = h("div", {});
    const fail = (error) => fill(trouble, error ? problem(error) : null);
    const card = rolesCard();
    const box = uploadBox(store, fail);

    async function store(name, contents) {
      clear(trouble);
      box.setAttribute("aria-busy", "true");
      try {
        take(await api.upload(name, contents));
        announce(`${name} was uploaded.`);
        await list();
        card.show(); // last: the list above it pushes it down, and a click would miss
      } catch (error) {
        fail(error);
      }
      box.removeAttribute("aria-busy");
    }

    async function useExample(known) {
      const there = known.find((file) => file.name === EXAMPLE_NAME);
      if (there) choose(there);
      else await store(EXAMPLE_NAME, exampleFile());
    }

    function take(file) {
      if (draft.get().data === file.name) return;
      startAgain();
      draft.set({ data: file.name, shown: file.shown, columns: file.columns, rows: file.rows, whoNames: file.who });
    }

    function choose(file) {
      take(file);
      card.show();
    }

    async function remove(name) {
      try {
        await api.removeData(name);
        if (draft.get().data === name) startAgain();
        announce(`${name} was removed from this server.`);
        clear(trouble);
      } catch (error) {
        fail(error);
      }
      await list();
      card.show();
    }

    async function list() {
      let known = [];
      try {
        known = await api.data();
      } catch (error) {
        fill(files, problem(error));
        return;
      }
      const example = button("Try it with generated heights", () => useExample(known).then(list));
      if (known.length)
        fill(
          files,
          fileList(known, draft.get().data, { choose, remove }),
          isThere(known) ? null : h("p", { class: "or-example" }, example),
        );
      else
        fill(
          files,
          empty(
            "No data yet",
            "Upload a table, or try the whole walk with generated heights that are nobody's.",
            example,
          ),
        );
    }

    function another() {
      startAgain();
      over.remove();
      list();
      card.show();
    }

    const over = draft.get().release
      ? note(
          "good",
          h(
            "p",
            {},
            "The draft that is open here was released. ",
            link("See its results", "#/new/results"),
            ", or ",
            button("start another one", another, { class: "button small" }),
          ),
        )
      : null;
    append(root, [over, h("section", { class: "card" }, files, box), trouble, card]);
    list();
    card.show();
    return null;
  },
};
