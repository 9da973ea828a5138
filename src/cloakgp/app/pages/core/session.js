// Who is signed in, and what the server told for the whole visit: its glossary and what it suggests.

import { createStore } from "./store.js";

export const session = createStore({ me: null, terms: {}, defaults: null });

export const isCustodian = () => session.get().me?.role === "custodian";
