// Every change as it happens. One tab of a browser listens for all of them (a browser opens only six connections to a
// server), and passes on what it hears. Whoever was away asks for what came behind the last entry that it saw.
import { morph } from "./morph.js";
import { setClock, tick } from "./time.js";

const RETRY_MS = [250, 500, 1000, 2000, 4000];
const SETTLE_MS = 25;
const REST_MS = 250;

let seen = Number(document.body.dataset.seq);
const channel = new BroadcastChannel(`onus.${location.host}`);
const listeners = new Set();

/// Told of each batch of entries: `{seq, task, verb, actor, …}`.
export const onEntries = (listener) => listeners.add(listener);

function show(state) {
  const live = document.getElementById("live");
  if (live.dataset.state === state) return;
  live.dataset.state = state;
  live.textContent = state;
}

function leave() {
  location.assign(`/signin?then=${encodeURIComponent(location.pathname + location.search)}`);
}

// -- What is on the page is fetched again and changed in place.

let wanted = false;
let busy = false;

/// Shows the page as it is now; many calls at once are one.
export function refresh() {
  if (wanted) return;
  wanted = true;
  if (!busy) setTimeout(fetchMain, SETTLE_MS);
}

async function fetchMain() {
  if (document.hidden) return; // It is asked for when somebody looks.
  busy = true;
  wanted = false;
  try {
    await show_address(location.pathname + location.search);
  } catch {
    wanted = true; // The listener finds out why, and asks again.
  } finally {
    setTimeout(() => {
      busy = false;
      if (wanted && document.getElementById("live").dataset.state === "live") fetchMain();
    }, REST_MS);
  }
}

/// Shows another address of this page in place.
export async function show_address(address) {
  const answer = await fetch(address, { headers: { "Onus-Part": "main" } });
  if (answer.status === 401) return leave();
  const html = await answer.text();
  const main = document.getElementById("main");
  const focus = rememberFocus();
  morph(main, html);
  setClock(Number(answer.headers.get("Onus-Now")));
  tick();
  focus();
  document.dispatchEvent(new CustomEvent("onus:shown"));
}

/// A card that moved to another column is a new element there: whoever was on it still is.
function rememberFocus() {
  const active = document.activeElement;
  const owner = active?.closest("#main [id]");
  if (!owner) return () => {};
  const among = (root) => [root, ...root.querySelectorAll("a, button, input, select, textarea")];
  const index = among(owner).indexOf(active);
  return () => {
    if (document.activeElement !== document.body) return;
    const again = document.getElementById(owner.id);
    if (again) among(again)[index]?.focus({ preventScroll: true });
  };
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden && wanted && !busy) fetchMain();
});

// -- Entries, from the server or from the tab that listens.

function heard(entries) {
  const fresh = entries.filter((entry) => entry.seq > seen);
  if (!fresh.length) return;
  seen = fresh.at(-1).seq;
  for (const listener of listeners) listener(fresh);
  refresh();
}

channel.onmessage = ({ data }) => {
  if (data.entries) heard(data.entries);
  if (data.state) show(data.state);
  if (data.state === "live" && wanted) refresh();
  if (data.at > seen) {
    seen = data.at;
    refresh();
  }
  // A tab that has just opened asks what it may have missed.
  if (data.hello && leads) channel.postMessage({ at: seen, state: document.getElementById("live").dataset.state });
};

let leads = false;

function tell(message) {
  if (message.entries) heard(message.entries);
  if (message.state) {
    show(message.state);
    // What was asked for while the server was away.
    if (message.state === "live" && wanted && !busy) fetchMain();
  }
  channel.postMessage(message);
}

/// Reads server-sent events until the stream ends.
async function listen() {
  const answer = await fetch("/v1/events", { headers: { "Last-Event-ID": String(seen), Accept: "text/event-stream" } });
  if (answer.status === 401) return leave();
  if (!answer.ok) throw new Error(`events: ${answer.status}`);
  tell({ state: "live" });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    const data = blocks.flatMap((block) => block.split("\n").filter((line) => line.startsWith("data:")));
    if (data.length) tell({ entries: data.map((line) => JSON.parse(line.slice(5))) });
  }
}

async function lead() {
  leads = true;
  for (let attempt = 0; ; attempt++) {
    const began = Date.now();
    await listen().catch(() => {});
    if (Date.now() - began > 5000) attempt = 0;
    tell({ state: "reconnecting" });
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS[Math.min(attempt, RETRY_MS.length - 1)]));
  }
}

export function start() {
  setClock(Number(document.body.dataset.now));
  tick();
  channel.postMessage({ hello: true });
  // Without locks (an old browser, or a page that is not secure) every tab listens for itself.
  if (navigator.locks) navigator.locks.request("onus.live", lead);
  else lead();
}
