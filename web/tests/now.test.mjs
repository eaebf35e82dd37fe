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
  await world.open(page, "/now");
});
after(() => world.end());

const panel = (name) => page.getByRole("region", { name, exact: true });

test("what needs a person, what is stuck and what was completed is there", async () => {
  const wants = await panel("Needs a person").innerText();
  assert.match(wants, new RegExp(`Approve a check[\\s\\S]*${story.proposed}[\\s\\S]*npm test`));
  assert.match(wants, new RegExp(`Answer[\\s\\S]*${story.blocked}`));
  assert.match(wants, /Restore a workstation[\s\S]*ws-old[\s\S]*its disk is failing/);
  const stuck = await panel("Stuck").innerText();
  assert.match(stuck, new RegExp(`${story.blocked}[\\s\\S]*waits for @ann`));
  assert.match(stuck, new RegExp(`${story.unroutable}[\\s\\S]*no rule of the map routes`));
  const completed = await panel("Completed").innerText();
  for (const id of [...story.done, story.forced]) assert.match(completed, new RegExp(id));
  assert.match(completed, /by force/);
});

test("how long work takes has a chart for each day, and whoever is at work its age", async () => {
  for (const name of ["From claim to end", "From ask to end"]) {
    await panel(name).getByRole("img", { name: new RegExp(`^${name}: median of 3 tasks`) }).waitFor();
  }
  assert.match(await panel("At work").innerText(), new RegExp(`${story.held}[\\s\\S]*ws-frontend\\s+\\d+ (s|min)`));
});

test("the page is accessible in both themes, and has a picture", async () => {
  await accessible(page);
  await page.keyboard.press("t");
  await accessible(page);
  await page.keyboard.press("t");
});

test("a press of a button approves a check, and the page says so by itself", async () => {
  await page.getByRole("button", { name: `Approve a check: ${story.proposed}` }).click();
  await page.getByRole("button", { name: `Approve a check: ${story.proposed}` }).waitFor({ state: "detached" });
  assert.equal(world.run("show", story.proposed).task.checks[0].state, "approved");
});

test("what others do shows without a reload", async () => {
  await page.evaluate(() => (window.mark = "the same page"));
  world.run("workstation", "restore", "ws-old");
  await page.getByText("its disk is failing").waitFor({ state: "detached" });
  assert.equal(await page.evaluate(() => window.mark), "the same page");
});

test("g and a letter lead from page to page", async () => {
  await page.keyboard.press("g");
  await page.keyboard.press("a");
  await page.waitForURL(`${world.url}/audit`);
  await world.live(page);
  await page.keyboard.press("g");
  await page.keyboard.press("n");
  await page.waitForURL(`${world.url}/now`);
});
