import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { World, accessible } from "./support.mjs";
import { tell } from "./story.mjs";

let world;
let page;
let story;

before(async () => {
  world = await World.start();
  story = tell(world);
  page = await world.signedIn();
});
after(() => world.end());

const rows = () => page.locator("main table tbody tr");

test("the record is filtered by task, actor and verb", async () => {
  await world.open(page, "/audit");
  assert.ok((await rows().count()) > 20);
  await page.getByLabel("Task", { exact: true }).fill(story.forced);
  await page.getByRole("button", { name: "Show" }).click();
  await page.waitForURL(/task=/);
  assert.deepEqual(await page.locator("tbody .badge").allInnerTexts(), ["completed", "claimed", "was refused", "added"]);
  await world.open(page, "/audit?verb=refused&actor=@builder");
  assert.equal(await rows().count(), 1);
  assert.match(await rows().textContent(), /routing_denied/);
  await world.open(page, "/audit?task=nonsense");
  assert.match(await page.locator(".refusal, .refused").first().innerText(), /nonsense/);
});

test("the record is verified in the browser, with its progress", async () => {
  await world.open(page, "/audit");
  await page.getByRole("button", { name: "Verify the record" }).click();
  await page.getByText(/^\d+ entries hold$/).waitFor();
  const newest = world.run("status").ledger_entries;
  assert.equal(await page.locator("#verify-result").innerText(), `${newest} entries hold`);
  assert.equal(await page.locator("#verify-progress").evaluate((bar) => bar.value === bar.max), true);
  await accessible(page);
});

test("forced acts and refusals have lists of their own, and a file", async () => {
  await world.open(page, "/audit?show=forced");
  assert.deepEqual(await page.locator("tbody .badge").allInnerTexts(), ["forced", "outside policy"]);
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "CSV" }).click()]);
  assert.equal(download.suggestedFilename(), "audit.csv");
  const lines = await (await fetchText(await page.getByRole("link", { name: "CSV" }).getAttribute("href"))).split("\n");
  assert.match(lines[0], /^kind,seq,at,actor,verb,task/);
  assert.equal(lines.filter(Boolean).length, 3);
  await world.open(page, "/audit?show=refusals");
  assert.match(await rows().textContent(), /routing_denied/);
  await world.open(page, "/audit?show=anomalies");
  assert.match(await page.locator("main").innerText(), /forced completion/);
  await accessible(page);
});

const fetchText = (path) => page.evaluate(async (address) => (await fetch(address)).text(), path);

test("an incident tells who, where, by which rule, and that it was outside the policy", async () => {
  await world.open(page, `/audit/${story.forced}`);
  const text = await page.locator("main").innerText();
  assert.match(text, /outside the policy/);
  assert.match(text, /@builder[\s\S]*given by @ann[\s\S]*ws-backend/);
  assert.match(text, /it could not wait/);
  await accessible(page);
  await world.open(page, "/audit/API-999");
  assert.match(await page.locator("main").innerText(), /there is no task API-999/);
});

test("a page of the audit is nobody's without a cookie", async () => {
  const stranger = await (await world.browser()).newPage();
  await stranger.goto(`${world.url}/audit`);
  assert.match(stranger.url(), /\/signin\?then=/);
  const answer = await stranger.request.get(`${world.url}/download/audit.csv`);
  assert.equal(answer.status(), 401);
});
