// Step 1: which file, and what each of its columns is.

import { api } from "../api.js";
import { EXAMPLE_NAME, exampleFile } from "../example.js";
import { bytes, count, number } from "../format.js";
import { inputsOf, missing, outputOf } from "../settings.js";
import { draft, session, startAgain } from "../store.js";
import { tip } from "../terms.js";
import {
  announce,
  append,
  button,
  chip,
  choice,
  clear,
  empty,
  fill,
  h,
  link,
  note,
  problem,
  sureButton,
} from "../ui.js";

let reading = null; // the input columns, while they are being read

const ROLES = [
  ["input", "public input"],
  ["output", "private outcome"],
  ["", "not used"],
];

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

// Generated heights are there already: from this page, or from the start of a demo.
const isThere = (known) => session.get().me?.demo || known.some((file) => file.name === EXAMPLE_NAME);

export const data = {
  id: "data",
  name: "Data",
  title: "Data and roles",
  lead: () =>
    "Choose a table with one row per person. Then say which columns are public, and which one is to be protected.",
  check: missing.data,
  ready: () => reading,
  render(root) {
    const files = h("div", {});
    const roles = h("section", { class: "card", hidden: true });
    const trouble = h("div", {});
    let asking = null;

    const picker = h("input", {
      type: "file",
      accept: ".csv,.parquet",
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
        "CSV or Parquet, or drop it here. It stays on this server and is never shown.",
      ),
    );

    async function take(file) {
      if (!file) return;
      try {
        checkSize(file);
        await store(file.name, await readWhole(file));
      } catch (error) {
        fill(trouble, problem(error));
      }
      picker.value = "";
    }

    async function store(name, contents) {
      clear(trouble);
      drop.setAttribute("aria-busy", "true");
      try {
        choose(await api.upload(name, contents));
        announce(`${name} was uploaded.`);
        await list();
      } catch (error) {
        fill(trouble, problem(error));
      }
      drop.removeAttribute("aria-busy");
    }

    async function useExample(known) {
      const there = known.find((file) => file.name === EXAMPLE_NAME);
      if (there) choose(there);
      else await store(EXAMPLE_NAME, exampleFile());
    }

    function choose(file) {
      if (draft.get().data !== file.name) {
        startAgain();
        draft.set({ data: file.name, columns: file.columns, rows: file.rows });
      }
      showRoles();
    }

    async function remove(name) {
      try {
        await api.removeData(name);
        if (draft.get().data === name) startAgain();
        announce(`${name} was removed from this server.`);
        clear(trouble);
      } catch (error) {
        fill(trouble, problem(error));
      }
      await list();
      showRoles();
    }

    async function list() {
      let known = [];
      try {
        known = await api.data();
      } catch (error) {
        fill(files, problem(error));
        return;
      }
      const chosen = draft.get().data;
      const example = button("Try it with generated heights", () => useExample(known).then(list));
      if (!known.length) {
        fill(
          files,
          empty(
            "No data yet",
            "Upload a table, or try the whole walk with generated heights that are nobody's.",
            example,
          ),
        );
        return;
      }
      fill(
        files,
        h(
          "fieldset",
          { class: "files" },
          h("legend", {}, "Files on this server"),
          known.map((file, place) =>
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
                h("b", {}, file.name),
                h(
                  "span",
                  { class: "hint" },
                  `${count(file.rows)} rows, ${file.columns.length} columns, ${bytes(file.bytes)}`,
                ),
              ),
              sureButton("Remove", `Really remove ${file.name}?`, () => remove(file.name), {
                "aria-label": `Remove ${file.name}`,
              }),
            ),
          ),
        ),
        isThere(known) ? null : h("p", { class: "or-example" }, example),
      );
    }

    function setRole(column, role) {
      const all = { ...draft.get().roles };
      if (role === "output") {
        for (const name of Object.keys(all)) if (all[name] === "output") delete all[name];
      }
      if (role) all[column] = role;
      else delete all[column];
      const before = inputsOf(draft.get()).join("\n");
      draft.set({ roles: all, plan: null, release: null, planName: "" });
      if (inputsOf(draft.get()).join("\n") !== before) {
        draft.set({
          facts: null,
          lengthscales: [],
          perAxis: "",
          kernelText: "",
          asText: false,
          ownPoints: "",
        });
        reading = readInputs();
      }
      showRoles(column);
    }

    async function readInputs() {
      const d = draft.get();
      const names = inputsOf(d);
      asking?.abort();
      if (!names.length) return;
      asking = new AbortController();
      const mine = asking;
      try {
        const facts = await api.inputs(d.data, names, mine.signal);
        if (mine !== asking) return;
        clear(trouble);
        draft.set({ facts });
        showConsequences();
      } catch (error) {
        if (error.name !== "AbortError" && mine === asking) fill(trouble, problem(error));
      }
    }

    const consequences = h("div", { class: "consequences" });

    function showConsequences() {
      const d = draft.get();
      const inputs = inputsOf(d);
      const output = outputOf(d);
      const range = (name) =>
        d.facts?.ranges?.[name]
          ? ` (${number(d.facts.ranges[name][0])} to ${number(d.facts.ranges[name][1])})`
          : "";
      fill(
        consequences,
        inputs.length
          ? note(
              "public",
              h(
                "p",
                {},
                chip("public", "public"),
                " ",
                h("b", {}, inputs.map((name) => name + range(name)).join(", ")),
                " will be in the release file exactly as they are, row by row. Use only what anybody may know.",
              ),
            )
          : null,
        output
          ? note(
              "private",
              h(
                "p",
                {},
                chip("private", "private"),
                " ",
                h("b", {}, output),
                " is protected. It is read once, at the release, and only noisy numbers leave. Until then nothing here looks at it.",
              ),
            )
          : null,
        inputs.length && output
          ? h(
              "p",
              { class: "hint" },
              "Protected is the outcome of one row",
              tip("one row"),
              ". If a person owns several rows, that person is protected less.",
            )
          : null,
      );
    }

    function showRoles(focusOn) {
      const d = draft.get();
      roles.hidden = !d.data;
      if (!d.data) return;
      fill(
        roles,
        h("h2", {}, `What is what in ${d.data}?`),
        h(
          "p",
          { class: "hint" },
          "Public inputs",
          tip("public input"),
          " are what one predicts from. The private outcome",
          tip("private outcome"),
          " is what is predicted.",
        ),
        h(
          "div",
          { class: "roles" },
          d.columns.map((column) =>
            h(
              "div",
              { class: `role ${d.roles[column] ?? ""}` },
              h("span", { class: "role-name", "aria-hidden": "true" }, column),
              choice(`Role of ${column}`, ROLES, d.roles[column] ?? "", (role) => setRole(column, role), {
                hideLegend: true,
              }),
            ),
          ),
        ),
        consequences,
      );
      showConsequences();
      if (focusOn) {
        const place = d.columns.indexOf(focusOn);
        roles.querySelectorAll(".role")[place]?.querySelector("input:checked")?.focus();
      }
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
            button(
              "start another one",
              () => {
                startAgain();
                over.remove();
                list();
                showRoles();
              },
              { class: "button small" },
            ),
          ),
        )
      : null;
    append(root, [over, h("section", { class: "card" }, files, drop), trouble, roles]);
    list();
    showRoles();
    if (draft.get().data && !draft.get().facts) reading = readInputs();
    return () => asking?.abort();
  },
};
