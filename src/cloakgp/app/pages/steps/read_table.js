// Reads what is public of the table, once it is known to be: the inputs, and who has which rows. `fail(error)` hears
// if it cannot be read, and of null once it is.

import { api } from "../core/api.js";
import { draft } from "../core/draft.js";
import { inputsOf, writtenOf } from "../core/draft_parts.js";

export function readTable(fail) {
  let asking = null;
  let last = null; // what was read last, or is being read
  let reading = null;

  async function read(d, mine) {
    try {
      const asked = { inputs: inputsOf(d), ...writtenOf(d) };
      const facts = d.facts ?? (await api.inputs(d.data, asked, mine.signal));
      const who = { people: d.who, ...(d.encoding ? { encoding: d.encoding } : {}) };
      const people = d.protect === "people" && d.who ? await api.peopleIn(d.data, who, mine.signal) : null;
      if (mine !== asking) return;
      fail(null);
      draft.set({ facts, people });
    } catch (error) {
      if (error.name !== "AbortError" && mine === asking) fail(error);
    }
  }

  return {
    // What is to be waited for, if anything is.
    follow() {
      const d = draft.get();
      const wanted = !d.protect || d.protect === "rows" ? null : JSON.stringify([d.data, inputsOf(d), d.protect, d.who, writtenOf(d)]);
      if (wanted === last) return reading;
      last = wanted;
      asking?.abort();
      asking = wanted ? new AbortController() : null;
      const isRead = d.facts && (d.protect !== "people" || d.people);
      reading = wanted && !isRead ? read(d, asking) : null;
      return reading;
    },
    done: () => asking?.abort(),
  };
}
