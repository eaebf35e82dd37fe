// The keyboard. Single letters act only where nobody is typing.
import { open, openMenu } from "./act.js";
import { openPalette } from "./palette.js";
import { toggle } from "./pick.js";

export const KEYS = [
  ["Ctrl K", "a page, a task or something to do"],
  ["g …", "go to a page: its first letter"],
  ["/", "filter the board"],
  ["c", "ask for something"],
  ["j k", "the next card, the one before"],
  ["h l", "the column before, the next one"],
  ["Enter", "open the card"],
  ["m", "what can be done with the card"],
  ["x", "pick the card, to change several at once"],
  ["t", "light or dark"],
  ["?", "these shortcuts"],
  ["Esc", "close"],
];

export function openKeys() {
  const list = document.createElement("div");
  list.className = "keys";
  list.innerHTML = `<h2 id="dialog-title">Shortcuts</h2><dl></dl><div class="buttons"><button type="button" data-do="close">Close</button></div>`;
  const pages = [...document.querySelectorAll("header nav a")].map((link) => [`g ${link.dataset.key}`, link.textContent.trim()]);
  for (const [key, words] of [...KEYS, ...pages]) {
    const [term, meaning] = [document.createElement("dt"), document.createElement("dd")];
    term.append(Object.assign(document.createElement("kbd"), { textContent: key }));
    meaning.textContent = words;
    list.querySelector("dl").append(term, meaning);
  }
  open(list);
}

export function switchTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("onus.theme", root.dataset.theme);
}

// -- Cards by keyboard.

const focusCard = (card) => card?.querySelector(".title")?.focus();

function step(by) {
  const here = document.activeElement?.closest(".card");
  if (!here) return focusCard(document.querySelector(".card"));
  const column = [...document.querySelectorAll(`.cell[data-column="${here.closest(".cell").dataset.column}"] .card`)];
  focusCard(column[column.indexOf(here) + by]);
}

function sidestep(by) {
  const here = document.activeElement?.closest(".card");
  if (!here) return step(0);
  const row = [...here.closest(".columns").children];
  for (let at = row.indexOf(here.closest(".cell")) + by; row[at]; at += by) {
    const card = row[at].querySelector(".card");
    if (card) return focusCard(card);
  }
}

const card = () => document.activeElement?.closest(".card")?.dataset.task;

const ACTS = {
  "/": () => document.querySelector(".filters [type=search]")?.focus(),
  "?": openKeys,
  c: () => document.querySelector("[data-verb=add]")?.click(),
  t: switchTheme,
  j: () => step(1),
  k: () => step(-1),
  l: () => sidestep(1),
  h: () => sidestep(-1),
  m: () => card() && openMenu(card()),
  x: () => card() && toggle(card()),
};

let going = false;

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    return openPalette();
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches?.("input, textarea, select") || document.getElementById("dialog").open) return;
  if (going) {
    going = false;
    return document.querySelector(`header nav a[data-key="${CSS.escape(event.key)}"]`)?.click();
  }
  if (event.key === "g") return void (going = true);
  const act = ACTS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

