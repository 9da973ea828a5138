// The newest preview, {settings, answer}, so that going back a step does not ask again.

let last = null;

export const lastPreview = { get: () => last, set: (preview) => (last = preview) };
