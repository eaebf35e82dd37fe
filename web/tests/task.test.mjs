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

test("the whole story is on one page", async () => {
  const first = world.add("Lay the ground", "--priority", "P1");
  const body = "Make it **fast**.\n\n- one\n- two\n\n`cargo bench`";
  const id = world.add("Build the house", "--depends-on", first, "--origin", "web:https://example.org/asks/7", "--body", body,
    "--check", "git rev-parse HEAD", "--scope", "src/**", "--tag", "house", "--sprint", "s1");
  world.add("Move in", "--depends-on", id);
  const { lease } = world.run("claim", first, "--workstation", "tree-a");
  world.run("complete", first, "--lease", lease.token, "--resolution", "It is flat now");
  const held = world.run("claim", id, "--workstation", "tree-a").lease.token;
  world.run("note", id, "Walls are **up**", "--lease", held);
  world.run("check", id, "--lease", held);
  await world.open(page, `/tasks/${id}`);
  const text = await page.innerText("#main");
  for (const words of ["Build the house", "Make it fast", "Walls are up", "in progress", "held by", "tree-a", "git rev-parse",
    "passed", "entries verified", "untrusted words"]) assert.ok(text.includes(words), words);
  assert.match(text, /holds it: the lease runs out in \d/);
  assert.equal(await page.locator("#h-output").isVisible(), false, "nothing was printed");
  assert.equal(await page.locator("a[href='https://example.org/asks/7']").getAttribute("rel"), "noopener nofollow noreferrer");
  assert.equal(await page.locator(".graph rect").count(), 3);
  assert.equal(await page.locator(".words-of strong").first().innerText(), "fast");
  await page.locator("#whynot > summary").click();
  assert.match(await page.locator(".whynot").textContent(), /Claim[\s\S]*lease_held/);
  assert.doesNotMatch(await page.innerText(".whynot"), /lease_held/);
  await accessible(page);
});

test("what the viewer may do is offered, and what is folded out stays so", async () => {
  const id = world.add("Paint the door");
  await world.open(page, `/tasks/${id}`);
  await page.locator("#whynot > summary").click();
  await page.locator("#act-claim").click();
  await page.getByLabel("Where you will work").fill("tree-b");
  await page.locator("dialog [type=submit]").click();
  await page.locator("#act-release").waitFor();
  assert.ok(await page.locator("#whynot[open]").isVisible());
  await page.locator("#act-note").click();
  await page.getByLabel("Note (Markdown)").fill("first coat");
  await page.locator("dialog [type=submit]").click();
  await page.getByText("first coat").waitFor();
  assert.match(await page.innerText(".note"), /progress/);
  await page.locator("#act-complete").click();
  await page.getByLabel("What was done").fill("painted");
  await page.locator("dialog [type=submit]").click();
  await page.locator("#act-reopen").waitFor();
  assert.match(await page.innerText("#main header"), /complete/);
});

test("a place that is filled in late is replaced by what is typed", async () => {
  const id = world.add("Oil the hinge");
  let told;
  const isTold = new Promise((resolve) => (told = resolve));
  await page.route("**/takers?**", async (route) => (await isTold, route.continue()));
  await world.open(page, `/tasks/${id}`);
  await page.locator("#act-claim").click();
  const where = page.getByLabel("Where you will work");
  await where.focus();
  told();
  await page.waitForFunction(() => document.querySelector("dialog [name=workstation]").value);
  await page.keyboard.insertText("elsewhere");
  assert.equal(await where.inputValue(), "elsewhere");
  await page.unroute("**/takers?**");
});

test("a task that is not there is said to be so", async () => {
  await world.open(page, "/tasks/API-999");
  assert.match(await page.locator("#main").textContent(), /unknown_task/);
});

test("a reviewer ticks acceptance criteria, and not the builder's own", async () => {
  const id = world.add("Hang the door", "--criterion", "it closes", "--criterion", "it is <b>green</b>");
  world.run("workstation", "add", "tree-c");
  const held = world.run("claim", id, "--as", "@builder", "--workstation", "tree-c").lease.token;
  await world.open(page, `/tasks/${id}`);
  await page.locator("#tick-1").click();
  await page.locator("#tick-1[data-withdrawn]").waitFor();
  assert.match(await page.innerText(".criteria li:first-child"), /met it closes/);
  assert.ok((await page.innerText(".criteria")).includes("it is <b>green</b>"));
  await page.locator("#tick-1").click();
  await page.locator("#tick-1:not([data-withdrawn])").waitFor();
  world.run("release", id, "--as", "@builder", "--lease", held);
  world.run("claim", id, "--workstation", "tree-b");
  await page.locator("#tick-2").click();
  await page.locator("dialog .refusal strong").waitFor();
  assert.equal(await page.locator("dialog .refusal code").textContent(), "self_review");
  await page.locator("dialog [data-do=close]").click();
});

test("a handoff is told by what was said, and its document is below", async () => {
  const id = world.add("Hang the lamp");
  world.run("workstation", "add", "tree-c");
  const lease = world.run("claim", id, "--workstation", "tree-c").lease.token;
  world.run("release", id, "--lease", lease, "--note", "The hook is in", "--next", "Wire it", "--risk", "The ceiling is old");
  await world.open(page, `/tasks/${id}`);
  const handed = page.getByRole("region", { name: /^Last handoff/ });
  const text = await handed.innerText();
  assert.match(text, /@ann gave it back, in tree-c[\s\S]*The hook is in[\s\S]*Next: Wire it[\s\S]*Risk: The ceiling is old/);
  assert.doesNotMatch(text, /epoch|Lane|none/);
  // What was said before it is not lost.
  const again = world.run("claim", id, "--workstation", "tree-c").lease.token;
  world.run("release", id, "--lease", again);
  await page.getByRole("region", { name: "Notes" }).getByText("Next: Wire it").waitFor();
  await handed.locator("summary").click();
  await handed.getByText("Handoff of").waitFor();
  await accessible(page);
});
