// The board: cards are dragged where the rules allow it; filters act at once; more cards come as they are needed.
import { call, close, element, icon, movesOf, open, openForm, say, showRefusal } from "./act.js";
import { refresh, showAddress } from "./live.js";

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
  if (move) openForm(move.verb, task, { forced: move.forced });
  else say(`${task} cannot go to ${state.replace("_", " ")} from here`);
}

// -- Filters.

/// Shows another address and keeps it in the bar.
async function go(address) {
  await showAddress(address);
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

let further;

function watch() {
  further?.disconnect();
  const board = document.getElementById("board");
  if (!board) return;
  further = new IntersectionObserver(reached, { root: board, rootMargin: "600px" });
  for (const link of board.querySelectorAll(".more")) further.observe(link);
}

function reached(entries) {
  const link = entries.find((entry) => entry.isIntersecting)?.target;
  if (!link) return;
  further.disconnect();
  go(link.getAttribute("href"));
}

document.addEventListener("onus:shown", watch);
// At first only when it is scrolled: nobody needs what is far below.
document.addEventListener("scroll", watch, { capture: true, once: true, passive: true });

// -- Views: the team's are in the store, one's own in this browser.

const VIEWS = "onus.views";
const views = () => JSON.parse(localStorage.getItem(VIEWS) ?? "[]");

function keep(list) {
  localStorage.setItem(VIEWS, JSON.stringify(list));
  showViews();
}

function showViews() {
  const place = document.getElementById("saved");
  if (!place) return;
  const here = location.pathname + location.search;
  place.replaceChildren(...views().map(({ name, address }) => {
    const link = Object.assign(element("a", "", icon("star"), name), { href: address, title: "Saved in this browser" });
    if (address !== here) return element("span", "", link);
    link.setAttribute("aria-current", "true");
    const remove = Object.assign(element("button", "", icon("x")), { type: "button", className: "quiet" });
    Object.assign(remove.dataset, { do: "unsave", name, own: "" });
    remove.setAttribute("aria-label", `Remove the view ${name}`);
    return element("span", "", link, remove);
  }));
}

/// The words of the address, without how far somebody has scrolled.
function wordsHere() {
  const query = new URLSearchParams(location.search);
  query.delete("show");
  return Object.fromEntries([...query].filter(([, value]) => value));
}

/// Asks for a name, and who is to see it; the same name takes the place of the view before.
export function saveView() {
  const address = location.pathname + location.search;
  const form = document.createElement("form");
  const isPerson = Boolean(document.getElementById("bulk"));
  form.innerHTML = `<h2 id="dialog-title">Save this view</h2><p class="about">Its filters, under a name.</p>
    <div class="refusal" role="alert" hidden></div>
    <label><span>Name</span><input name="name" autocomplete="off" maxlength="40"></label>
    <label class="flag"><input type="checkbox" name="shared"> For everybody</label>
    <div class="buttons"><button type="button" data-do="close">Cancel</button><button type="submit" class="first">Save</button></div>`;
  form.elements.shared.checked = isPerson;
  form.elements.shared.closest("label").hidden = !isPerson;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const name = form.elements.name.value.trim();
    if (!name) return form.elements.name.focus();
    if (form.elements.shared.checked) {
      const { problem } = await call("/v1/views", { name, query: wordsHere() });
      if (problem) return showRefusal(form.querySelector(".refusal"), problem);
      refresh();
    } else {
      keep([...views().filter((view) => view.name !== name), { name, address }]);
    }
    close();
    say(`View saved: ${name}`);
  });
  open(form);
  form.elements.name.focus();
}

export async function removeView(name, own) {
  if (own) {
    keep(views().filter((view) => view.name !== name));
  } else {
    const { problem } = await call("/v1/views", { name });
    if (problem) return say(problem.detail);
    refresh();
  }
  say(`View removed: ${name}`);
}

document.addEventListener("onus:shown", showViews);
showViews();
