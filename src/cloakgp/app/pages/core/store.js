// A value that tells others when it changes.

export function createStore(initial) {
  let state = initial;
  const listeners = new Set();
  return {
    get: () => state,
    set(changes) {
      state = { ...state, ...changes };
      for (const listener of [...listeners]) listener(state, changes);
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
