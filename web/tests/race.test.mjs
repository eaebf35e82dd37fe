// What happens to several at once, over time, and while the server is away.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { World } from "./support.mjs";

let world;
before(async () => {
  world = await World.start();
  for (const name of ["tree-a", "tree-b", "tree-c"]) world.run("workstation", "add", name);
});
after(() => world.end());

async function claimForm(page, id, place) {
  await page.locator(`#card-${id} [data-do=menu]`).click();
  await page.getByRole("button", { name: /^Claim →/ }).click();
  await page.getByLabel("Where you will work").fill(place);
}

test("two browsers race for one task: one wins, the other is told why in place", async () => {
  const id = world.add("Only one can have it");
  const [one, two] = [await world.signedIn(), await world.signedIn()];
  for (const page of [one, two]) await page.locator(`#card-${id}`).waitFor();
  await claimForm(one, id, "tree-a");
  await claimForm(two, id, "tree-b");
  await Promise.all([one, two].map((page) => page.locator("dialog [type=submit]").click()));
  const outcome = async (page) => {
    await page.waitForFunction(() => !document.getElementById("dialog").open || !document.querySelector("dialog .refusal").hidden);
    return page.evaluate(() => (document.getElementById("dialog").open ? document.querySelector("dialog .refusal").textContent : "won"));
  };
  const outcomes = [await outcome(one), await outcome(two)];
  assert.equal(outcomes.filter((said) => said === "won").length, 1, outcomes.join("\n"));
  assert.match(outcomes.find((said) => said !== "won"), /lease_held/);
  for (const page of [one, two]) await page.locator(`.cell[data-state=in_progress] #card-${id}`).waitFor({ state: "attached" });
});

test("a lease runs out before the viewer's eyes", async () => {
  const id = world.add("Short breath");
  const page = await world.signedIn();
  world.run("claim", id, "--workstation", "tree-c", "--ttl", "4s");
  const lease = page.locator(`#card-${id} .lease`);
  await lease.waitFor();
  const first = await lease.locator(".left").getAttribute("stroke-dasharray");
  await page.locator(`#card-${id} .lease.late`).waitFor();
  assert.notEqual(await lease.locator(".left").getAttribute("stroke-dasharray"), first);
  assert.match(await lease.innerText(), /expired/);
});

test("a server that comes back is met without a reload, and nothing is missed", async () => {
  const page = await world.signedIn();
  await page.evaluate(() => (window.same = true));
  await page.locator(".filters [type=search]").focus();
  await world.stop();
  await page.waitForSelector("#live[data-state=reconnecting]");
  const id = world.add("While nobody listened");
  await world.serve();
  await world.live(page);
  await page.locator(`#card-${id}`).waitFor();
  assert.ok(await page.evaluate(() => window.same), "the page was not loaded again");
  assert.equal(await page.evaluate(() => document.activeElement.name), "q");
});

test("several tabs share one ear", async () => {
  const page = await world.signedIn();
  const more = [];
  for (let n = 0; n < 7; n++) {
    more.push(await page.context().newPage());
    await more[n].goto(`${world.url}/board`);
  }
  const id = world.add("Heard by all");
  // A page that nobody looks at is shown anew when somebody does.
  for (const tab of [page, ...more]) {
    await tab.bringToFront();
    await tab.locator(`#card-${id}`).waitFor();
  }
});

test("200 ms away it still works", async () => {
  const page = await world.signedIn();
  const wire = await page.context().newCDPSession(page);
  await wire.send("Network.enable");
  await wire.send("Network.emulateNetworkConditions", { offline: false, latency: 200, downloadThroughput: -1, uploadThroughput: -1 });
  await world.open(page, "/board");
  const id = world.add("From afar");
  await page.locator(`#card-${id}`).waitFor();
  await page.locator(`#card-${id} [data-do=menu]`).click();
  await page.getByRole("button", { name: /^Drop/ }).click();
  await page.getByLabel("Why?").fill("too far");
  await page.locator("dialog [type=submit]").click();
  await page.locator(`.cell[data-state=dropped] #card-${id}`).waitFor();
});

test("who is signed out sees nothing and is let in again where they wanted to go", async () => {
  const page = await world.signedIn();
  await world.open(page, "/board?q=one");
  await page.locator("#account summary").click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL(/\/signin/);
  await page.goto(`${world.url}/board?q=one&lanes=role`);
  await page.waitForURL(/\/signin\?then=/);
  await page.locator("[name=token]").fill(world.token("@ann"));
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL(`${world.url}/board?q=one&lanes=role`);
  await page.locator("[name=q]").waitFor();
});

test("onus board opens the same store for its owner, beside a server", async () => {
  const page = await world.signedIn();
  const board = await world.ownBoard();
  const other = await page.context().newPage();
  await other.goto(board.link);
  await other.waitForSelector("#board");
  await world.live(other);
  // Two servers on one machine: signing in to one does not sign out of the other.
  assert.equal((await page.context().cookies()).length, 2);
  const id = world.add("Seen by both");
  await other.locator(`#card-${id}`).waitFor();
  await page.bringToFront();
  await page.locator(`#card-${id}`).waitFor();
  assert.equal(await board.end(), 0);
});
