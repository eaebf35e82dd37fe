// The component sheet: every part of the visual language as the board draws it, for docs/screenshots/components.png.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { World, accessible, screenshot } from "./support.mjs";

let world;
let page;
before(async () => {
  world = await World.start();
  page = await world.signedIn({ viewport: { width: 1100, height: 860 } });
});
after(() => world.end());

const asset = (name) => readFileSync(new URL(`../assets/${name}`, import.meta.url), "utf8");

/// A page of the board, emptied and filled with one of each.
async function show() {
  await world.open(page, "/fleet");
  const tokens = [...asset("tokens.css").matchAll(/(--[a-z0-9-]+):/g)].map(([, name]) => name);
  const icons = [...asset("icons.svg").matchAll(/<symbol id="([^"]+)"/g)].map(([, name]) => name);
  await page.evaluate(({ tokens, icons }) => {
    const icon = (name) => `<svg class="icon" aria-hidden="true"><use href="${document.body.dataset.icons}#${name}"/></svg>`;
    const states = [["open", "circle"], ["in_progress", "circle-dot"], ["blocked", "circle-pause"], ["complete", "circle-check"], ["dropped", "circle-x"], ["quarantined", "ban"]];
    const ring = (left, name) => `<span class="lease ${name}"><svg viewBox="0 0 16 16" aria-hidden="true"><circle class="track" cx="8" cy="8" r="6"/><circle class="left" cx="8" cy="8" r="6" pathLength="100" stroke-dasharray="${left} 100"/></svg><span class="words">${name === "late" ? "expired 5 min ago" : `${left} min`}</span></span>`;
    document.getElementById("main").innerHTML = `<h1>The board's components</h1>
      <section class="panel"><h2>States, priorities, leases, workers, labels</h2>
        <p class="line">${states.map(([state, name]) => `<span class="state ${state}">${icon(name)}${state.replace("_", " ")}</span>`).join(" ")}</p>
        <p class="line">${[0, 1, 2, 3, 4].map((n) => `<span class="priority p${n}">P${n}</span>`).join(" ")} ${ring(52, "")} ${ring(9, "low")} ${ring(0, "late")}
          <span class="who agent">${icon("bot")}@builder</span> <span class="who human">${icon("user")}@ann</span> <span class="chip">#payments</span>
          <span class="flag-word">${icon("shield-alert")}high risk</span> <span class="flag-word">${icon("zap")}forced</span> <span class="flag-word">${icon("hourglass")}waits for</span></p></section>
      <section class="panel"><h2>Buttons and fields</h2><p class="line"><button class="first">First</button> <button>Ordinary</button> <button class="quiet">Quiet</button> <button class="danger">Danger</button>
        <input aria-label="A field" value="A field"> <select aria-label="A choice"><option>A choice</option></select> <span class="badge good">good</span> <span class="badge warn">warn</span> <span class="badge bad">bad</span></p>
        <div class="refusal"><strong>Somebody else holds it</strong><p>@builder holds API-12 for 14 min.</p><p class="hint">Wait, or ask @builder.</p></div></section>
      <section class="panel"><h2>Colours by what they are for</h2><p class="line">${tokens.filter((name) => /ground|sunken|raised|hover|line|text|faint|accent|good|warn|bad/.test(name)).map((name) => `<span class="chip swatch" data-token="${name}">${name.slice(2)}</span>`).join(" ")}</p></section>
      <section class="panel"><h2>Icons (Lucide)</h2><p class="line">${icons.map((name) => `<span title="${name}">${icon(name)}</span>`).join(" ")}</p></section>`;
    for (const swatch of document.querySelectorAll(".swatch")) swatch.style.setProperty("border-left", `14px solid var(${swatch.dataset.token})`);
  }, { tokens, icons });
  return { tokens, icons };
}

test("the sheet shows every token and icon, and each is accessible in both themes", async () => {
  const { tokens, icons } = await show();
  assert.ok(tokens.length > 30 && icons.length > 40);
  assert.ok(await page.locator("#main .icon").count() >= icons.length);
  await accessible(page);
  await screenshot(page, "components");
  await page.keyboard.press("t");
  await accessible(page);
});

test("styles speak in tokens: no colour of their own", () => {
  for (const name of ["base.css", "board.css", "task.css", "diff.css", "fleet.css", "report.css"]) {
    const own = asset(name).match(/#[0-9a-f]{3,8}\b|light-dark\(/gi) ?? [];
    assert.deepEqual(own, [], name);
  }
});
