// Make a kept plan, or that of a release, the draft. `given` are releases that the new plan takes into account.

import { api } from "./api.js";
import { draft, startAgain } from "./draft.js";
import { draftOfPlan } from "./draft_of_plan.js";

export async function takeUp(plan, given = plan.settings.given ?? null) {
  const { data, inputs, protect, people } = plan.settings;
  const file = (await api.data()).find((one) => one.name === data);
  if (!file) throw new Error(`The file ${data} is no longer on this server.`);
  const { decimal, encoding, categories, missing_inputs } = plan.settings;
  const said = { inputs, decimal, encoding, categories, missing_inputs }; // what was not said is not sent
  const facts = protect === "rows" ? null : await api.inputs(file.name, said);
  const shared = protect === "people" ? await api.peopleIn(file.name, { people, encoding }) : null;
  startAgain();
  draft.set({ ...draftOfPlan(plan, file, facts, shared), given });
}
