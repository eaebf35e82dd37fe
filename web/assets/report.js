// Now, Audit and Effort: one call of the interface at a press of a button, filters that act at once, and the
// verification of the record, page by page.
import { call, say } from "./act.js";
import { refresh, showAddress } from "./live.js";

async function doCall(button) {
  button.disabled = true;
  try {
    const { problem } = await call(button.dataset.call, JSON.parse(button.dataset.body), undefined, button.dataset.method);
    say(problem ? `${problem.title}: ${problem.detail}` : button.dataset.said);
    refresh();
  } catch {
    say("The server does not answer. Try again: it is done once at most.");
  } finally {
    button.disabled = false;
  }
}

const VERIFIED_AT_ONCE = 2000;

/// Hashes and links of every entry, as many at a time as the server looks at in one go.
async function verify(button) {
  const progress = document.getElementById("verify-progress");
  const result = document.getElementById("verify-result");
  const tell = (words, className) => Object.assign(result, { textContent: words, className });
  button.disabled = true;
  progress.hidden = false;
  progress.value = 0;
  tell("", "");
  try {
    let [after, verified] = [0, 0];
    for (;;) {
      const answer = await fetch(`/v1/ledger/verify?after=${after}&limit=${VERIFIED_AT_ONCE}`);
      if (!answer.ok) throw new Error(`the server says ${answer.status}`);
      const page = await answer.json();
      verified += page.entries;
      progress.max = page.newest;
      progress.value = page.to;
      if (!page.ok) {
        const [first] = page.findings;
        return tell(`entry ${first.seq}: ${first.detail} (${page.findings.length} found here)`, "bad");
      }
      if (!page.entries || page.to >= page.newest) break;
      after = page.to;
    }
    tell(`${verified} entries hold`, "good");
  } catch (error) {
    tell(`It could not be verified: ${error.message}`, "bad");
  } finally {
    button.disabled = false;
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-call], [data-verify]");
  if (!button) return;
  if ("verify" in button.dataset) verify(button);
  else doCall(button);
});

document.addEventListener("change", (event) => {
  const form = event.target.closest?.("form[data-at-once]");
  if (!form) return;
  const address = `${form.getAttribute("action")}?${new URLSearchParams(new FormData(form))}`;
  history.replaceState(null, "", address);
  showAddress(address);
});

// -- Since I last looked: this browser knows when that was.

const LOOKED = "onus.looked";

if (document.querySelector("main.now")) {
  const last = Number(localStorage.getItem(LOOKED));
  const minutes = Math.ceil((Date.now() - last) / 60_000);
  const link = document.getElementById("last-look");
  // A page that could not be made has no such link.
  if (link && last && minutes < 60 * 24 * 30) {
    link.href = `/now?since=${minutes}m`;
    link.hidden = false;
  }
  addEventListener("pagehide", () => localStorage.setItem(LOOKED, String(Date.now())));
}
