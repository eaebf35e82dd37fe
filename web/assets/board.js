// The board: cards are dragged where the rules allow it; filters act at once; more cards come as they are needed.
import { movesOf, openForm, say } from "./act.js";
import { show_address } from "./live.js";

let dragged = null;

const cellAt = (target) => target.closest?.(".cell, .head");

document.addEventListener("dragstart", (event) => {
  const card = event.target.closest?.(".card");
  if (!card) return;
  dragged = card.dataset.task;
  event.dataTransfer.setData("text/plain", dragged);
  event.dataTransfer.effectAllowed = "move";
  const moves = movesOf(card);
  for (const cell of document.querySelectorAll(".cell, .head")) {
    const move = moves.find(({ to }) => to === cell.dataset.state);
    cell.classList.toggle("may", Boolean(move) && !move.forced);
    cell.classList.toggle("may-force", Boolean(move?.forced));
  }
  document.getElementById("board").classList.add("dragging");
});

document.addEventListener("dragover", (event) => {
  if (dragged && cellAt(event.target)?.matches(".may, .may-force")) event.preventDefault();
});

document.addEventListener("drop", (event) => {
  const cell = cellAt(event.target);
  if (!dragged || !cell) return;
  event.preventDefault();
  moveTo(dragged, cell.dataset.state);
});

document.addEventListener("dragend", () => {
  dragged = null;
  document.getElementById("board")?.classList.remove("dragging");
  for (const cell of document.querySelectorAll(".may, .may-force")) cell.classList.remove("may", "may-force");
});

function moveTo(task, state) {
  const card = document.getElementById(`card-${task}`);
  const move = movesOf(card).find(({ to }) => to === state);
  if (move) openForm(move.verb, task, move.forced);
  else say(`${task} cannot go to ${state.replace("_", " ")} from here`);
}

// -- Filters.

/// Shows another address and keeps it in the bar.
async function go(address) {
  await show_address(address);
  history.replaceState(null, "", address);
}

function addressOf(form) {
  const query = new URLSearchParams(new FormData(form));
  for (const [name, value] of [...query]) if (!value) query.delete(name);
  return `${form.getAttribute("action")}${query.size ? `?${query}` : ""}`;
}

let typing;
document.addEventListener("input", (event) => {
  const form = event.target.closest?.(".filters");
  if (!form) return;
  clearTimeout(typing);
  typing = setTimeout(() => go(addressOf(form)), event.target.localName === "select" ? 0 : 150);
});
document.addEventListener("submit", (event) => {
  if (!event.target.matches(".filters")) return;
  event.preventDefault();
  go(addressOf(event.target));
});

// -- More cards, before the viewer reaches the end of what is there.

const further = new IntersectionObserver(
  (entries) => {
    const link = entries.find((entry) => entry.isIntersecting)?.target;
    if (link?.isConnected) go(link.getAttribute("href"));
  },
  { rootMargin: "600px" },
);

function watch() {
  further.disconnect();
  for (const link of document.querySelectorAll(".more")) further.observe(link);
}

document.addEventListener("onus:shown", watch);
// At first only when it is scrolled: nobody needs what is far below.
document.addEventListener("scroll", watch, { capture: true, once: true, passive: true });
