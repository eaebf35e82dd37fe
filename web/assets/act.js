// What a person does: a form is one call of the HTTP interface. A refusal is shown where it happened.
import { refresh } from "./live.js";

const dialog = document.getElementById("dialog");

// -- Leases. The token that a claim gave proves who holds the task, together with the cookie that says who asks.

const leaseKey = (task) => `onus.lease.${task}`;
const lease = (task) => localStorage.getItem(leaseKey(task));

function keepLease(task, answer) {
  const token = answer?.lease?.token;
  if (token && answer.assignment?.assignee === document.body.dataset.viewer) localStorage.setItem(leaseKey(task), token);
}

/// Leases of tasks that have changed hands since are of no use.
export function forgetLeases(entries) {
  const ends = ["released", "completed", "dropped", "reopened", "taken_over"];
  for (const { task, verb } of entries) if (task && ends.includes(verb)) localStorage.removeItem(leaseKey(task));
}

// -- Calls.

function newKey() {
  return crypto.randomUUID?.() ?? [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16)).join("");
}

/// Calls the interface. The answer's document, or what was refused in `problem`.
export async function call(path, body, key = newKey()) {
  const answer = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", "Onus-Board": "1", "Idempotency-Key": key },
    body: JSON.stringify(body),
  });
  const document = await answer.json();
  return answer.ok ? { document } : { problem: document };
}

// -- Refusals.

function element(name, text, ...children) {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  made.append(...children);
  return made;
}

export function showRefusal(place, problem) {
  const findings = (problem.findings ?? []).map((finding) =>
    element("li", "", element("code", finding.code), ` ${finding.detail}`, ...(finding.hint ? [element("p", finding.hint)] : [])));
  place.replaceChildren(
    element("strong", problem.title ?? "It did not work"),
    " ",
    element("code", problem.code ?? ""),
    element("p", problem.detail ?? ""),
    ...(problem.hint ? [Object.assign(element("p", problem.hint), { className: "hint" })] : []),
    ...(findings.length > 1 ? [Object.assign(element("ul", "", ...findings), { className: "findings" })] : []),
  );
  place.hidden = false;
}

// -- Words that pass.

let silence;
export function say(words) {
  const said = document.getElementById("said");
  said.textContent = words;
  clearTimeout(silence);
  silence = setTimeout(() => (said.textContent = ""), 4000);
}

// -- Forms.

function bodyOf(form) {
  const body = {};
  for (const input of form.elements) {
    if (!input.name) continue;
    if (input.type === "checkbox") {
      if (input.checked) body[input.name] = true;
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

/// Opens the form of a verb, about a task where it is about one. `forced`: only force leads there.
export function openForm(verb, task, forced = false) {
  const template = document.querySelector(`template[data-form="${verb}"]`);
  if (!template) return;
  const form = template.content.firstElementChild.cloneNode(true);
  form.querySelector("[data-task-name]").textContent = task ?? "";
  if (forced) {
    const force = form.querySelector(".force");
    if (force) force.open = true;
    if (form.elements.force) form.elements.force.checked = true;
  }
  let key = newKey();
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const refusal = form.querySelector(".refusal");
    refusal.hidden = true;
    const body = bodyOf(form);
    if ("held" in template.dataset && lease(task) && !body.force) body.lease = lease(task);
    const submit = form.querySelector("[type=submit]");
    submit.disabled = true;
    try {
      const path = template.dataset.path.replace("{id}", task);
      const { document: answer, problem } = await call(path, body, key);
      key = newKey();
      if (problem) return showRefusal(refusal, problem);
      const id = answer.task?.id ?? task;
      keepLease(id, answer);
      close();
      say(answer.outcome === "existing" ? `${id} is there already` : `${id ?? ""} ${verb}: done`);
      refresh();
    } catch (error) {
      // The outcome is not known. The same key makes a second attempt harmless.
      showRefusal(refusal, { title: "The server does not answer", detail: String(error.message), hint: "Try again: it is done once at most." });
    } finally {
      submit.disabled = false;
    }
  });
  open(form);
  form.querySelector("input:not([type=checkbox]), textarea, select")?.focus();
}

/// What can be done with a card, as a menu.
export function openMenu(task) {
  const card = document.getElementById(`card-${task}`);
  const menu = element("div");
  menu.className = "menu";
  const title = element("h2", `${task}`);
  title.id = "dialog-title";
  const list = element("ul");
  const add = (label, act) => {
    const button = element("button", label);
    button.type = "button";
    button.addEventListener("click", act);
    list.append(element("li", "", button));
  };
  add("Open", () => location.assign(`/tasks/${task}`));
  for (const { verb, to, forced } of movesOf(card)) {
    const template = document.querySelector(`template[data-form="${verb}"]`);
    const label = template?.content.querySelector("[type=submit]").textContent ?? verb;
    add(`${label}${forced ? " by force" : ""} → ${to.replace("_", " ")}`, () => openForm(verb, task, forced));
  }
  add("Write a note", () => openForm("note", task));
  menu.append(title, list);
  open(menu);
  list.querySelector("button").focus();
}

/// Where a card may go: the server says it, from the rules.
export function movesOf(card) {
  return (card?.dataset.moves ?? "").split(" ").filter(Boolean).map((word) => {
    const [verb, to] = word.split(":");
    return { verb: verb.replace("!", ""), to, forced: verb.endsWith("!") };
  });
}

dialog.addEventListener("click", (event) => {
  if (event.target === dialog || event.target.closest("[data-do=close]")) close();
});
