// Plain words for every term, from the server.

import { session } from "./session.js";

export const explain = (term) => session.get().terms[term] ?? "";

export function allTerms() {
  return Object.entries(session.get().terms).sort(([one], [other]) => one.localeCompare(other));
}
