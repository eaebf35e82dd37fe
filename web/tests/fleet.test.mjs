import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { World, accessible } from "./support.mjs";

const MAP = `routing:
  - task_type: backend
    candidates:
      - agent_name: "@builder-01"
        workstation: ws-backend-01
      - agent_name: "@builder-02"
        workstation: ws-backend-02
  - task_type: review
    agent_name: "@checker"
    workstation: ws-review
roles:
  backend:
    lanes: 2
    max_in_progress: 1
    owns: ["src/**"]
`;

let world;
let page;

before(async () => {
  world = await World.start();
  for (const [handle, tier] of [["@builder-01", "opus"], ["@builder-02", "sonnet"], ["@checker", "opus"]]) {
    world.run("worker", "add", handle, "--kind", "agent", "--tier", tier, "--role", "backend");
  }
  for (const name of ["ws-backend-01", "ws-backend-02", "ws-review"]) world.run("workstation", "add", name);
  const git = (...args) => execFileSync("git", args, { cwd: world.directory, stdio: "ignore" });
  writeFileSync(join(world.directory, "executor-identity-map.yaml"), MAP);
  git("add", "executor-identity-map.yaml");
  git("commit", "-q", "-m", "Send backend work to the builders");
  page = await world.signedIn();
  await world.open(page, "/fleet");
});
after(() => world.end());

const place = (name) => page.locator(`#place-${name}`);

test("who holds what, where, shows by itself", async () => {
  const id = world.add("Mend <b>the</b> fence", "--type", "backend", "--role", "backend", "--lane", "1");
  world.as = "@builder-01";
  world.run("claim", id, "--workstation", "ws-backend-01");
  world.as = undefined;
  const row = page.locator(`[id="worker-@builder-01"]`);
  await row.getByText(id).waitFor();
  assert.match(await row.innerText(), /Mend <b>the<\/b> fence[\s\S]*ws-backend-01/);
  assert.match(await place("ws-backend-01").innerText(), /@builder-01/);
  assert.match(await page.locator("section[aria-labelledby=lanes-title]").innerText(), /1 of 1[\s\S]*@builder-01/);
});

test("how long an agent is at it, and what it has used so far, is there", async () => {
  const row = page.locator(`[id="worker-@builder-01"]`);
  assert.match(await row.innerText(), /since [\s\S]*0 tokens/);
  const id = (await row.locator(".id").innerText()).trim();
  world.as = "@builder-01";
  world.run("session", "usage", id, "--input-tokens", "1200", "--cost", "0.42");
  world.as = undefined;
  await row.getByText(/1,?200 tokens, 0\.42/).waitFor();
});

test("a person quarantines a workstation and brings it back", async () => {
  await place("ws-review").getByRole("button", { name: "Quarantine" }).click();
  const dialog = page.locator("dialog");
  await dialog.getByRole("button", { name: "Quarantine" }).click();
  await dialog.locator(".refusal strong").waitFor();
  assert.match(await dialog.locator(".refusal").innerText(), /Fill in: Why/);
  await dialog.getByLabel(/Why/).fill("its disk is full");
  await dialog.getByRole("button", { name: "Quarantine" }).click();
  await page.locator("#place-ws-review.quarantined").waitFor();
  assert.match(await place("ws-review").innerText(), /its disk is full/);
  await place("ws-review").locator("summary").click();
  await place("ws-review").getByText("quarantined: its disk is full").waitFor();
  await place("ws-review").getByRole("button", { name: "Restore" }).click();
  await dialog.getByRole("button", { name: "Restore" }).click();
  await page.locator("#place-ws-review.ready").waitFor();
  assert.equal(await place("ws-review").locator(".band rect").last().getAttribute("class"), "ready");
  assert.equal(world.run("workstation", "show", "ws-review").workstations[0].state, "ready");
});

test("a worker is registered, paused and resumed", async () => {
  await page.locator("section[aria-labelledby=workers-title]").getByRole("button", { name: "Register" }).click();
  const dialog = page.locator("dialog");
  await dialog.getByLabel(/Handle/).fill("@newcomer");
  await dialog.getByRole("button", { name: "Register a worker" }).click();
  const row = page.locator(`[id="worker-@newcomer"]`);
  await row.waitFor();
  await row.getByRole("button", { name: "Pause" }).click();
  await dialog.getByLabel(/Why/).fill("not yet");
  await dialog.getByRole("button", { name: "Pause" }).click();
  await row.getByText("paused").waitFor();
  await row.getByRole("button", { name: "Resume" }).click();
  await dialog.getByRole("button", { name: "Resume" }).click();
  await row.getByRole("button", { name: "Pause" }).waitFor();
});

test("the map is drawn, with its history", async () => {
  const map = page.locator("section[aria-labelledby=map-title]");
  const words = await map.locator("svg").innerHTML();
  for (const name of ["backend", "@builder-01", "ws-backend-02", "@checker"]) assert.ok(words.includes(name), name);
  await map.locator("summary").click();
  await map.getByText("Send backend work to the builders").first().waitFor();
});

test("the fleet is accessible, also on a phone", async () => {
  await accessible(page);
  await page.setViewportSize({ width: 390, height: 844 });
  await accessible(page);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing sticks out");
});

test("an agent is offered no administration", async () => {
  const agent = await (await world.browser()).newPage();
  await agent.goto(`${world.url}/signin`);
  await agent.getByLabel(/token/i).fill(world.token("@builder-02"));
  await agent.getByRole("button", { name: /sign in/i }).click();
  await world.live(agent);
  await world.open(agent, "/fleet");
  assert.equal(await agent.getByRole("button", { name: /Quarantine|Register|Pause/ }).count(), 0);
});
