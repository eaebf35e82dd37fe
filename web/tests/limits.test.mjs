import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { after, before, test } from "node:test";
import { World, accessible, onus } from "./support.mjs";

const LIMITS = "limits: { task: { tokens: 1000 }, worker_day: { cost: 5 }, workspace_day: { time: 8h } }\n";

let world;
let page;
let task;

before(async () => {
  world = await World.start(LIMITS);
  world.run("worker", "add", "@bot", "--kind", "agent");
  world.run("workstation", "add", "ws-bot", "--kind", "logical");
  task = world.add("Say hello");
  const used = { input_tokens: 1200, output_tokens: 0 };
  const line = JSON.stringify({ type: "assistant", session_id: "s", message: { id: "m1", model: "x", usage: used } });
  const words = ["run", "--as", "@bot", "--workstation", "ws-bot", task, "--", "sh", "-c", `echo '${line}'; exec sleep 1000`];
  const ended = spawnSync(onus, words, { cwd: world.directory, encoding: "utf8" });
  assert.equal(ended.status, 5, ended.stderr);
  page = await world.signedIn();
});
after(() => world.end());

test("what is used of the limits is on Effort, on Fleet and with the task", async () => {
  await world.open(page, "/effort");
  const effort = await page.getByRole("group", { name: "Limits" }).innerText();
  assert.match(effort, /all agents today\s+time[\s\S]*of 8h/);
  assert.match(effort, /@bot today\s+cost\s+at least 0\.00 of 5\.00 USD/);
  await accessible(page);
  await world.open(page, "/fleet");
  assert.match(await page.locator(`[id="worker-@bot"]`).innerText(), /of 5\.00 USD/);
  await world.open(page, `/tasks/${task}`);
  assert.match(await page.getByRole("group", { name: "Limits" }).innerText(), /1200 of 1000 tokens\s+reached/);
  await accessible(page);
});

test("a person lets a stopped task go on", async () => {
  await world.open(page, "/inbox");
  assert.match(await page.locator("main").innerText(), /1200 of 1000 tokens/);
  await world.open(page, "/now");
  await page.getByText("Let it go on").first().waitFor();
  assert.match(await page.locator("main").innerText(), /API-1 has used 1200 of 1000 tokens/);
  await page.getByRole("button", { name: "Let it go on" }).click();
  await page.locator("dialog [type=submit]").click();
  await page.getByRole("button", { name: "Let it go on" }).waitFor({ state: "detached" });
  const { ledger } = world.run("show", task);
  assert.ok(ledger.some(({ verb, actor }) => verb === "limits_lifted" && actor === "@ann"));
  await world.open(page, `/tasks/${task}`);
  assert.match(await page.getByRole("group", { name: "Limits" }).innerText(), /0 of 1000 tokens/);
});
