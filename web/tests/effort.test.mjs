import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { World, accessible } from "./support.mjs";
import { correct, daysAgo, tell } from "./story.mjs";

let world;
let page;

before(async () => {
  world = await World.start();
  tell(world, { days: true });
  page = await world.signedIn();
});
after(() => world.end());

/// Hours and minutes, as the page has them.
const clock = (seconds) => `${Math.trunc(seconds / 3600)}:${String(Math.trunc(seconds / 60) % 60).padStart(2, "0")}`;

test("the sums are those of the timesheet, people beside agents", async () => {
  await world.open(page, "/effort");
  const period = await page.locator(".steps strong").innerText();
  const sheet = world.run("timesheet", "--month", period, "--by", "worker");
  for (const { worker, seconds } of sheet.rows) {
    const row = page.locator(`[id="worker-${worker}"]`);
    assert.match(await row.innerText(), new RegExp(`${worker}[\\s\\S]*${clock(seconds)}`));
  }
  assert.match(await page.locator("main").innerText(), /USD/);
  assert.ok((await page.locator("svg.chart rect.agents").count()) >= 1);
  await accessible(page);
});

test("a person approves a day, and a later correction shows", async () => {
  const day = daysAgo(3);
  await world.open(page, `/effort?period=${day}&worker=@builder`);
  await page.getByRole("button", { name: "Approve the time of @builder" }).click();
  await page.getByText("approved by @ann").waitFor();
  const session = world.run("session", "list", "--worker", "@builder", "--limit", "100").sessions
    .find(({ started_at }) => started_at.startsWith(day));
  correct(world, String(session.id), "--start", `${day}T08:30:00Z`, "--duration", "1h", "--reason", "shorter");
  await page.getByText("changed since @ann approved it").waitFor();
  await page.getByText("corrected").first().waitFor();
});

test("days, weeks and months have neighbours", async () => {
  await world.open(page, "/effort?period=2026-W46");
  await page.getByRole("link", { name: "The period before" }).click();
  await page.waitForURL(/period=2026-W45/);
  await page.getByRole("link", { name: "Month" }).click();
  await page.waitForURL(/period=2026-11$/);
  await world.open(page, "/effort?period=yesterday");
  assert.match(await page.locator("main").innerText(), /is not a day, a week or a month/);
});

test("the files are those of the command line", async () => {
  await world.open(page, "/effort");
  const get = (label) => page.getByRole("link", { name: label }).getAttribute("href");
  const csv = await page.evaluate(async (path) => (await fetch(path)).text(), await get("CSV"));
  assert.match(csv, /^worker,task,day,sessions,seconds/);
  const kinds = { Excel: "spreadsheetml", Calendar: "text/calendar" };
  for (const [label, kind] of Object.entries(kinds)) {
    const type = await page.evaluate(async (path) => (await fetch(path)).headers.get("content-type"), await get(label));
    assert.ok(type.includes(kind), `${label}: ${type}`);
  }
});

test("a worker's day is a line of hours with what came of it", async () => {
  await world.open(page, `/effort/day?worker=@painter&day=${daysAgo(2)}`);
  assert.equal(await page.locator("svg.day rect").count(), 1);
  const text = await page.locator("main").innerText();
  assert.match(text, /@painter on/);
  assert.match(text, /08:15/);
  await accessible(page);
});

test("the phone has it all", async () => {
  const phone = await world.signedIn({ viewport: { width: 390, height: 800 } });
  await world.open(phone, "/effort");
  const overflow = await phone.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(overflow <= 0, `${overflow} px too wide`);
});

test("a day of everybody is lines of hours, people and agents told apart, with a line where now is", async () => {
  await world.open(page, `/effort?period=${daysAgo(2)}`);
  const lines = page.getByRole("img", { name: `Who worked when on ${daysAgo(2)}` });
  assert.deepEqual(await lines.locator(".name").allTextContents(), ["@ann", "@builder", "@painter"]);
  assert.equal(await lines.locator("rect.people").count(), 1);
  assert.equal(await lines.locator("rect.agents").count(), 2);
  assert.equal(await lines.locator(".now").count(), 0);
  assert.equal(await page.locator("#hours").count(), 0, "bars of which there would be one");
  await world.open(page, `/effort?period=${daysAgo(0)}`);
  await page.getByRole("img", { name: /Who worked when/ }).locator(".now").waitFor({ state: "attached" });
  await accessible(page);
});

test("axes have round numbers", async () => {
  for (const path of ["/effort", "/now"]) {
    await world.open(page, path);
    const axes = await page.locator("svg.chart:not(.day)").evaluateAll((charts) => charts.map((chart) => [...chart.querySelectorAll(".word.end")].map((word) => Number.parseFloat(word.textContent))));
    assert.ok(axes.length >= 2);
    for (const [zero, step, ...more] of axes.filter((axis) => axis.length > 1)) {
      assert.match(step.toExponential(), /^[125]e/, `${path}: ${[zero, step, more]}`);
      assert.deepEqual([zero, ...more], [0, ...more.map((_, n) => step * (n + 2))]);
    }
  }
});
