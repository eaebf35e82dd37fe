// Several tasks at once: pick them, then change all of them. Each one is a call of its own, so that one that is refused
// holds up none of the others.
import { call, say } from "./act.js";
import { openAssign } from "./assign.js";
import { change } from "./edit.js";
import { refresh } from "./live.js";

const picked = new Set();

const bar = () => document.getElementById("bulk");

function show() {
  for (const row of document.querySelectorAll("[data-pickable]")) {
    const is = picked.has(row.dataset.task);
    row.classList.toggle("picked", is);
    const box = row.querySelector("[data-pick]");
    if (box) box.checked = is;
  }
  document.getElementById("main").classList.toggle("picking", picked.size > 0);
  if (!bar()) return;
  bar().hidden = picked.size === 0;
  bar().querySelector("strong").textContent = `${picked.size} picked`;
}

export function toggle(task) {
  if (!picked.delete(task)) picked.add(task);
  show();
}

function clear() {
  picked.clear();
  show();
}

/// Makes the call for each, and tells what became of them all.
async function forAll(act, done) {
  const tasks = [...picked];
  const refused = [];
  for (const task of tasks) {
    const problem = await act(task).catch((error) => ({ detail: String(error.message) }));
    if (problem) refused.push({ task, problem });
  }
  refresh();
  const worked = tasks.length - refused.length;
  if (!refused.length) {
    clear();
    return say(`${worked} ${worked === 1 ? "task" : "tasks"} ${done}`);
  }
  // Those stay picked that still want something.
  picked.clear();
  for (const { task } of refused) picked.add(task);
  show();
  say(`: ${refused[0].problem.detail} (${worked} ${done}, ${refused.length} refused)`, refused[0].task);
}

const bulk = {
  priority: (value) => forAll((task) => change(task, { priority: value }), `now ${value}`),
  sprint: (value) => forAll((task) => change(task, { sprint: value || null }), value ? `in ${value}` : "in no sprint"),
  tags: (value) => forAll((task) => change(task, { tags: [/^[+-]/.test(value) ? value : `+${value}`] }), "labelled"),
  drop: (value) => forAll(async (task) => (await call(`/v1/tasks/${task}/drop`, { reason: value })).problem, "dropped"),
};

document.addEventListener("change", (event) => {
  if (event.target.matches?.("[data-pick]")) return toggle(event.target.dataset.pick);
  const select = event.target.closest?.("#bulk select");
  if (!select?.value) return;
  bulk[select.name](select.value);
  select.value = "";
});

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("#bulk [data-bulk]");
  if (!button) return;
  if (button.dataset.bulk === "clear") return clear();
  if (button.dataset.bulk === "assign") {
    return openAssign([...picked], (given) => {
      for (const task of given) picked.delete(task);
      show();
    });
  }
  const input = document.querySelector(`#bulk [name="${button.dataset.bulk}"]`);
  if (!input.value.trim()) return input.focus();
  bulk[button.dataset.bulk](input.value.trim());
  input.value = "";
});

document.addEventListener("onus:shown", show);
