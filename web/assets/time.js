// Moments and leases tick. The words are those of src/html.rs.
let skew = 0;

/// The server's clock, as far as this browser knows it.
export const now = () => Date.now() + skew;

export function setClock(serverNow) {
  if (serverNow) skew = serverNow - Date.now();
}

function span(ms) {
  const seconds = Math.trunc(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.trunc(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.trunc(seconds / 3600)} h`;
  return `${Math.trunc(seconds / 86400)} d`;
}

function say(element, words) {
  if (element.textContent !== words) element.textContent = words;
}

function tickLease(lease, at) {
  const left = Number(lease.dataset.expires) - at;
  const percent = Math.max(0, Math.min(100, Math.trunc((left * 100) / Number(lease.dataset.ttl))));
  lease.querySelector(".left").setAttribute("stroke-dasharray", `${percent} 100`);
  lease.classList.toggle("late", left <= 0);
  lease.closest(".card")?.classList.toggle("late", left <= 0);
  lease.classList.toggle("low", left > 0 && percent < 33);
  say(lease.querySelector(".words"), left > 0 ? span(left) : `expired ${span(-left)} ago`);
}

export function tick() {
  const at = now();
  for (const lease of document.querySelectorAll("[data-expires]")) tickLease(lease, at);
  for (const time of document.querySelectorAll("time[data-at]")) {
    const ago = at - Number(time.dataset.at);
    say(time, ago < 0 ? `in ${span(-ago)}` : `${span(ago)} ago`);
  }
}

setInterval(() => document.hidden || tick(), 1000);
document.addEventListener("visibilitychange", () => document.hidden || tick());
