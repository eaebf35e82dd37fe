// What a session prints, as it prints it. The words are a program's: they are only ever text.

const SHOWN_MAX = 200_000;

let source;

function follow() {
  source?.close();
  source = undefined;
  const box = document.querySelector("pre[data-output]");
  if (!box || box.dataset.closed === "true") return;
  let at = Number(box.dataset.next);
  source = new EventSource(`/v1/sessions/${Number(box.dataset.output)}/output?from=${at}`);
  source.addEventListener("output", ({ data }) => {
    const view = JSON.parse(data);
    const isAtEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - 8;
    for (const piece of view.pieces) {
      if (piece.position > at) box.append(`\n[${piece.position - at} bytes are left out here]\n`);
      box.append(piece.text);
    }
    at = view.next;
    if (box.textContent.length > SHOWN_MAX) box.textContent = box.textContent.slice(-SHOWN_MAX);
    if (isAtEnd) box.scrollTop = box.scrollHeight;
  });
  source.addEventListener("end", () => source?.close());
}

// The page was shown anew: it says itself how far it got.
document.addEventListener("onus:shown", follow);
addEventListener("pagehide", () => source?.close());
follow();
