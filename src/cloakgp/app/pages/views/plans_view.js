// All plans.

import { api } from "../core/api.js";
import { isCustodian } from "../core/session.js";
import { empty } from "../ui/notes.js";
import { pageHead } from "../ui/page_head.js";
import { entryList } from "./entry_list.js";

function nothing() {
  return empty(
    "No plans yet",
    isCustodian()
      ? "A plan is kept at the end of the noise preview."
      : "As soon as a custodian keeps a plan, it is here.",
  );
}

export async function plansView(root) {
  root.append(
    pageHead(
      "Plans",
      "What is or was meant to be released: model, test points, promise and noise. Plans hold nothing of the outcomes.",
    ),
  );
  const all = await api.plans();
  root.append(all.length ? entryList(all, "plans", "public") : nothing());
}
