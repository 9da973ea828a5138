// Talks to the server. Every answer is JSON or an ApiError that carries the server's own sentence.

class ApiError extends Error {
  constructor(message, code, status) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

const SILENT = "The server does not answer. Is cloakgp serve still running?";

// `work` is an id by which the server tells how far it is.
async function send(method, path, { body, raw, signal, work } = {}) {
  const options = { method, signal, credentials: "same-origin", headers: work ? { "X-Work": work } : {} };
  if (raw !== undefined) {
    options.body = raw;
    options.headers["Content-Type"] = "application/octet-stream";
  } else if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers["Content-Type"] = "application/json";
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(SILENT, "silent", 0);
  }
  const text = await response.text();
  let answer = null;
  try {
    answer = text ? JSON.parse(text) : null;
  } catch {
    answer = null;
  }
  if (response.ok) return answer;
  const sentence =
    typeof answer?.error === "string" ? answer.error : `The server answered with error ${response.status}.`;
  const error = new ApiError(sentence, answer?.code ?? "failed", response.status);
  if (error.status === 401) window.dispatchEvent(new CustomEvent("signed-out"));
  throw error;
}

const get = (path, options) => send("GET", path, options);
const post = (path, body, options) => send("POST", path, { ...options, body });
const part = encodeURIComponent;

// A map's choices as an address has them: what is null is left out, and where inputs are held is JSON.
function queryOf({ coordinates, held, ...rest }) {
  const single = Object.entries(rest).filter(([, value]) => value !== null && value !== undefined);
  const query = new URLSearchParams(single);
  for (const name of coordinates ?? []) query.append("coordinates", name);
  if (Object.keys(held ?? {}).length) query.append("held", JSON.stringify(held));
  return query;
}

export const api = {
  me: () => get("/api/me"),
  signIn: (token) => post("/api/session", { token }),
  signOut: () => send("DELETE", "/api/session"),
  terms: () => get("/api/terms"),
  defaults: () => get("/api/defaults"),

  data: () => get("/api/data"),
  upload: (name, bytes) => send("PUT", `/api/data/${part(name)}`, { raw: bytes }),
  removeData: (name) => send("DELETE", `/api/data/${part(name)}`),
  inputs: (name, asked, signal) => post(`/api/data/${part(name)}/inputs`, asked, { signal }),
  peopleIn: (name, asked, signal) => post(`/api/data/${part(name)}/people`, asked, { signal }),

  preview: (settings, options) => post("/api/preview", settings, options),
  roughPreview: (settings, options) => post("/api/preview?rough=true", settings, options),
  designs: (settings, options) => post("/api/preview/designs", settings, options),
  curve: (settings, epsilons, options) => post("/api/preview/curve", { settings, epsilons }, options),
  work: (id) => get(`/api/work/${part(id)}`),
  stop: (id) => send("DELETE", `/api/work/${part(id)}`),

  plans: () => get("/api/plans"),
  plan: (id) => get(`/api/plans/${part(id)}`),
  savePlan: (settings, name, options) => post("/api/plans", { settings, name }, options),
  quote: (id, dataset) => post(`/api/plans/${part(id)}/quote`, { dataset }),
  release: (id, request, options) => post(`/api/plans/${part(id)}/release`, request, options),

  releases: () => get("/api/releases"),
  releaseOf: (id, options) => get(`/api/releases/${part(id)}`, options),
  mapOf: (id, asked, options) => post(`/api/releases/${part(id)}/map`, asked, options),
  predict: (id, request) => post(`/api/releases/${part(id)}/predict`, request),
  verify: (id) => get(`/api/releases/${part(id)}/verify`),
  download: (id, what, asked) => `/api/releases/${part(id)}/${what}${asked ? `?${queryOf(asked)}` : ""}`,

  ledger: () => get("/api/ledger"),
  createDataset: (dataset) => post("/api/ledger/datasets", dataset),
  allowColumns: (dataset, columns, why) => post("/api/ledger/private", { dataset, private: columns, why }),

  people: () => get("/api/people"),
  invite: (person) => post("/api/people", person),
  revoke: (id) => send("DELETE", `/api/people/${part(id)}`),
};
