// Click to edit: what a task says of itself is changed where it stands. One change is one call; a refusal stays beside it.
import { call, element, lease, say, showRefusal } from "./act.js";
import { refresh } from "./live.js";

const CHOICES = {
  priority: ["P0", "P1", "P2", "P3", "P4"],
  kind: ["feature", "defect", "chore", "docs"],
  risk: ["low", "normal", "high"],
};
const LISTS = ["tags", "scope", "depends_on", "checks"];
const DAYS = ["target"];
const NUMBERS = ["lane", "merge_order"];
/// Nothing filled in empties these; the others must say something.
const MAY_BE_EMPTY = ["body", "type", "role", "sprint", "parent", ...NUMBERS];

function fieldOf(name, value) {
  if (CHOICES[name]) {
    const options = CHOICES[name].includes(value) ? CHOICES[name] : [value, ...CHOICES[name]];
    const select = element("select", "", ...options.map((word) => element("option", word)));
    select.value = value;
    return select;
  }
  const field = document.createElement(name === "body" || LISTS.includes(name) ? "textarea" : "input");
  if (DAYS.includes(name)) field.type = "date";
  field.value = value;
  if (field.localName === "textarea") field.rows = name === "body" ? 10 : Math.max(2, value.split("\n").length + 1);
  if (LISTS.includes(name)) field.placeholder = "one on each line";
  field.autocomplete = "off";
  return field;
}

/// The value as the call takes it.
export function valueOf(name, text) {
  const trimmed = text.trim();
  if (LISTS.includes(name)) return trimmed ? trimmed.split("\n").map((line) => line.trim()).filter(Boolean) : [];
  if (!trimmed && DAYS.includes(name)) return "none";
  if (!trimmed && MAY_BE_EMPTY.includes(name)) return null;
  if (NUMBERS.includes(name)) return Number(trimmed);
  return name === "body" ? text : trimmed;
}

/// Changes one field of a task, or of what has another path: what was refused, or nothing.
export async function change(task, changes, path = `/v1/tasks/${task}`) {
  const body = lease(task) ? { ...changes, lease: lease(task) } : changes;
  const { problem } = await call(path, body, undefined, "PATCH");
  return problem;
}

/// Opens the field of a button in its place.
export function openEdit(button) {
  const { task, path, field: name, value = "" } = button.dataset;
  const place = button.parentElement;
  const field = fieldOf(name, value);
  field.setAttribute("aria-label", button.dataset.label ?? name);
  const refusal = Object.assign(element("div"), { className: "refusal", hidden: true });
  refusal.setAttribute("role", "alert");
  const save = Object.assign(element("button", "Save"), { type: "submit", className: "first" });
  const cancel = Object.assign(element("button", "Cancel"), { type: "button" });
  const row = Object.assign(element("div", "", field, save, cancel), { className: "row" });
  const form = Object.assign(element("form", "", row, refusal), { className: "edit-line", noValidate: true });
  // While somebody edits it, changes from elsewhere leave it alone.
  place.dataset.keep = "";
  button.hidden = true;
  place.append(form);
  const end = () => {
    form.remove();
    delete place.dataset.keep;
    button.hidden = false;
    button.focus();
  };
  cancel.addEventListener("click", end);
  // A choice is made by choosing.
  if (field.localName === "select") field.addEventListener("change", () => form.requestSubmit());
  form.addEventListener("keydown", (event) => {
    if (event.key === "Escape") end();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    save.disabled = true;
    try {
      const problem = await change(task, { [name]: valueOf(name, field.value) }, path);
      if (problem) return showRefusal(refusal, problem);
      end();
      if (path) say(`${task} is changed`);
      else say("is changed", task);
      refresh();
    } catch (error) {
      showRefusal(refusal, { title: "The server does not answer", detail: String(error.message), hint: "Try again: it is done once at most." });
    } finally {
      save.disabled = false;
    }
  });
  field.focus();
  field.select?.();
}

// -- A note, written where the notes are.

document.addEventListener("submit", async (event) => {
  const form = event.target.closest?.("form[data-note]");
  if (!form) return;
  event.preventDefault();
  const task = form.dataset.note;
  const refusal = form.querySelector(".refusal");
  refusal.hidden = true;
  const text = form.elements.text.value.trim();
  if (!text) return form.elements.text.focus();
  const body = lease(task) ? { text, lease: lease(task) } : { text };
  const { problem } = await call(`/v1/tasks/${task}/notes`, body).catch((error) => ({ problem: { title: "The server does not answer", detail: String(error.message) } }));
  if (problem) return showRefusal(refusal, problem);
  form.reset();
  refresh();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.target.closest?.("form[data-note]")?.requestSubmit();
});
