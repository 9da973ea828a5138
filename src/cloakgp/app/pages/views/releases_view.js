// All releases.

import { api } from "../core/api.js";
import { isCustodian } from "../core/session.js";
import { link } from "../ui/buttons.js";
import { empty } from "../ui/notes.js";
import { pageHead } from "../ui/page_head.js";
import { entryList } from "./entry_list.js";

function nothing() {
  const custodian = isCustodian();
  return empty(
    "Nothing released yet",
    custodian
      ? "Walk from a file to a release; nothing is spent before its last step."
      : "As soon as a custodian releases something, it is here.",
    custodian ? link("Start a release", "#/new/data", { class: "button primary" }) : null,
  );
}

export async function releasesView(root) {
  root.append(
    pageHead(
      "Releases",
      "What may be seen by everybody who is signed in. Asking a release costs nothing, however often.",
    ),
  );
  const all = await api.releases();
  root.append(all.length ? entryList(all, "releases", "private") : nothing());
}
