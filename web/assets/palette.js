// Ctrl K: a page, a task, or something to do, by a few letters.
import { choicesOf, close, open, openForm } from "./act.js";

function choices() {
  const pages = [...document.querySelectorAll("header nav a")].map((link) => ({
    label: `Go to ${link.textContent.trim()}`,
    act: () => location.assign(link.href),
  }));
  const asks = document.querySelector("[data-verb=add]") ? [{ label: "Ask for something", act: () => openForm("add") }] : [];
  return [...pages, ...asks];
}

/// What can be done with the card that one was on, or with the task of the page.
function acts(current) {
  if (!current) return [];
  if (document.getElementById(`card-${current}`)) return choicesOf(current).map(({ label, act }) => ({ label: `${current}: ${label}`, act }));
  const buttons = [...document.querySelectorAll(".task .actions button")].filter((button) => button.checkVisibility());
  const edits = [...document.querySelectorAll(".task .edit[data-label]")];
  return [
    ...buttons.map((button) => ({ label: `${current}: ${button.textContent.trim()}`, act: () => button.click() })),
    ...edits.map((button) => ({ label: `${current}: Change ${button.dataset.label.toLowerCase()}`, act: () => button.click() })),
  ];
}

const entry = (task) => ({ label: `${task.id} ${task.title}`, act: () => location.assign(`/tasks/${task.id}`) });

/// Tasks that the words are found in: those on the page, and one that is named.
function tasks(words) {
  const cards = [...document.querySelectorAll("[data-pickable]")].map((card) => ({
    id: card.dataset.task,
    title: card.querySelector(".title").textContent,
  }));
  const named = words.trim().toUpperCase();
  const direct = /^[A-Z][A-Z0-9]*-\d+$/.test(named) && !cards.some(({ id }) => id === named) ? [{ id: named, title: "" }] : [];
  return [...direct, ...cards].map(entry);
}

/// Tasks that the store finds: the others are on another page, or on none.
async function elsewhere(words) {
  const answer = await fetch(`/v1/tasks?limit=8&search=${encodeURIComponent(words)}`, { headers: { "Onus-Board": "1" } }).catch(() => null);
  return answer?.ok ? (await answer.json()).tasks.map(entry) : [];
}

function search(words, current) {
  const board = { label: `Search everything: ${words}`, act: () => location.assign(`/board?q=${encodeURIComponent(words)}`) };
  const letters = words.toLowerCase().split(/\s+/).filter(Boolean);
  const found = [...acts(current), ...choices(), ...tasks(words)].filter(({ label }) => letters.every((part) => label.toLowerCase().includes(part)));
  return [...found.slice(0, 12), ...(letters.length ? [board] : [])];
}

export function openPalette() {
  const current = document.activeElement?.closest("[data-pickable]")?.dataset.task ?? document.querySelector("article.task")?.dataset.task;
  const form = document.createElement("form");
  form.className = "palette";
  form.innerHTML = `<h2 id="dialog-title" class="unseen">Go to</h2>
    <input type="text" role="combobox" aria-expanded="true" aria-controls="found" aria-label="A page, a task or something to do" placeholder="A page, a task, or something to do" autocomplete="off">
    <ul id="found" role="listbox" aria-label="Found"></ul>`;
  const [input, list] = [form.querySelector("input"), form.querySelector("ul")];
  let found = [];
  let at = 0;
  let pause;

  function mark() {
    [...list.children].forEach((item, index) => item.setAttribute("aria-selected", String(index === at)));
    list.children[at]?.scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", list.children[at]?.id ?? "");
  }

  /// What is known at once is shown at once; what the store finds follows it, and moves nothing that is marked.
  function show() {
    const words = input.value;
    found = search(words, current);
    at = 0;
    draw();
    clearTimeout(pause);
    if (words.trim().length < 2) return;
    pause = setTimeout(async () => {
      const more = (await elsewhere(words)).filter(({ label }) => !found.some((one) => one.label === label));
      if (input.value !== words || !more.length) return;
      found = at === found.length - 1 ? [...more, ...found] : [...found.slice(0, -1), ...more, ...found.slice(-1)];
      draw();
    }, 150);
  }

  function draw() {
    list.replaceChildren(...found.map(({ label }, index) => {
      const item = document.createElement("li");
      item.role = "option";
      item.id = `found-${index}`;
      item.textContent = label;
      return item;
    }));
    mark();
  }

  function choose(index) {
    if (!found[index]) return;
    close();
    found[index].act();
  }

  input.addEventListener("input", show);
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    at = (at + step + found.length) % Math.max(found.length, 1);
    mark();
  });
  list.addEventListener("click", (event) => choose([...list.children].indexOf(event.target.closest("li"))));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    choose(at);
  });
  open(form);
  show();
  input.focus();
}
