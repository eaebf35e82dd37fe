// Milestones: which tasks, how far, and exactly why one cannot close.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { accessible, screenshot, World } from "./support.mjs";

let world;
let page;
let done;
let open;

before(async () => {
  world = await World.start();
  world.run("worker", "add", "@builder", "--kind", "agent");
  world.run("workstation", "add", "ws-1");
  done = world.add("Mend the <posts>", "--sprint", "12");
  open = world.add("Paint it", "--sprint", "12");
  world.add("Something else");
  world.run("milestone", "add", "sprint-12", "--sprint", "12", "--title", "The fence stands");
  world.as = "@builder";
  world.run("claim", done, "--workstation", "ws-1");
  world.run("complete", done, "--resolution", "mended");
  world.as = undefined;
  page = await world.signedIn();
});
after(() => world.end());

const row = (id) => page.locator(`#member-${id}`);

test("a milestone shows its tasks and why it cannot close", async () => {
  await world.open(page, "/board");
  await page.getByRole("link", { name: "Milestones" }).click();
  await page.locator("#milestone-sprint-12").getByRole("link").click();
  await page.waitForURL(`${world.url}/milestones/sprint-12`);
  await world.live(page);
  assert.match(await page.locator("h1").innerText(), /sprint-12 The fence stands/);
  assert.match(await row(done).innerText(), /Mend the <posts>[\s\S]*complete[\s\S]*@builder[\s\S]*ws-1/);
  assert.match(await row(open).innerText(), /open/);
  assert.equal(await page.locator("tr[id^=member-]").count(), 2);
  const told = world.run("milestone", "show", "sprint-12").missing;
  const shown = await page.locator(".missing li").allTextContents();
  const codes = await page.locator("section[aria-labelledby=missing-title] details").allTextContents();
  assert.equal(shown.length, told.length);
  for (const { code, detail } of told) assert.ok(codes.some((words) => words.includes(code)) && shown.some((words) => words.includes(detail.replace(/^API-\d+ /, "").replace(/ on (external|person):/, " on "))), `${code}: ${detail}`);
  assert.match(await page.locator("#missing-title ~ h3", { hasText: "Not done yet" }).innerText(), /Not done yet 1/);
  assert.ok(told.some(({ code, task }) => code === "wrong_state" && task === open));
});

test("what is refused says what is missing, and the page changes by itself", async () => {
  await page.getByRole("button", { name: "Close" }).click();
  const dialog = page.locator("dialog");
  await dialog.locator("[type=submit]").click();
  await dialog.locator(".refusal strong").waitFor();
  assert.match(await dialog.locator(".refusal details").textContent(), /milestone_incomplete/);
  await page.keyboard.press("Escape");
  world.run("drop", open, "--reason", "nobody wants it");
  await row(open).getByText("dropped").waitFor();
});

test("a closed milestone says by whom, and that the record still has it", async () => {
  const task = world.add("Checked", "--tag", "proven", "--check", "test -d .git");
  world.run("claim", task, "--workstation", "ws-1");
  world.run("check", task);
  world.run("complete", task, "--resolution", "it holds");
  world.run("milestone", "add", "proven", "--tag", "proven");
  world.run("milestone", "verify", "proven");
  await world.open(page, "/milestones/proven");
  await page.getByText("Nothing is missing: it may close.").waitFor();
  await page.getByRole("button", { name: "Close" }).click();
  await page.locator("dialog [type=submit]").click();
  await page.getByText("the record still has it").waitFor();
  assert.match(await page.locator(".among").innerText(), /closed by @ann/);
  // The page hears of the change before the dialog has its answer.
  await page.getByRole("button", { name: "Close" }).waitFor({ state: "hidden" });
  await world.open(page, `/tasks/${task}`);
  await page.locator(".facts").getByRole("link", { name: "proven" }).click();
  await page.waitForURL(`${world.url}/milestones/proven`);
});

test("a person adds one here", async () => {
  await world.open(page, "/milestones");
  await page.getByRole("button", { name: "Add" }).click();
  const dialog = page.locator("dialog");
  await dialog.getByLabel(/Name/).fill("by-name");
  await dialog.getByLabel(/Tasks, one on each line/).fill(`${done}\n${open}`);
  await dialog.locator("[type=submit]").click();
  await page.locator("#milestone-by-name").getByText("2 by name").waitFor();
  assert.equal(world.run("milestone", "show", "by-name").tasks.length, 2);
});

test("milestones are accessible, also on a phone", async () => {
  for (const path of ["/milestones", "/milestones/sprint-12"]) {
    await page.setViewportSize({ width: 1280, height: 800 });
    await world.open(page, path);
    await accessible(page);
    await page.setViewportSize({ width: 390, height: 844 });
    await accessible(page);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing sticks out");
  }
});
