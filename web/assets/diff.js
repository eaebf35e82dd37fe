// The page of a task's changes: words about lines, and a reviewer's verdict.
import { call, close, open, say, showRefusal } from "./act.js";
import { refresh } from "./live.js";

function made(name, properties = {}, ...children) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
}

/// Asks for words and sends them; a refusal is shown beside them, and what was typed stays. `done` is what became of the task.
function ask(title, submit, { required, label, task, done, more = [] }, send) {
  const text = made("textarea", { name: "text", rows: 5, required });
  const refusal = made("div", { className: "refusal", hidden: true, role: "alert" });
  const button = made("button", { type: "submit", className: "first", textContent: submit });
  const form = made("form", { className: "form" },
    made("h2", { id: "dialog-title", textContent: title }),
    made("label", {}, label, text),
    ...more,
    refusal,
    made("div", { className: "buttons" }, made("button", { type: "button", textContent: "Cancel", onclick: close }), button));
  const key = crypto.randomUUID?.() ?? String(Math.random()).slice(2);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    refusal.hidden = true;
    button.disabled = true;
    try {
      const { problem } = await send(text.value.trim(), key);
      if (problem) return showRefusal(refusal, problem);
      close();
      say(done, task);
      refresh();
    } catch (error) {
      showRefusal(refusal, { title: "The server does not answer", detail: String(error.message), hint: "Try again: it is done once at most." });
    } finally {
      button.disabled = false;
    }
  });
  open(form);
  text.focus();
}

document.addEventListener("click", (event) => {
  const page = event.target.closest?.(".diff");
  if (!page) return;
  const { task, head } = page.dataset;
  const path = `/v1/tasks/${task}/reviews`;
  const line = event.target.closest("[data-line]");
  if (line) {
    const file = line.closest("[data-path]").dataset.path;
    const number = Number(line.dataset.line);
    return ask(`${file}:${number}`, "Comment", { required: true, label: "What the holder should know or do", task, done: "has your comment" }, (text, key) =>
      call(path, { commit: head, comments: [{ path: file, line: number, text }] }, key));
  }
  const verdict = event.target.closest("[data-review]")?.dataset.review;
  if (verdict) {
    const isApproved = verdict === "approved";
    const title = isApproved ? "Approve" : "Send back";
    const design = made("input", { type: "checkbox", name: "design" });
    const more = [made("label", { className: "flag" }, design, " A design only: nothing of it runs yet")];
    const done = isApproved ? "is approved" : "is sent back";
    ask(`${title} ${task}`, title, { required: !isApproved, label: "Note", task, done, more }, (text, key) =>
      call(path, { verdict, classification: design.checked ? "design-only" : "implemented", commit: head, ...(text ? { note: text } : {}) }, key));
  }
});
