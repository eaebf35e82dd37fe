// What a session prints, as it prints it. The words are a program's: they are only ever text.

const SHOWN_MAX = 200_000;

let source;

// A step of a coding client, or what was printed as it was.
function shown({ kind, tool, text }) {
  if (kind === "printed") return text;
  const step = document.createElement("span");
  step.className = `step ${kind}`;
  if (tool) {
    const name = document.createElement("b");
    name.textContent = tool;
    step.append(name, " ");
  }
  step.append(text);
  return step;
}

function follow() {
  source?.close();
  source = undefined;
  const box = document.querySelector("pre[data-output]");
  if (!box || box.dataset.closed === "true") return;
  const at = Number(box.dataset.next);
  source = new EventSource(`/v1/sessions/${Number(box.dataset.output)}/output?from=${at}&format=steps`);
  source.addEventListener("output", ({ data }) => {
    const view = JSON.parse(data);
    const isAtEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - 8;
    box.append(...view.steps.map(shown));
    while (box.textContent.length > SHOWN_MAX && box.firstChild !== box.lastChild) box.firstChild.remove();
    if (isAtEnd) box.scrollTop = box.scrollHeight;
  });
  source.addEventListener("end", () => source?.close());
}

// The page was shown anew: it says itself how far it got.
document.addEventListener("onus:shown", follow);
addEventListener("pagehide", () => source?.close());
follow();
