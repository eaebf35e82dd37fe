// Review in the browser: what an agent prints, what it asks, what its work changes, and what two people make of it. Output, file
// names and files are an agent's words: hostile.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { World, accessible, onus, screenshot } from "./support.mjs";

const MARKUP = "<img src=x onerror=window.hit=1>";
const TERMINAL = "\u001b]0;owned\u0007\u001b[2J\u001b[31mred\u001b[0m";
/// File names that git allows; a slash would be a directory.
const NAMES = ["<script>window.hit=1<!--.txt", "\"><svg onload=window.hit=1>.txt", "esc\u001b[31m.txt", "bidi\u202etxt.exe"];

/// Beside the two hundred: the hostile names, and one with source in it.
const FEW = NAMES.length + 1;

let world;
let page;
let task;
let tree;
let lease;

before(async () => {
  world = await World.start();
  world.run("worker", "add", "@bot", "--kind", "agent");
  world.run("worker", "add", "@mia", "--kind", "human");
  tree = world.run("workstation", "add", "ws-1", "--kind", "worktree").workstation.path;
  task = world.add("Two hundred files");
  lease = by("@bot", "claim", task, "--workstation", "ws-1").lease.token;
  const files = Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`many/${String(n).padStart(3, "0")}.txt`, `first of ${n}\nsecond of ${n}\n`]));
  files["paint.rs"] = `/* ${MARKUP}\n ${MARKUP} */ fn paint(a: &str) -> u32 { "${MARKUP}"; 42 } // ${MARKUP}\n`;
  for (const name of NAMES) files[name] = `${MARKUP}\n${TERMINAL}\n`;
  commit(files);
  page = await world.signedIn({ viewport: { width: 1440, height: 900 } });
});
after(() => world.end());

function by(handle, ...args) {
  world.as = handle;
  try {
    return world.run(...args);
  } finally {
    world.as = undefined;
  }
}

function commit(files) {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(tree, path)), { recursive: true });
    writeFileSync(join(tree, path), content);
  }
  const env = { ...process.env, ONUS_AS: "@bot", ONUS_LEASE: lease };
  for (const args of [["add", "-A"], ["commit", "-q", "-m", "work"]]) execFileSync("git", args, { cwd: tree, env, stdio: "pipe" });
}

/// Whoever looks is signed in to a browser of their own.
async function reviewer(handle) {
  const other = await (await world.browser()).newPage();
  await other.goto(by(handle, "worker", "token", "link", handle, "--server", world.url).url);
  await other.waitForURL(`${world.url}/*`, { waitUntil: "domcontentloaded" });
  await world.live(other);
  return other;
}

/// Nothing that somebody wrote became markup or drives a terminal.
async function harmless(of) {
  const found = await of.evaluate(() => ({
    hit: window.hit,
    made: document.querySelectorAll("#main script, #main img, #main iframe, #main [onerror], #main [onload]").length,
    control: /[\u0000-\u0008\u000b-\u001f\u007f\u202a-\u202e\u2066-\u2069]/.test(document.getElementById("main").textContent),
  }));
  assert.deepEqual(found, { hit: undefined, made: 0, control: false });
}

const line = (path, number) => page.locator(`table[data-path="${path}"] [data-line="${number}"]`);
const diff = () => `/tasks/${task}/diff`;

test("two hundred files and four hostile names are shown, and harmless", async () => {
  await world.open(page, diff());
  assert.equal(await page.locator("details.file").count(), 200 + FEW);
  assert.match(await page.innerText(".diff .about"), /205 files \+410/);
  await harmless(page);
  assert.equal(await page.locator("td.code", { hasText: MARKUP }).count(), NAMES.length + 2);
  assert.ok((await page.locator("details.file summary").allInnerTexts()).some((name) => name.includes("<script>window.hit=1<!--.txt")));
  await accessible(page);
  await screenshot(page, "diff");
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0);
});

test("what is source is in colours, and they are only ever colours", async () => {
  const file = page.locator("table[data-path='paint.rs']");
  const parts = (hue) => file.locator(`.${hue}`).allTextContents();
  assert.deepEqual(await parts("hw"), ["fn"]);
  assert.deepEqual(await parts("hn"), ["42"]);
  assert.deepEqual(await parts("ht"), [`"${MARKUP}"`]);
  assert.deepEqual(await parts("hc"), [`/* ${MARKUP}`, ` ${MARKUP} */`, `// ${MARKUP}`]);
  const colour = (hue) => file.locator(`.${hue}`).first().evaluate((part) => getComputedStyle(part).color);
  assert.equal(new Set(await Promise.all(["hw", "hn", "ht", "hc"].map(colour))).size, 4);
  assert.equal(await page.locator("table[data-path='many/007.txt'] span").count(), 0);
  await harmless(page);
});

test("a comment on a line stands under it, for another reviewer without a reload, and reaches the holder", async () => {
  const mia = await reviewer("@mia");
  await world.open(mia, diff());
  await world.open(page, diff());
  await line("many/007.txt", 2).click();
  await page.keyboard.type(`Why **two**? ${MARKUP}`);
  await page.locator("dialog [type=submit]").click();
  for (const of of [page, mia]) {
    const row = of.locator("table[data-path='many/007.txt'] tr:has([data-line='2']) + tr.comment");
    await row.getByText("Why **two**?").waitFor();
    assert.match(await row.innerText(), /@ann/);
    await harmless(of);
  }
  const { comments } = world.run("diff", task);
  assert.deepEqual([comments[0].path, comments[0].line, comments[0].outdated], ["many/007.txt", 2, false]);
  assert.match(JSON.stringify(by("@bot", "show", task).notes), /many\/007\.txt:2/);
  await mia.context().close();
});

test("an empty comment and a verdict without words are not sent", async () => {
  await world.open(page, diff());
  await line("many/008.txt", 1).click();
  await page.locator("dialog [type=submit]").click();
  assert.ok(await page.locator("dialog textarea:invalid").isVisible());
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Send back" }).click();
  await page.locator("dialog [type=submit]").click();
  assert.ok(await page.locator("dialog textarea:invalid").isVisible());
  await page.keyboard.press("Escape");
  assert.equal(world.run("diff", task).comments.length, 1);
  assert.equal(world.run("show", task).reviews?.length ?? 0, 0);
});

test("two reviewers at once: one sends back, one approves, both are on record with the commit they saw", async () => {
  const mia = await reviewer("@mia");
  await world.open(mia, diff());
  await world.open(page, diff());
  const head = await page.locator("article.diff").getAttribute("data-head");
  await mia.getByRole("button", { name: "Approve" }).click();
  await page.getByRole("button", { name: "Send back" }).click();
  await page.keyboard.type("The second line is one too many");
  await Promise.all([mia, page].map((of) => of.locator("dialog [type=submit]").click()));
  await page.locator("#said", { hasText: `${task} is sent back` }).waitFor();
  await mia.locator("#said", { hasText: `${task} is approved` }).waitFor();
  const reviews = world.run("show", task).reviews.map(({ by, verdict, commit }) => [by, verdict, commit]).toSorted();
  assert.deepEqual(reviews, [["@ann", "rejected", head], ["@mia", "approved", head]]);
  await mia.context().close();
});

test("after the next round the comment is outdated, and what landed is still shown", async () => {
  commit({ "many/007.txt": "first of 7\n" });
  await world.open(page, diff());
  await page.locator("section[aria-labelledby=h-outdated]", { hasText: "many/007.txt:2" }).waitFor();
  assert.equal(await page.locator("tr.comment").count(), 0);
});

test("whoever does not hold the task cannot land it: the refusal is in the dialog, and nothing moves", async () => {
  await world.open(page, diff());
  const main = execFileSync("git", ["rev-parse", "main"], { cwd: world.directory, encoding: "utf8" });
  await page.getByRole("button", { name: "Land" }).click();
  await page.getByLabel("What was done").fill("landed by a stranger");
  await page.locator("dialog [type=submit]").click();
  await page.locator("dialog .refusal strong").waitFor();
  assert.equal(world.run("show", task).task.state, "in_progress");
  assert.equal(execFileSync("git", ["rev-parse", "main"], { cwd: world.directory, encoding: "utf8" }), main);
  await page.keyboard.press("Escape");
});

test("approved after all and landed by its holder: every page says so by itself", async () => {
  await world.open(page, diff());
  await page.getByRole("button", { name: "Approve" }).click();
  await page.locator("dialog [type=submit]").click();
  await page.locator("#said", { hasText: `${task} is approved` }).waitFor();
  const env = { ...process.env, ONUS_AS: "@bot", ONUS_LEASE: lease };
  execFileSync(onus, ["complete", task, "--resolution", "one line less"], { cwd: tree, env, stdio: "pipe" });
  await page.locator("article.diff .state.complete").waitFor();
  await world.open(page, diff());
  assert.equal(await page.locator("details.file").count(), 200 + FEW);
});

test("Land lands: the main branch holds the commit, and its checks were run", async () => {
  const id = world.add("Land it from here", "--check", "test -f landed.txt");
  const place = world.run("workstation", "add", "ws-6", "--kind", "worktree").workstation.path;
  await world.open(page, `/tasks/${id}`);
  await page.locator("#act-claim").click();
  await page.getByLabel("Where you will work").fill("ws-6");
  await page.locator("dialog [type=submit]").click();
  await page.locator("#said", { hasText: `${id} is yours` }).waitFor();
  writeFileSync(join(place, "landed.txt"), "one\n");
  const env = { ...process.env, ONUS_AS: "@ann", ONUS_LEASE: await page.evaluate((key) => localStorage.getItem(key), `onus.lease.${id}`) };
  for (const args of [["add", "-A"], ["commit", "-q", "-m", "landed"]]) execFileSync("git", args, { cwd: place, env, stdio: "pipe" });
  await world.open(page, `/tasks/${id}/diff`);
  await page.getByRole("button", { name: "Land", exact: true }).click();
  await page.getByLabel("What was done").fill("from the browser");
  await page.locator("dialog [type=submit]").click();
  await page.locator("#said", { hasText: `${id} is complete` }).waitFor();
  await page.locator("article.diff .state.complete").waitFor();
  assert.equal(execFileSync("git", ["show", "main:landed.txt"], { cwd: world.directory, encoding: "utf8" }), "one\n");
  assert.equal(world.run("show", id).landed.commits.length, 1);
  assert.equal(world.run("check", id, "--list").checks[0].run.exit_code, 0);
});

test("a line is seen when an agent prints it, without what drives a terminal", async () => {
  const id = world.add("Print slowly");
  world.run("workstation", "add", "ws-2", "--kind", "worktree");
  await world.open(page, `/tasks/${id}`);
  const go = join(world.directory, "go");
  // What a coding client tells of itself comes as a step, and is as harmless.
  const step = JSON.stringify({ type: "assistant", session_id: "s", message: { id: "m", content: [{ type: "tool_use", name: "Bash", input: { command: MARKUP } }] } });
  const script = `printf '%s\\n' "$HOSTILE"; echo first; while ! [ -e "$GO" ]; do sleep 0.1; done; printf '%s\\n' "$STEP"; echo second; exit 1`;
  const env = { ...process.env, ONUS_AS: "@bot", HOSTILE: `${MARKUP}${TERMINAL}`, GO: go, STEP: step };
  const run = spawn(onus, ["run", id, "--workstation", "ws-2", "--", "sh", "-c", script], { cwd: world.directory, env, stdio: "ignore" });
  const ended = new Promise((resolve) => run.once("exit", resolve));
  const box = page.locator("pre[data-output]");
  await box.getByText("first").waitFor();
  assert.ok((await box.innerText()).includes(MARKUP));
  await harmless(page);
  assert.doesNotMatch(await box.innerText(), /second/);
  writeFileSync(go, "");
  await box.getByText("second").waitFor();
  assert.equal(await box.locator(".step.called").innerText(), `Bash ${MARKUP}`);
  await ended;
  await harmless(page);
});

test("how soon a printed line is seen", async () => {
  const LINES = 20;
  const id = world.add("Print the time");
  world.run("workstation", "add", "ws-5", "--kind", "worktree");
  await world.open(page, `/tasks/${id}`);
  // Both clocks are this machine's: the line says when it was printed, the page when it came.
  await page.evaluate(() => {
    window.came = new Map();
    new MutationObserver(() => {
      const box = document.querySelector("pre[data-output]");
      for (const [line] of box?.textContent.matchAll(/\bprinted (\d{13})\n/g) ?? []) if (!window.came.has(line)) window.came.set(line, Date.now());
    }).observe(document.getElementById("main"), { childList: true, subtree: true, characterData: true });
  });
  const script = `for n in $(seq ${LINES}); do echo "printed $(date +%s%3N)"; sleep 0.15; done; exit 1`;
  const run = spawn(onus, ["run", id, "--workstation", "ws-5", "--", "sh", "-c", script], { cwd: world.directory, env: { ...process.env, ONUS_AS: "@bot" }, stdio: "ignore" });
  await new Promise((resolve) => run.once("exit", resolve));
  await page.waitForFunction((lines) => window.came.size >= lines, LINES);
  const waits = await page.evaluate(() => [...window.came].map(([line, at]) => at - Number(line.match(/\d+/)[0])));
  const sorted = waits.toSorted((a, b) => a - b);
  console.log(`a printed line is seen after ${sorted[LINES / 2]} ms (median of ${LINES}, worst ${sorted.at(-1)} ms)`);
});

test("a question to a person waits in the inbox, and its answer lets the work go on", async () => {
  const id = world.add("Ask the person");
  world.run("workstation", "add", "ws-3");
  const token = by("@bot", "claim", id, "--workstation", "ws-3").lease.token;
  await world.open(page, "/inbox");
  by("@bot", "block", id, "--lease", token, "--on", "person:@ann", "--note", `Blue or green? ${MARKUP}`);
  const item = page.locator("[data-kind=question]", { hasText: id });
  await item.getByText("Blue or green?").waitFor();
  await harmless(page);
  await accessible(page);
  await item.getByRole("button", { name: "Answer" }).click();
  await page.keyboard.type("Green");
  await page.locator("dialog [type=submit]").click();
  await item.waitFor({ state: "detached" });
  assert.equal(world.run("show", id).task.state, "in_progress");
  assert.match(JSON.stringify(by("@bot", "show", id).notes), /Green/);
});

test("whatever waits in the inbox has a name, and a button that says what it does", async () => {
  world.run("workstation", "add", "ws-broken");
  world.run("workstation", "quarantine", "ws-broken", "--reason", "its disk is failing");
  await world.open(page, "/inbox");
  const item = page.locator("[data-kind=workstation]", { hasText: "ws-broken: its disk is failing" });
  await item.getByRole("button", { name: "Restore" }).click();
  await item.waitFor({ state: "detached" });
  assert.equal(world.run("workstation", "show", "ws-broken").workstations[0].state, "ready");
});

test("a review from the first key to the last, without a mouse", async () => {
  const id = world.add("By keyboard alone");
  tree = world.run("workstation", "add", "ws-4", "--kind", "worktree").workstation.path;
  lease = by("@bot", "claim", id, "--workstation", "ws-4").lease.token;
  commit({ "keys.txt": "one\ntwo\n" });
  await world.open(page, `/tasks/${id}/diff`);
  const reach = async (name) => {
    for (let n = 0; n < 80; n++) {
      const at = await page.evaluate(() => document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent.trim());
      if (at === name) return;
      await page.keyboard.press("Tab");
    }
    assert.fail(`${name} is not reached`);
  };
  await reach("Comment on line 2 of keys.txt");
  await page.keyboard.press("Enter");
  await page.keyboard.type("three, please");
  await reach("Comment");
  await page.keyboard.press("Enter");
  await page.locator("tr.comment", { hasText: "three, please" }).waitFor();
  await page.locator("body").evaluate(() => document.activeElement.blur());
  await reach("Approve");
  await page.keyboard.press("Enter");
  await page.keyboard.type("good as it is");
  await reach("Approve");
  await page.keyboard.press("Enter");
  await page.locator("#said", { hasText: `${id} is approved` }).waitFor();
  assert.deepEqual(world.run("show", id).reviews.map(({ by, verdict }) => [by, verdict]), [["@ann", "approved"]]);
});
