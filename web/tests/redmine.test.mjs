// What a team sees in Redmine, for docs/guide/redmine.md: an issue with its hand-overs, and the three questions of a team lead
// (which agent handled most, which workstation, what went outside the policy) answered by Redmine's own queries. It needs a Redmine
// of its own and half a minute: it is played with the long runs, and where the pictures are asked for.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { World, screenshot } from "./support.mjs";

const script = new URL("../../tests/redmine-up", import.meta.url).pathname;
const isAsked = process.env.ONUS_SOAK || process.env.UPDATE_SCREENSHOTS;

/// Who may be found in the fields, and where: a person among them, who steps in.
const AGENTS = { "@forge": "ws-backend-1", "@anvil": "ws-backend-2", "@pixel": "ws-web-1", "@ann": "desk-ann" };

/// A real Redmine; null where there is none.
async function redmine() {
  const directory = mkdtempSync(join(tmpdir(), "onus-redmine-"));
  const free = createServer();
  await new Promise((resolve) => free.listen(0, "127.0.0.1", resolve));
  const { port } = free.address();
  await new Promise((resolve) => free.close(resolve));
  const child = spawn(script, [directory, String(port)], { stdio: ["ignore", "ignore", "inherit"] });
  const url = `http://127.0.0.1:${port}`;
  const end = async () => {
    const ended = new Promise((resolve) => (child.exitCode === null ? child.once("exit", resolve) : resolve()));
    child.kill("SIGKILL");
    await ended;
    rmSync(directory, { recursive: true, force: true });
  };
  for (;;) {
    if (child.exitCode !== null) {
      await end();
      assert.equal(child.exitCode, 77, "Redmine ended by itself");
      return null;
    }
    const answer = await fetch(`${url}/issue_statuses.json`).catch(() => null);
    if (answer) break;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  const seed = JSON.parse(readFileSync(join(directory, "seed.json"), "utf8"));
  const post = async (path, body) => {
    const headers = { "content-type": "application/json", "x-redmine-api-key": seed.admin_key };
    const answer = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
    assert.equal(answer.status, 201, `${path}: ${await answer.clone().text()}`);
    return answer.json();
  };
  return { directory, url, host: `127.0.0.1:${port}`, seed, post, end };
}

/// Fields of the format List, as the guide says: only those can be grouped by.
function asLists(place) {
  const lists = JSON.stringify({ "Agent Name": Object.keys(AGENTS), Workstation: Object.values(AGENTS) });
  const change = `import json, sqlite3, sys
store = sqlite3.connect(sys.argv[1], timeout=30)
for name, values in json.loads(sys.argv[2]).items():
    text = "---\\n" + "".join(f"- '{value}'\\n" for value in values)
    store.execute("UPDATE custom_fields SET field_format = 'list', possible_values = ? WHERE name = ?", (text, name))
store.commit()`;
  execFileSync("python3", ["-c", change, join(place.directory, "db.sqlite3"), lists]);
}

const settings = (place) => `mirrors:
  redmine:
    url: ${place.url}
    key_file: key
    project: tickets
    worker: "@redmine"
    poll: 1ms
    fields: {agent: Agent Name, workstation: Workstation, task: Onus Task}
    statuses: {open: New, in_progress: In Progress, blocked: Feedback, complete: Closed, dropped: Rejected}
    activities: {default: Development}
`;

const ASKS = ["Hold a seat for ten minutes during payment", "Refund partial journeys", "Reject tickets that are scanned twice",
  "Show platform changes on the ticket", "Expire abandoned baskets", "Sign tickets with the new key"];

/// Six asks, three agents; one task changes hands by force.
async function work(world, place) {
  await place.post("/projects.json", { project: { name: "Tickets", identifier: "tickets", tracker_ids: [1, 2, 3],
    enabled_module_names: ["issue_tracking", "time_tracking"] } });
  for (const user of ["bot_id", "ada_id"]) {
    await place.post("/projects/tickets/memberships.json", { membership: { user_id: place.seed[user], role_ids: [place.seed.role_id] } });
  }
  for (const subject of ASKS) {
    await place.post("/issues.json", { issue: { project_id: "tickets", tracker_id: 2, subject, description: "As the riders asked." } });
  }
  writeFileSync(join(world.directory, "key"), place.seed.bot_key);
  writeFileSync(join(world.directory, "onus.yaml"), settings(place));
  world.run("worker", "add", "@redmine", "--kind", "agent");
  for (const [agent, workstation] of Object.entries(AGENTS)) {
    if (agent !== "@ann") world.run("worker", "add", agent, "--kind", "agent");
    world.run("workstation", "add", workstation, "--kind", "logical");
  }
  world.run("mirror", "sync", "redmine");
  const tasks = world.run("list", "--limit", "20").tasks;
  const task = (title) => tasks.find((one) => one.title === title).id;
  const doing = (agent, title) => world.run("claim", task(title), "--as", agent, "--workstation", AGENTS[agent]).lease.token;
  const done = (agent, title, words) => {
    const lease = doing(agent, title);
    world.run("note", task(title), "Half of it works, the tests of the edge cases come next.", "--as", agent, "--lease", lease);
    world.run("complete", task(title), "--resolution", words, "--no-merge", "--as", agent, "--lease", lease);
  };
  done("@forge", ASKS[1], "Refunds count the legs that were not travelled.");
  done("@forge", ASKS[2], "A second scan is refused and told to the conductor.");
  done("@forge", ASKS[5], "Tickets carry the new key; the old one is still read.");
  done("@anvil", ASKS[4], "Baskets expire after an hour.");
  doing("@pixel", ASKS[3]);
  const first = doing("@anvil", ASKS[0]);
  world.run("note", task(ASKS[0]), "The hold is set; its end is not.", "--as", "@anvil", "--lease", first);
  world.run("takeover", task(ASKS[0]), "--workstation", AGENTS["@ann"], "--force", "--reason", "@anvil is needed for the outage");
  world.run("mirror", "sync", "redmine");
  return { origin: world.run("show", task(ASKS[0])).task.origin_ask_ref.replace("redmine:", "") };
}

test("Redmine's own pages and queries tell who worked where, and what went outside the policy", { skip: !isAsked }, async (t) => {
  const place = await redmine();
  if (!place) return t.skip("there is no Redmine here");
  const world = await World.start();
  try {
    world.hosts.add(place.host);
    asLists(place);
    const { origin } = await work(world, place);
    const page = await (await world.browser({ viewport: { width: 1120, height: 820 } })).newPage();
    await page.goto(`${place.url}/login`);
    await page.fill("#username", "admin");
    await page.fill("#password", "onus-admin-pw");
    await page.click("#login-submit");
    await page.waitForURL((url) => !url.pathname.startsWith("/login"));

    await page.goto(`${place.url}/issues/${origin}`);
    const history = await page.innerText("#history");
    assert.match(history, /Agent Name set to @anvil/);
    assert.match(history, /Agent Name changed from @anvil to @ann/);
    assert.match(history, /takes over from @anvil in desk-ann BY FORCE: @anvil is needed for the outage/);
    assert.doesNotMatch(history, /onus-handoff/, "a handoff is told in words");
    await screenshot(page, "redmine-issue");
    await page.evaluate(() => document.querySelector("#history").scrollIntoView());
    await screenshot(page, "redmine-history");

    const { fields } = place.seed;
    const columns = ["subject", "status", `cf_${fields["Agent Name"]}`, `cf_${fields.Workstation}`].map((name) => `c[]=${name}`).join("&");
    const query = (more) => page.goto(`${place.url}/projects/tickets/issues?set_filter=1&f[]=status_id&op[status_id]=*&${columns}&${more}`);
    const groups = async () => {
      const rows = await page.locator("tr.group").allInnerTexts();
      return rows.map((row) => row.replace(/\s+/g, " ").trim());
    };
    const has = (found, name, count) => assert.ok(found.some((row) => row.startsWith(`${name} ${count}`)), `${name} ${count}: ${found}`);
    await query(`group_by=cf_${fields["Agent Name"]}`);
    const byAgent = await groups();
    for (const [name, count] of [["@forge", 3], ["@anvil", 1], ["@pixel", 1], ["@ann", 1]]) has(byAgent, name, count);
    await screenshot(page, "redmine-agents");
    await query(`group_by=cf_${fields.Workstation}`);
    const byPlace = await groups();
    for (const [name, count] of [["ws-backend-1", 3], ["ws-backend-2", 1], ["ws-web-1", 1], ["desk-ann", 1]]) has(byPlace, name, count);
    await screenshot(page, "redmine-workstations");
    await query("f[]=notes&op[notes]=~&v[notes][]=BY+FORCE&c[]=last_notes");
    assert.deepEqual(await page.locator("td.subject").allInnerTexts(), [ASKS[0]]);
    await screenshot(page, "redmine-forced");
  } finally {
    await world.end();
    await place.end();
  }
});
