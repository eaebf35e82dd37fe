// Words of tasks come from anybody; pages load nothing from anywhere else; there is little to load.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { World, accessible } from "./support.mjs";

let world;
let page;
before(async () => {
  world = await World.start();
  for (const name of ["tree-a", "tree-b", "tree-c"]) world.run("workstation", "add", name);
  page = await world.signedIn();
});
after(() => world.end());

const PAYLOADS = [
  "<script>window.hit=1</script>",
  "\"><img src=x onerror=window.hit=1>",
  "'><svg onload=window.hit=1>",
  "</title><script>window.hit=1</script>",
  "[x](javascript:window.hit=1)",
  "<a href=\"javascript:window.hit=1\">x</a>",
  "![x](https://evil.example/p.png)",
  "{{constructor.constructor('window.hit=1')()}}",
];

test("no text of a task becomes markup", async () => {
  const ids = PAYLOADS.map((words) => {
    const id = world.add(words, "--body", `${words}\n\n${words}`, "--tag", words.replace(/\s/g, ""), "--sprint", words, "--kind", "chore");
    world.run("note", id, words);
    return id;
  });
  const token = world.run("claim", ids[0], "--workstation", "tree-a").lease.token;
  world.run("block", ids[0], "--lease", token, "--on", `external:${PAYLOADS[1]}`, "--note", PAYLOADS[0]);
  const second = world.run("claim", ids[1], "--workstation", "tree-b").lease.token;
  world.run("release", ids[1], "--lease", second, "--note", PAYLOADS[2]);
  world.run("drop", ids[2], "--reason", PAYLOADS[3]);
  world.run("worker", "add", "@odd", "--kind", "agent", "--tier", PAYLOADS[0]);
  world.run("worker", "pause", "@odd", "--reason", PAYLOADS[1]);
  world.run("workstation", "quarantine", "tree-b", "--reason", PAYLOADS[1]);
  const shown = world.add("Shown", "--check", `echo "${PAYLOADS[0]}"; echo '${PAYLOADS[5]}'; git rev-parse HEAD`, "--origin", "web:javascript:window.hit=1");
  const third = world.run("claim", shown, "--workstation", "tree-c").lease.token;
  world.run("check", shown, "--lease", third);
  world.run("complete", shown, "--lease", third, "--resolution", PAYLOADS[2]);
  ids.push(shown);
  const paths = ["/board", "/board?lanes=sprint", `/board?q=${encodeURIComponent(PAYLOADS[1])}`, `/board?sprint=${encodeURIComponent(PAYLOADS[0])}`,
    `/board?lanes=${encodeURIComponent(PAYLOADS[1])}`, ...ids.map((id) => `/tasks/${id}`), `/tasks/${encodeURIComponent(PAYLOADS[1])}`,
    "/now", "/fleet", "/effort", "/effort/day?worker=@ann", "/audit", `/audit?actor=${encodeURIComponent(PAYLOADS[1])}`, ...ids.map((id) => `/audit/${id}`)];
  for (const path of paths) {
    await world.open(page, path);
    const found = await page.evaluate(() => ({
      hit: window.hit,
      // Nothing that a payload could have made is there.
      made: document.querySelectorAll("#main script, #main img, #main iframe, #main [onerror], #main [onload], #main a[href^='javascript']").length,
      styled: document.querySelectorAll("[style]").length,
    }));
    assert.deepEqual(found, { hit: undefined, made: 0, styled: 0 }, path);
  }
  await world.open(page, "/board?lanes=sprint");
  await accessible(page);
});

// What a payload could have made, and what would turn the words around it or drive a terminal that copies them.
const looked = () => ({
  hit: window.hit,
  made: document.querySelectorAll("#main script, #main img, #main iframe, #main [onerror], #main [onload], #main a[href^='javascript']").length,
  styled: document.querySelectorAll("[style]").length,
});
const ODD = "\u001b[31m\u202e";

test("names of files and lines of a diff are text that drives nothing", async () => {
  const place = world.run("workstation", "add", "tree-d", "--kind", "worktree").workstation;
  world.run("worker", "add", "@bot", "--kind", "agent");
  const id = world.add("Odd names");
  world.run("claim", id, "--workstation", "tree-d", "--as", "@bot");
  const name = `${PAYLOADS[1].replace(/\//g, "")}${ODD}.txt`;
  writeFileSync(join(place.path, name), `${PAYLOADS[0]}\n${ODD}evil\n${["ghp_", "0123456789abcdefABCDEF0123"].join("")}\n`);
  const git = (...args) => execFileSync("git", args, { cwd: place.path, env: { ...process.env, ONUS_AS: "@bot" }, stdio: "pipe" });
  git("add", "--all");
  git("commit", "--quiet", "--message", `${PAYLOADS[3]} ${ODD}`);
  for (const path of [`/tasks/${id}/diff`, `/tasks/${id}`, "/fleet", "/now"]) {
    await world.open(page, path);
    assert.deepEqual(await page.evaluate(looked), { hit: undefined, made: 0, styled: 0 }, path);
    const text = await page.locator("#main").textContent();
    assert.ok(!/[\u001b\u202a-\u202e\u2066-\u2069]/.test(text), `${path}: ${JSON.stringify(text)}`);
    assert.ok(!text.includes("ghp_0123"), path);
  }
  await world.open(page, `/tasks/${id}/diff`);
  const text = await page.locator("#main").textContent();
  for (const words of ["\u241b[31m<U+202E>", "<script>window.hit=1</script>", "[redacted]"]) assert.ok(text.includes(words), `${words}: ${text}`);
});

test("a refusal's words are text, too", async () => {
  const id = world.add("Plain");
  await world.open(page, "/board");
  await page.locator(`#card-${id} [data-do=menu]`).click();
  await page.getByRole("button", { name: /^Claim →/ }).click();
  await page.getByLabel("Where you will work").fill("<img src=x onerror=window.hit=1>");
  await page.locator("dialog [type=submit]").click();
  await page.locator("dialog .refusal").waitFor();
  assert.equal(await page.locator("dialog .refusal img").count(), 0);
  await accessible(page);
  await page.keyboard.press("Escape");
});

test("the interface takes a cookie only from its own pages", async () => {
  const cookies = await page.context().cookies();
  assert.equal(cookies.length, 1);
  assert.ok(cookies[0].httpOnly);
  assert.equal(cookies[0].sameSite, "Strict");
  const cookie = `${cookies[0].name}=${cookies[0].value}`;
  const ask = (headers, method = "POST") => fetch(`${world.url}/v1/tasks`,
    { method, headers: { cookie, "content-type": "application/json", ...headers }, body: method === "POST" ? '{"title":"forged"}' : undefined });
  assert.equal((await ask({})).status, 403);
  assert.equal((await ask({ "sec-fetch-site": "same-origin" })).status, 403);
  assert.equal((await ask({ "sec-fetch-site": "cross-site", "onus-board": "1" })).status, 403);
  assert.equal((await ask({ "sec-fetch-site": "same-site", "onus-board": "1" })).status, 403);
  assert.equal((await ask({}, "GET")).status, 403);
  assert.equal((await ask({ "sec-fetch-site": "same-origin", "onus-board": "1" })).status, 201);
  assert.equal((await fetch(`${world.url}/signin`, { method: "POST", headers: { "sec-fetch-site": "cross-site" }, body: "token=x" })).status, 403);
  const elsewhere = await fetch(`${world.url}/v1/call/status`, { method: "POST", headers: { cookie, "sec-fetch-site": "same-origin", "onus-board": "1" }, body: "[]" });
  assert.equal(elsewhere.status, 401);
});

test("pages carry strict headers, and styles and scripts are small and kept", async () => {
  const { name, value } = (await page.context().cookies())[0];
  const answer = await fetch(`${world.url}/board`, { headers: { cookie: `${name}=${value}` } });
  // Whole rules: one that allows more begins with the same words.
  const policy = answer.headers.get("content-security-policy").split(";").map((rule) => rule.trim());
  for (const rule of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"]) assert.ok(policy.includes(rule), rule);
  assert.equal(answer.headers.get("x-content-type-options"), "nosniff");
  assert.equal(answer.headers.get("cache-control"), "no-store");
  const html = await answer.text();
  const paths = new Set([...html.matchAll(/(?:href|src)="(\/assets\/[^"#]+)/g)].map(([, path]) => path));
  assert.ok(paths.size > 5);
  let bytes = 0;
  for (const path of paths) {
    // Node's fetch unpacks; the length that was sent is in the header.
    const sent = await fetch(world.url + path, { headers: { "accept-encoding": "gzip" } });
    assert.equal(sent.headers.get("content-encoding"), "gzip");
    assert.match(sent.headers.get("cache-control"), /immutable/);
    bytes += Number(sent.headers.get("content-length"));
    await sent.arrayBuffer();
  }
  console.log(`styles and scripts: ${bytes} bytes compressed, in ${paths.size} files`);
  assert.ok(bytes > 5_000 && bytes <= 150_000, `${bytes}`);
});

test("everything is reached by keyboard", async () => {
  const id = world.add("By hand", "--priority", "P0");
  await world.open(page, "/board");
  await page.locator(`#card-${id}`).waitFor();
  await page.keyboard.press("?");
  await page.getByRole("heading", { name: "Shortcuts" }).waitFor();
  await accessible(page);
  await page.keyboard.press("Escape");
  await page.keyboard.press("j");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "By hand");
  await page.keyboard.press("m");
  await page.getByRole("button", { name: /^Claim →/ }).focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("by hand");
  await accessible(page);
  await page.keyboard.press("Enter");
  await page.waitForURL(`${world.url}/tasks/${id}`);
  await world.live(page);
  await page.keyboard.press("g");
  await page.keyboard.press("b");
  await page.waitForURL(`${world.url}/board`);
  await world.live(page);
  await page.keyboard.press("c");
  await page.keyboard.type("Asked by keyboard");
  await page.keyboard.press("Enter");
  await page.getByText("Asked by keyboard").waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("asked by");
  await page.waitForURL(/q=asked/);
  await page.waitForFunction(() => document.querySelectorAll(".card").length === 1);
});

// Somebody wrote into the store behind the program: `ledger verify` says so, and no page believes a word of it.
test("a store that somebody wrote to is shown as text", async () => {
  const id = world.add("Changed behind the program", "--sprint", "s1");
  world.run("note", id, "words");
  const words = `${PAYLOADS.slice(0, 4).join(" ")} ${ODD}`;
  const change = `import sqlite3, sys
store = sqlite3.connect(sys.argv[1])
store.execute("PRAGMA ignore_check_constraints = ON")
for table, column in [("task", "title"), ("task", "sprint"), ("note", "text"), ("worker", "tier")]:
    store.execute(f"UPDATE {table} SET {column} = ? WHERE {column} IS NOT NULL", (sys.argv[2],))
store.commit()`;
  execFileSync("python3", ["-c", change, join(world.directory, ".git/onus/onus.db"), words]);
  for (const path of ["/board", "/board?lanes=sprint", `/tasks/${id}`, "/now", "/fleet", "/effort", "/audit"]) {
    await world.open(page, path);
    assert.deepEqual(await page.evaluate(looked), { hit: undefined, made: 0, styled: 0 }, path);
  }
});
