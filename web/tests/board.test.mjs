import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { World, accessible } from "./support.mjs";

let world;
let page;

before(async () => {
  world = await World.start();
  world.run("worker", "add", "@builder", "--kind", "agent", "--tier", "opus");
  for (const name of ["tree-a", "tree-b"]) world.run("workstation", "add", name);
  page = await world.signedIn();
});
after(() => world.end());

const card = (id) => page.locator(`#card-${id}`);
const cell = (state) => page.locator(`.cell[data-state=${state}]`);

test("a change shows by itself, in its column", async () => {
  const id = world.add("Count the sheep", "--priority", "P1");
  await cell("open").locator(`#card-${id}`).waitFor();
  assert.match(await card(id).innerText(), /P1[\s\S]*Count the sheep/);
  const claimed = world.run("claim", id, "--workstation", "tree-a");
  await cell("in_progress").locator(`#card-${id}`).waitFor();
  assert.match(await card(id).innerText(), /@ann[\s\S]*tree-a/);
  world.run("release", id, "--lease", claimed.lease.token, "--note", "later");
  await cell("open").locator(`#card-${id}`).waitFor();
});

test("every part of the board is accessible, in both themes", async () => {
  await accessible(page);
  await page.keyboard.press("t");
  await accessible(page);
  await page.keyboard.press("t");
});

test("a link signs in once", async () => {
  const link = world.link();
  const first = await (await world.browser()).newPage();
  await first.goto(link);
  await first.waitForSelector("#board");
  const second = await (await world.browser()).newPage();
  await second.goto(link);
  await second.waitForSelector(".refusal");
  assert.match(await second.innerText(".refusal"), /was revoked/);
});

test("a claim, and a refusal explained in place", async () => {
  const id = world.add("Mend the fence");
  await card(id).waitFor();
  await card(id).locator("[data-do=menu]").click();
  await page.getByRole("button", { name: /^Claim/ }).click();
  const dialog = page.locator("dialog");
  await dialog.getByLabel("Where you will work").fill("nowhere");
  await dialog.getByRole("button", { name: "Claim" }).click();
  await dialog.locator(".refusal strong").waitFor();
  assert.match(await dialog.locator(".refusal details").textContent(), /workstation_unknown/);
  await dialog.getByLabel("Where you will work").fill("tree-a");
  await dialog.getByRole("button", { name: "Claim" }).click();
  await cell("in_progress").locator(`#card-${id}`).waitFor();
});

/// What a team looks like in the middle of a day.
test("a card tells who, where, how long and what it waits for", async () => {
  for (const name of ["tree-c", "tree-d", "tree-e"]) world.run("workstation", "add", name);
  world.run("worker", "add", "@reviewer", "--kind", "agent", "--tier", "sonnet");
  const grant = (id, who, place, ttl) => {
    world.as = who;
    const { lease } = world.run("claim", id, "--workstation", place, "--ttl", ttl);
    world.as = undefined;
    return lease.token;
  };
  const retry = world.add("Retry uploads with backoff", "--priority", "P1", "--role", "backend", "--sprint", "s12", "--tag", "upload");
  const limits = world.add("Tell callers when they ask too often", "--priority", "P0", "--role", "backend", "--sprint", "s12", "--risk", "high");
  const page500 = world.add("A page for what went wrong", "--role", "frontend", "--sprint", "s12");
  const guide = world.add("Write the guide for retries", "--priority", "P3", "--role", "docs", "--depends-on", retry);
  world.add("Measure uploads from three continents", "--priority", "P2", "--role", "ops", "--depends-on", retry, "--depends-on", limits);
  grant(retry, "@builder", "tree-b", "15m");
  const waits = grant(limits, "@reviewer", "tree-c", "20m");
  world.as = "@reviewer";
  world.run("block", limits, "--lease", waits, "--on", "external:the quota that the provider promised");
  world.as = undefined;
  const shown = grant(page500, "@ann", "tree-d", "8h");
  world.run("complete", page500, "--lease", shown, "--resolution", "with a way back");
  await card(guide).locator(".blockers").waitFor();
  await card(guide).filter({ hasText: new RegExp(`waits for\\s+${retry}`) }).waitFor();
  await cell("in_progress").locator(`#card-${retry} .who.agent`).waitFor();
  await cell("blocked").locator(`#card-${limits}`).waitFor();
  await card(limits).filter({ hasText: /waits for\s+the quota/ }).waitFor();
  await cell("complete").locator(`#card-${page500}`).waitFor();
});

test("a card is dragged where the rules allow it, and nowhere else", async () => {
  const id = world.add("Drag me");
  await card(id).waitFor();
  assert.equal(await card(id).getAttribute("data-moves"), "claim:in_progress complete!:complete drop:dropped");
  await card(id).dragTo(page.locator(".head[data-state=blocked]"));
  assert.ok(!(await page.locator("dialog").isVisible()));
  await card(id).dragTo(page.locator(".head[data-state=complete]"));
  await page.locator("dialog .force[open]").waitFor();
  assert.ok(await page.locator("dialog [name=force]").isChecked());
  await page.keyboard.press("Escape");
  await card(id).dragTo(page.locator(".head[data-state=dropped]"));
  await page.getByLabel("Why?").fill("only a test");
  await page.locator("dialog [type=submit]").click();
  await cell("dropped").locator(`#card-${id}`).waitFor();
});

test("lanes and filters are in the address", async () => {
  const ids = ["backend", "frontend"].map((role) => world.add(`Work of the ${role}`, "--role", role, "--sprint", "s1"));
  await world.open(page, "/board?lanes=role");
  assert.deepEqual(await page.locator(".lane-name").allInnerTexts(), ["backend", "docs", "frontend", "ops", "no role"]);
  await accessible(page);
  await page.getByLabel("Role", { exact: true }).selectOption("backend");
  await page.waitForURL(/role=backend/);
  await card(ids[1]).waitFor({ state: "detached" });
  assert.ok(await card(ids[0]).isVisible());
  await page.getByLabel("Words in the title").fill("of the");
  await page.waitForURL(/q=of\+the/);
  assert.ok(await card(ids[0]).isVisible());
  await world.open(page, "/board?lanes=nonsense");
  assert.match(await page.locator("#main").textContent(), /invalid_input/);
});

test("on a phone, in the dark", async () => {
  const phone = await world.signedIn({ viewport: { width: 390, height: 780 }, colorScheme: "dark", hasTouch: true, isMobile: true });
  await world.open(phone, "/board");
  await accessible(phone);
  const overflow = await phone.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.equal(overflow, 0, "the page itself does not scroll sideways");
});
