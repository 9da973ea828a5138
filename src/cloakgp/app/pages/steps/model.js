// Step 3: the model, and where predictions are wanted.

import { count, typed } from "../format.js";
import {
  DESIGNS,
  FAMILIES,
  inputsOf,
  kernelOf,
  missing,
  mostInducing,
  needsInducing,
  outputOf,
  ownPoints,
  startingValues,
} from "../settings.js";
import { noisePanel } from "../preview.js";
import { draft } from "../store.js";
import { tip } from "../terms.js";
import { check, choice, field, fill, h, numberInput, textInput } from "../ui.js";

export const model = {
  id: "model",
  name: "Model",
  title: "Model and test points",
  lead: () =>
    "Say what you expect before seeing any outcome: how smooth the curve is, how far it moves, and where readers will want it.",
  check: missing.model,
  render(root) {
    draft.set(startingValues(draft.get()));
    const set = (name) => (value) => draft.set({ [name]: value });
    const kernelCard = h("section", { class: "card" });
    const whereCard = h("section", { class: "card" });

    function showKernel() {
      const d = draft.get();
      const names = inputsOf(d);
      const output = outputOf(d);
      const setScale = (place) => (value) => {
        const all = [...draft.get().lengthscales];
        all[place] = value;
        draft.set({ lengthscales: all });
      };
      const written = h("code", { class: "written" });
      const say = () => {
        written.textContent = kernelOf(draft.get()) ?? "…";
      };
      const change = (action) => (value) => {
        action(value);
        say();
      };
      const friendly = [
        h(
          "div",
          { class: "field" },
          h(
            "div",
            { class: "field-label" },
            h("label", { htmlFor: "family" }, "How smooth is the curve?"),
            tip("kernel"),
          ),
          h(
            "select",
            { id: "family", onchange: (event) => change(set("family"))(event.target.value) },
            FAMILIES.map(([value, words]) =>
              h("option", { value, selected: value === d.family }, `${words} (${value})`),
            ),
          ),
        ),
        h(
          "div",
          { class: "pair" },
          names.map((name, place) =>
            field(
              names.length === 1 ? "Lengthscale" : `Lengthscale of ${name}`,
              numberInput(d.lengthscales[place], change(setScale(place)), { id: `lengthscale-${place}` }),
              {
                tip: tip("lengthscale"),
                hint: `Over how much ${name} does it change?`,
                suffix: name,
              },
            ),
          ),
          field("Spread", numberInput(d.spread, change(set("spread")), { id: "spread" }), {
            tip: tip("spread"),
            hint: `How far does the curve move? (std)`,
            suffix: output,
          }),
        ),
        check("The level is unknown: allow for a wide constant", d.level, change(set("level"))),
        h("p", { class: "hint as-text" }, "As text: ", written),
      ];
      const expert = field(
        "Kernel",
        textInput(d.kernelText, set("kernelText"), { id: "kernel-text", class: "code" }),
        {
          tip: tip("kernel"),
          hint: "As in Python: EQ, Matern12, Matern32, Matern52, Periodic, RationalQuadratic, Linear, Polynomial, Constant, with + and *.",
        },
      );
      fill(
        kernelCard,
        h("h2", {}, "What you expect"),
        choice(
          "Kernel",
          [
            ["no", "in plain fields"],
            ["yes", "as text, for experts"],
          ],
          d.asText ? "yes" : "no",
          (value) => {
            const now = draft.get();
            draft.set({ asText: value === "yes", kernelText: now.kernelText || kernelOf(now) || "" });
            showKernel();
            kernelCard.querySelector("input:checked").focus();
          },
          { hideLegend: true },
        ),
        d.asText ? expert : friendly,
        h(
          "div",
          { class: "pair" },
          field("Scatter", numberInput(d.scatter, set("scatter"), { id: "scatter" }), {
            tip: tip("scatter"),
            hint: `How far from the curve is one ${output}? (std)`,
            suffix: output,
          }),
          field("Prior mean", numberInput(d.mean, set("mean"), { id: "mean" }), {
            tip: tip("prior mean"),
            hint: "Empty: the middle of the bounds.",
            suffix: output,
          }),
        ),
        field(
          "Inducing inputs",
          numberInput(d.inducing, set("inducing"), { id: "inducing", inputmode: "numeric" }),
          {
            tip: tip("inducing inputs"),
            hint: needsInducing(d)
              ? `At most ${mostInducing()}. ${count(d.rows)} rows are too many to do without.`
              : "Empty: every row counts by itself. For thousands of rows, 200 is quicker.",
          },
        ),
        h(
          "p",
          { class: "hint" },
          "The numbers here started from the range of the inputs and from your bounds, which are public. Change them by what you know, not by what you saw in the outcomes.",
        ),
      );
      say();
    }

    function showWhere() {
      const d = draft.get();
      const names = inputsOf(d);
      const n = names.length;
      const points = h("p", { class: "hint", "aria-live": "polite" });
      const say = () => {
        const now = draft.get();
        if (now.where === "own") {
          try {
            const rows = ownPoints(now);
            points.textContent = rows.length ? `${count(rows.length)} points understood.` : "";
          } catch (error) {
            points.textContent = error.message;
          }
        } else {
          const per = typed(now.perAxis);
          points.textContent =
            Number.isInteger(per) && per > 1
              ? `${count(per ** n)} points in all, over the range of ${names.join(" and ")}.`
              : "A whole number of at least 2.";
        }
      };
      const change = (name) => (value) => {
        draft.set({ [name]: value });
        say();
      };
      const upload = h("input", {
        type: "file",
        accept: ".csv,.txt",
        id: "points-file",
        class: "hidden-text",
        onchange: async () => {
          if (!upload.files[0]) return;
          const text = await upload.files[0].text();
          upload.value = ""; // so that the same file can be taken again
          area.value = text;
          change("ownPoints")(text);
        },
      });
      const area = h("textarea", {
        rows: "5",
        class: "code",
        spellcheck: "false",
        oninput: (event) => change("ownPoints")(event.target.value),
      });
      area.value = d.ownPoints;
      fill(
        whereCard,
        h("h2", {}, "Where readers want predictions", tip("test points")),
        choice(
          "Test points",
          [
            ["grid", n === 1 ? "along a line" : n === 2 ? "on a map" : "on a grid"],
            ["own", "my own points"],
          ],
          d.where,
          (value) => {
            draft.set({ where: value });
            showWhere();
            whereCard.querySelector("input:checked").focus();
          },
          { hideLegend: true },
        ),
        d.where === "grid"
          ? field(
              n === 1 ? "Number of points" : "Points along each input",
              numberInput(d.perAxis, change("perAxis"), { id: "per-axis", inputmode: "numeric" }),
              { tip: tip("grid") },
            )
          : [
              field(`Points: ${names.join(", ")} on each line`, area, {
                hint: "Separated by commas or blanks.",
              }),
              h(
                "p",
                { class: "file-line" },
                upload,
                h("label", { htmlFor: "points-file", class: "button small" }, "From a CSV file"),
              ),
            ],
        points,
        h(
          "details",
          { class: "more", open: d.design !== "mse" || d.kind !== "predictions" },
          h("summary", {}, "How the noise is shaped"),
          h(
            "div",
            { class: "field" },
            h("div", { class: "field-label" }, h("label", { htmlFor: "design" }, "Design"), tip("design")),
            h(
              "select",
              {
                id: "design",
                disabled: d.kind === "function",
                onchange: (event) => draft.set({ design: event.target.value }),
              },
              DESIGNS.map(([value, words]) =>
                h("option", { value, selected: value === d.design }, `${value}: ${words}`),
              ),
            ),
          ),
          choice(
            "Kind of release",
            [
              ["predictions", "predictions at these points"],
              ["function", "the whole function"],
            ],
            d.kind,
            (value) => {
              draft.set({ kind: value });
              showWhere();
              whereCard.querySelector("details").open = true;
              whereCard.querySelector("details input:checked").focus();
            },
            { tip: tip("whole function") },
          ),
        ),
      );
      say();
    }

    showKernel();
    showWhere();
    const panel = noisePanel({ height: 330 });
    root.append(
      h(
        "div",
        { class: "columns sided" },
        h("div", {}, kernelCard, whereCard),
        h("div", { class: "sticky" }, panel),
      ),
    );
    return () => panel.done();
  },
};
