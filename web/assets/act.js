// What a person does: a form is one call of the HTTP interface. A refusal is shown where it happened.
import { refresh } from "./live.js";

const dialog = document.getElementById("dialog");

// -- Leases. The token that a claim gave proves who holds the task, together with the cookie that says who asks.

const leaseKey = (task) => `onus.lease.${task}`;
export const lease = (task) => localStorage.getItem(leaseKey(task));

/// What only a holder does is offered where the lease is: elsewhere the same person is told so, and has force.
export function markLeases() {
  const viewer = document.body.dataset.viewer;
  for (const held of document.querySelectorAll(`[data-holder="${CSS.escape(viewer)}"]`)) {
    held.classList.toggle("no-lease", !lease(held.dataset.task));
  }
}
document.addEventListener("onus:shown", markLeases);

function keepLease(task, answer) {
  const token = answer?.lease?.token;
  if (token && answer.assignment?.assignee === document.body.dataset.viewer) localStorage.setItem(leaseKey(task), token);
}

/// Leases of tasks that have changed hands since, or were given back, are of no use.
export function forgetLeases(entries) {
  for (const { task, verb, epoch } of entries) {
    const own = Number(lease(task)?.split(".")[1]);
    if (epoch > own || (epoch === own && ["released", "completed"].includes(verb))) localStorage.removeItem(leaseKey(task));
  }
}

// -- Calls.

function newKey() {
  return crypto.randomUUID?.() ?? [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16)).join("");
}

/// Calls the interface: what it told, or what was refused in `problem`.
export async function call(path, body, key = newKey(), method = "POST") {
  const answer = await fetch(path, {
    method,
    headers: { "Content-Type": "application/json", "Onus-Board": "1", "Idempotency-Key": key },
    body: JSON.stringify(body),
  });
  const told = await answer.json();
  return answer.ok ? { told } : { problem: told };
}

// -- Refusals.

export function element(name, text, ...children) {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  made.append(...children);
  return made;
}

/// An icon of the sprite.
export function icon(name) {
  const space = "http://www.w3.org/2000/svg";
  const [svg, use] = [document.createElementNS(space, "svg"), document.createElementNS(space, "use")];
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  use.setAttribute("href", `${document.body.dataset.icons}#${name}`);
  svg.append(use);
  return svg;
}

/// A hint for the command line helps whoever types it, and nobody else.
const isTyped = (hint) => /(^|[^a-z])(onus|git) [a-z]|(^|\s)--[a-z]/.test(hint);

/// Rules of the map by the type that they are for, not by their numbers.
const byType = (words) => (words ?? "").replace(/routing\[\d+\] /g, "the rule for ");

/// What happened, what to do; codes and commands for whoever looks them up.
export function showRefusal(place, problem) {
  const findings = problem.findings ?? [];
  const plain = (hint) => (hint && !isTyped(hint) ? [Object.assign(element("p", hint), { className: "hint" })] : []);
  const told = findings.map((finding) => element("li", byType(finding.detail), ...plain(finding.hint)));
  const hints = [problem.hint, ...findings.map(({ hint }) => hint)].filter((hint) => hint && isTyped(hint));
  const codes = [...new Set([problem.code, ...findings.map(({ code }) => code), ...hints])].filter(Boolean);
  place.replaceChildren(
    element("strong", problem.title ?? "It did not work"),
    element("p", byType(problem.detail)),
    ...(findings.length > 1 ? [Object.assign(element("ul", "", ...told), { className: "findings" })] : plain(problem.hint)),
    ...(codes.length ? [element("details", "", element("summary", "details"), ...codes.map((code) => element("div", "", element("code", code))))] : []),
  );
  place.hidden = false;
  place.scrollIntoView?.({ block: "nearest" });
}

// -- Words that pass.

let silence;
/// A task that it is about is a link, whichever page one is on.
export function say(words, task) {
  const said = document.getElementById("said");
  const link = task ? [Object.assign(element("a", task), { href: `/tasks/${task}` }), " "] : [];
  said.replaceChildren(...link, words);
  clearTimeout(silence);
  silence = setTimeout(() => said.replaceChildren(), 5000);
}

/// What became of a call, for whoever made it.
const DONE = {
  add: "is asked for", claim: "is yours", takeover: "is yours now", renew: "stays yours", release: "is back in the queue",
  block: "is blocked", unblock: "goes on", note: "has your note", complete: "is complete", review: "is reviewed",
  reopen: "is open again", drop: "is dropped",
};
const DONE_ELSEWHERE = {
  add_worker: "is registered", pause_worker: "is paused", resume_worker: "may have work again", add_workstation: "is registered",
  quarantine: "is in quarantine", restore: "is back from quarantine", retire: "is retired", add_milestone: "is added",
  close_milestone: "is closed",
};

function tellDone(verb, id, answer) {
  const assignee = answer.assignment?.assignee;
  if (answer.outcome === "existing") return say("is there already", id);
  if (verb === "claim" && assignee && assignee !== document.body.dataset.viewer) return say(`is ${assignee}'s now`, id);
  if (DONE[verb]) return say(DONE[verb], id);
  say(`${answer.worker?.handle ?? answer.workstation?.name ?? answer.milestone?.name ?? id ?? "It"} ${DONE_ELSEWHERE[verb] ?? "is done"}`);
}

// -- Forms.

/// Fields that must be filled in and are not, by their labels.
function missing(form) {
  const empty = [...form.querySelectorAll("[required]")].filter((input) => !input.value.trim());
  for (const input of form.querySelectorAll("[required]")) input.setAttribute("aria-invalid", String(empty.includes(input)));
  empty[0]?.focus();
  return empty.map((input) => input.closest("label")?.querySelector("span")?.textContent ?? input.name);
}

/// Who could take it and where: the rules say it, and the first place that is free is filled in.
async function showTakers(form, verb, task) {
  const place = form.querySelector("[data-takers]");
  if (!place) return;
  const answer = await fetch(`/tasks/${task}/takers?verb=${verb}`, { headers: { "Onus-Part": "main" } }).catch(() => null);
  if (!answer?.ok) return;
  const told = new DOMParser().parseFromString(await answer.text(), "text/html").body;
  const own = told.querySelector("[data-own]")?.dataset.own;
  place.replaceChildren(...told.childNodes);
  const where = form.elements.workstation;
  if (own && where && !where.value && !form.elements.assignee?.value) {
    where.value = own;
    // Whoever is about to type replaces it.
    if (document.activeElement === where) where.select();
  }
  place.addEventListener("click", (event) => {
    const button = event.target.closest("[data-taker]");
    if (!button) return;
    if (form.elements.assignee) form.elements.assignee.value = button.dataset.taker;
    where.value = button.dataset.place;
    form.querySelector("[type=submit]").focus();
  });
}

/// Where there are several projects, an ask goes to the one that is looked at.
function offerProject(form) {
  const field = form.elements.project;
  if (!field) return;
  const known = document.querySelectorAll("#projects option").length;
  if (known < 2) field.closest("label").remove();
  else field.value = new URLSearchParams(location.search).get("project") ?? "";
}

function bodyOf(form) {
  const body = {};
  for (const input of form.elements) {
    if (!input.name) continue;
    if (input.type === "checkbox") {
      if (input.checked) body[input.name] = true;
    } else if (input.dataset.kind && input.value.trim()) {
      // What it is and which one are asked for apart, and sent as one word.
      body[input.name] = `${form.querySelector(`#${input.dataset.kind}`).value}:${input.value.trim()}`;
    } else if (input.value.trim()) {
      body[input.name] = "list" in input.dataset ? input.value.split("\n").map((line) => line.trim()).filter(Boolean) : input.value;
    }
  }
  if (!body.force && form.querySelector(".force [name=reason]")) delete body.reason;
  return body;
}

export function close() {
  dialog.close();
}

export function open(content) {
  dialog.replaceChildren(content);
  if (!dialog.open) dialog.showModal();
}

/// Opens the form of a verb, about a task where it is about one. `forced`: only force leads there; `commit`: what the work
/// is likely to be at.
export function openForm(verb, task, { forced = false, commit = "" } = {}) {
  const template = document.querySelector(`template[data-form="${verb}"]`);
  if (!template) return;
  const form = template.content.firstElementChild.cloneNode(true);
  form.querySelector("[data-task-name]").textContent = task ?? "";
  if (form.elements.commit) form.elements.commit.value = commit;
  if (forced) {
    const force = form.querySelector(".force");
    if (force) force.open = true;
    if (form.elements.force) form.elements.force.checked = true;
  }
  offerProject(form);
  let key = newKey();
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const refusal = form.querySelector(".refusal");
    refusal.hidden = true;
    const empty = missing(form);
    if (empty.length) return showRefusal(refusal, { title: "Something is missing", detail: `Fill in: ${empty.join(", ")}` });
    const body = bodyOf(form);
    if ("held" in template.dataset && lease(task) && !body.force) body.lease = lease(task);
    const submit = form.querySelector("[type=submit]");
    submit.disabled = true;
    try {
      const path = template.dataset.path.replace("{id}", task);
      const { told: answer, problem } = await call(path, body, key);
      key = newKey();
      if (problem) return showRefusal(refusal, problem);
      const id = answer.task?.id ?? task;
      keepLease(id, answer);
      close();
      tellDone(verb, id, answer);
      refresh();
    } catch (error) {
      // The outcome is not known. The same key makes a second attempt harmless.
      showRefusal(refusal, { title: "The server does not answer", detail: String(error.message), hint: "Try again: it is done once at most." });
    } finally {
      submit.disabled = false;
    }
  });
  open(form);
  showTakers(form, verb, task);
  form.querySelector("input:not([type=checkbox]), textarea, select")?.focus();
}

const ICONS = { claim: "user-plus", takeover: "hand", complete: "circle-check", drop: "circle-x", release: "undo-2", block: "circle-pause",
  unblock: "circle-dot", reopen: "circle", note: "message-square", review: "check" };

/// What can be done with a card, in the words of its forms.
export function choicesOf(task) {
  const card = document.getElementById(`card-${task}`);
  const label = (verb) => document.querySelector(`template[data-form="${verb}"]`)?.content.querySelector("[type=submit]").textContent ?? verb;
  const moves = movesOf(card).map(({ verb, to, forced }) => ({
    label: `${label(verb)}${forced ? " by force" : ""} → ${to.replace("_", " ")}`,
    icon: ICONS[verb] ?? "chevron-right",
    act: () => openForm(verb, task, { forced }),
  }));
  return [...moves, { label: "Write a note", icon: "message-square", act: () => openForm("note", task) }];
}

/// A reviewer finds a criterion met, or no longer.
export async function tick(task, criterion, withdrawn) {
  const { problem } = await call(`/v1/tasks/${task}/reviews`, { [withdrawn ? "untick" : "tick"]: [criterion] });
  if (!problem) {
    say(`${task}: criterion ${criterion} is ${withdrawn ? "open again" : "met"}`);
    return refresh();
  }
  const refusal = Object.assign(element("div"), { className: "refusal" });
  refusal.setAttribute("role", "alert");
  const back = Object.assign(element("button", "Close"), { type: "button" });
  back.dataset.do = "close";
  showRefusal(refusal, problem);
  open(element("div", "", refusal, back));
}

/// What can be done with a card, as a menu.
export function openMenu(task) {
  const title = element("h2", `${task}`);
  title.id = "dialog-title";
  const list = element("ul");
  const choices = [{ label: "Open", icon: "file-text", act: () => location.assign(`/tasks/${task}`) }, ...choicesOf(task)];
  for (const choice of choices) {
    const button = element("button", "", icon(choice.icon), choice.label);
    button.type = "button";
    button.addEventListener("click", choice.act);
    list.append(element("li", "", button));
  }
  const menu = element("div", "", title, list);
  menu.className = "menu";
  open(menu);
  list.querySelector("button").focus();
}

/// Moves that take the lease.
const OF_HOLDER = ["release", "block", "complete", "unblock"];

/// Where a card may go: the server says it, from the rules. Its holder needs the lease, or force where there is any.
export function movesOf(card) {
  const moves = (card?.dataset.moves ?? "").split(" ").filter(Boolean).map((word) => {
    const [verb, to] = word.split(":");
    return { verb: verb.replace("!", ""), to, forced: verb.endsWith("!") };
  });
  const isElsewhere = card?.dataset.holder === document.body.dataset.viewer && !lease(card.dataset.task);
  if (!isElsewhere) return moves;
  const canForce = (verb) => Boolean(document.querySelector(`template[data-form="${verb}"]`)?.content.querySelector("[name=force]"));
  return moves
    .map((move) => (OF_HOLDER.includes(move.verb) && canForce(move.verb) ? { ...move, forced: true } : move))
    .filter(({ verb, forced }) => forced || !OF_HOLDER.includes(verb));
}

// A menu that hangs from its button closes when one goes elsewhere.
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll(".pop[open]")) if (!menu.contains(event.target)) menu.open = false;
});

dialog.addEventListener("click", (event) => {
  if (event.target === dialog || event.target.closest("[data-do=close]")) close();
});
