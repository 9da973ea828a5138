// A request that may take a while: how far it is is asked for, and a server that is busy is asked again.

import { api } from "./api.js";

const GLANCE = 500; // milliseconds
const PATIENCE = 1200; // before a busy server is asked again
const REFUSALS = 100; // after which it is said that it is busy

const newId = () => [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

const pause = (milliseconds, signal) =>
  new Promise((resolve, reject) => {
    const timer = window.setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => {
      window.clearTimeout(timer);
      reject(new DOMException("stopped", "AbortError"));
    });
  });

// `send({signal, work})` asks. `told(work)` hears how far it is, and of null at the end. The same request may be sent
// more than once: none of those that are watched is paid for, or done, twice.
export async function watched(send, told, signal = null) {
  const work = newId();
  let over = false;
  const hear = (now) => !over && now.under_way && told(now);
  const timer = window.setInterval(() => api.work(work).then(hear, () => {}), GLANCE);
  try {
    for (let refused = 1; ; refused += 1) {
      try {
        return await send({ signal, work });
      } catch (error) {
        if (error.status !== 503 || error.code !== "busy" || refused > REFUSALS) throw error;
        told({ doing: "waiting", done: 0, total: 0 });
        await pause(PATIENCE, signal);
      }
    }
  } finally {
    over = true;
    window.clearInterval(timer);
    told(null);
  }
}

// The same, with how to stop it on the server.
export function stoppable(send, told) {
  let current = null;
  const asking = watched((options) => {
    current = options.work;
    return send(options);
  }, told);
  return { asking, stop: () => current && api.stop(current).catch(() => {}) };
}
