// Five thousand tasks. The figures are printed (docs/benchmarks.md, "Board"); only what cannot be a matter of load fails.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { World, accessible, screenshot } from "./support.mjs";
import { PAGES, furnish, median, paints } from "./scale.mjs";

const TASKS = Number(process.env.ONUS_BOARD_TASKS ?? 5_000);

let world;
let page;
let ready;
before(async () => {
  world = await World.start();
  ({ ready } = furnish(world, TASKS));
  page = await world.signedIn();
});
after(() => world.end());

test("the first look is quick, and its HTML is bounded", async () => {
  const all = await paints(world, page, "/board", 5);
  const cards = await page.locator(".card").count();
  const html = await page.evaluate(async () => (await (await fetch("/board", { headers: { "Onus-Part": "main" } })).text()).length);
  console.log(`${TASKS} tasks: first contentful paint ${median(all).toFixed(0)} ms (median of ${all.length}), ${cards} cards, ${html} characters`);
  assert.ok(cards <= 250 && html < 300_000);
  assert.match(await page.innerText(".head[data-state=open]"), TASKS > 5_000 ? /10000\+/ : new RegExp(`\\b${ready}$`));
  await accessible(page);
  await screenshot(page, "board-5000");
});

test("list and search are quick", async () => {
  // Whoever searches first reads what nobody has read yet; a server does so by itself (crates/onus-server/src/indexer.rs).
  await world.open(page, "/board?q=ordinary");
  for (const [name, path] of Object.entries(PAGES)) {
    const all = await paints(world, page, path, 3);
    console.log(`${TASKS} tasks, ${name}: first contentful paint ${median(all).toFixed(0)} ms (median of ${all.length})`);
  }
  await world.open(page, "/board?q=4711");
  // The one says it, the other has it in its id.
  assert.deepEqual((await page.locator(".card .title").allInnerTexts()).map((title) => title.split(" ")[2]).toSorted(), ["4710", "4711"]);
  await world.open(page, "/board");
});

test("a change is seen soon", async () => {
  const waits = [];
  for (let n = 0; n < 5; n++) {
    // The clock starts where the call does, in the page itself: starting a program would be measured with it.
    waits.push(await page.evaluate(async () => {
      const id = document.querySelector(".cell[data-state=open] .card").dataset.task;
      const began = performance.now();
      const seen = new Promise((resolve) => new MutationObserver((_, observer) => {
        if (!document.querySelector(`.cell[data-state=dropped] #card-${id}`)) return;
        observer.disconnect();
        resolve(performance.now() - began);
      }).observe(document.getElementById("main"), { childList: true, subtree: true }));
      await fetch(`/v1/tasks/${id}/drop`, { method: "POST", headers: { "Content-Type": "application/json", "Onus-Board": "1" },
        body: JSON.stringify({ reason: "to see it go" }) });
      return seen;
    }));
    // One change at a time: what comes at once is shown at once.
    await page.waitForTimeout(400);
  }
  console.log(`a change is seen after ${median(waits).toFixed(0)} ms (median of ${waits.length}, worst ${Math.max(...waits).toFixed(0)} ms)`);
});

/// A board never shows more than ten thousand.
const skip = TASKS > 5_000 && "measured with 5,000 tasks";

test("all of them scroll", { skip }, async () => {
  const frames = await page.evaluate(async (tasks) => {
    const board = document.getElementById("board");
    const end = Date.now() + 60_000;
    const gaps = [];
    let last = performance.now();
    while (document.querySelectorAll(".card").length < tasks && Date.now() < end) {
      board.scrollTop = board.scrollHeight;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    board.scrollTop = 0;
    await new Promise((resolve) => setTimeout(resolve, 500));
    last = performance.now();
    for (let n = 0; n < 180; n++) {
      board.scrollTop += 400;
      await new Promise(requestAnimationFrame);
      const now = performance.now();
      gaps.push(now - last);
      last = now;
    }
    return { gaps, cards: document.querySelectorAll(".card").length };
  }, TASKS);
  const late = frames.gaps.filter((gap) => gap > 34).length;
  console.log(`scrolling ${frames.cards} cards: ${median(frames.gaps).toFixed(1)} ms per frame (median of ${frames.gaps.length}), ${late} later than two frames`);
  assert.ok(frames.cards >= TASKS, `${frames.cards} cards`);
});

test("with all of them shown, a change is still seen", { skip }, async () => {
  const id = world.add("Late and urgent", "--priority", "P0");
  await page.locator(`#card-${id}`).waitFor({ state: "attached" });
});
