// The bell: how much waits for whoever looks, and a word about the first of it. Asked again when something has happened, at most
// every few seconds: an inbox is put together from all that is open.
import { onEntries } from "./live.js";

const REST_MS = 3000;
const TOLD = 3;

let asked = 0;
let due;

async function count() {
  due = undefined;
  asked = Date.now();
  const bell = document.getElementById("bell");
  const answer = await fetch("/v1/inbox", { headers: { "Onus-Board": "1" } }).catch(() => null);
  if (!bell || !answer?.ok) return;
  const { items, more } = await answer.json();
  const number = bell.querySelector(".count");
  number.textContent = items.length ? `${items.length}${more ? "+" : ""}` : "";
  number.hidden = items.length === 0;
  bell.setAttribute("aria-label", items.length ? `Inbox: ${number.textContent} waiting` : "Inbox: nothing waits for you");
  const told = items.slice(0, TOLD).map(({ kind, task, text }) => [kind, task, text.slice(0, 80)].filter(Boolean).join(" · "));
  bell.title = told.length ? told.join("\n") : "Nothing waits for you";
}

function soon() {
  due ??= setTimeout(count, Math.max(0, asked + REST_MS - Date.now()));
}

if (document.getElementById("bell")) {
  onEntries(soon);
  soon();
}
