// Several tasks at once to those whom the map names: who gets which is shown first, with the reason where nobody can.
import { call, close, element, open, say, showRefusal } from "./act.js";
import { refresh } from "./live.js";

/// Whom the map sends a task to, of those whose place nobody else of this round gets; else why not.
async function proposal(task, given) {
  const answer = await fetch(`/tasks/${task}/takers?verb=claim`, { headers: { "Onus-Part": "main" } });
  const told = new DOMParser().parseFromString(await answer.text(), "text/html");
  const takers = [...told.querySelectorAll("[data-taker]")].map(({ dataset }) => dataset).filter(({ taker }) => taker);
  const free = takers.find(({ place }) => !given.has(place));
  if (free) {
    given.set(free.place, task);
    return { task, assignee: free.taker, workstation: free.place };
  }
  if (takers.length) return { task, why: `${takers[0].place} gets ${given.get(takers[0].place)} in this round` };
  const named = [...told.querySelectorAll(".takers li")].slice(0, -1).map((line) => line.textContent.trim());
  return { task, why: named.concat([...told.querySelectorAll(".takers-of > .about")].map((line) => line.textContent)).join("; ") || "the map names nobody for it" };
}

function rowOf({ task, assignee, workstation, why }) {
  const row = Object.assign(element("li"), { className: "assigned" });
  row.dataset.task = task;
  row.append(Object.assign(element("span", task), { className: "id" }), " ");
  if (why) {
    row.append(Object.assign(element("span", why), { className: "why" }));
    return row;
  }
  const label = document.createElement("label");
  const box = Object.assign(document.createElement("input"), { type: "checkbox", checked: true });
  label.append(box, ` ${assignee} in ${workstation}`);
  row.append(label);
  return row;
}

/// Shows who would get what, and gives it to them. `done` is told which tasks were given away.
export async function openAssign(tasks, done) {
  const given = new Map();
  const proposals = [];
  for (const task of tasks) proposals.push(await proposal(task, given));
  const form = Object.assign(document.createElement("form"), { className: "form assign" });
  const list = document.createElement("ul");
  list.append(...proposals.map(rowOf));
  const refusal = Object.assign(document.createElement("div"), { className: "refusal", hidden: true });
  refusal.setAttribute("role", "alert");
  const submit = Object.assign(element("button", "Assign"), { type: "submit", className: "first", disabled: given.size === 0 });
  const cancel = Object.assign(element("button", "Cancel"), { type: "button", onclick: close });
  const buttons = Object.assign(document.createElement("div"), { className: "buttons" });
  buttons.append(cancel, submit);
  form.append(Object.assign(element("h2", `Assign ${tasks.length} tasks`), { id: "dialog-title" }),
    Object.assign(element("p", "As the identity map says."), { className: "about" }), list, refusal, buttons);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    submit.disabled = true;
    refusal.hidden = true;
    const worked = [];
    for (const { task, assignee, workstation } of proposals.filter(({ why }) => !why)) {
      const row = list.querySelector(`[data-task="${task}"]`);
      if (!row.querySelector("input")?.checked) continue;
      const { problem } = await call(`/v1/tasks/${task}/claim`, { assignee, workstation }).catch((error) => ({ problem: { title: "The server does not answer", detail: String(error.message) } }));
      if (problem) row.replaceChildren(element("span", `${task} `), Object.assign(element("span", problem.detail ?? problem.title), { className: "why" }));
      else {
        worked.push(task);
        row.replaceChildren(element("span", `${task} is ${assignee}'s now`));
      }
      if (problem && refusal.hidden) showRefusal(refusal, problem);
    }
    done(worked);
    refresh();
    if (refusal.hidden) close();
    say(`${worked.length} ${worked.length === 1 ? "task" : "tasks"} assigned`);
  });
  open(form);
  submit.focus();
}
