// A team's week, through the public interface: some 150 tasks, people and agents, days that are past. The command line is
// told another time (faketime), so that the record itself has the days; everything is as if it had happened so.
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { onus } from "./support.mjs";

const MAP = `routing:
  - task_type: backend
    candidates:
      - agent_name: "@forge"
        workstation: ws-backend-1
      - agent_name: "@anvil"
        workstation: ws-backend-2
  - task_type: frontend
    agent_name: "@pixel"
    workstation: ws-web-1
  - task_type: docs
    agent_name: "@quill"
    workstation: ws-docs
  - task_type: ops
    agent_name: "@anvil"
    workstation: ws-ops
`;

/// What a day of agents may cost, more than any day of this week does: the settings of a furnished workspace.
export const LIMITS = "limits: { workspace_day: { cost: 60 }, worker_day: { cost: 40 } }\n";

const WORKERS = [
  ["@forge", "agent", "opus"], ["@anvil", "agent", "sonnet"], ["@pixel", "agent", "opus"], ["@quill", "agent", "haiku"],
  ["@mira", "human"], ["@tom", "human"],
];
const PLACES = ["ws-backend-1", "ws-backend-2", "ws-web-1", "ws-docs", "ws-ops", "desk-ann", "desk-mira"];
const OWN_PLACE = { "@forge": "ws-backend-1", "@anvil": "ws-backend-2", "@pixel": "ws-web-1", "@quill": "ws-docs" };
const AGENT_OF = { backend: "@forge", frontend: "@pixel", docs: "@quill", ops: "@anvil" };

/// What a team that sells train tickets has to do.
const ASKS = {
  backend: ["Retry seat reservations with backoff", "Refund partial journeys", "Hold a seat for ten minutes during payment",
    "Reject tickets that are scanned twice", "Return fares in the rider's currency", "Rate-limit the timetable endpoint",
    "Store journeys without personal data", "Cache the fare table per operator", "Sign tickets with the new key",
    "Accept discount cards of partner railways", "Split orders by operator", "Answer timetable queries for night trains",
    "Keep an audit of manual refunds", "Validate IBANs before payouts", "Expire abandoned baskets", "Send receipts once, never twice",
    "Import timetables every night", "Warn when a connection is too short", "Let groups share one order", "Move seat maps out of the monolith"],
  frontend: ["Show platform changes on the ticket", "Seat map usable with one thumb", "Tell what a fare includes", "Remember the last three routes",
    "Dark colours for night travel", "A calmer error when payment fails", "Keyboard through the whole checkout", "Ticket in the wallet of the phone",
    "Compare two connections side by side", "Progress while a refund is on its way", "Shorter form for guests", "Larger text for the timetable",
    "Say how full a train is", "Undo for a cancelled seat", "Empty states that teach", "Share a journey as a link"],
  docs: ["Explain how refunds are counted", "Guide for partner railways", "Write down the on-call routine", "Describe the ticket's signature",
    "Examples for the fare API", "Glossary of tariff words", "How to read the dashboards", "Release notes for October"],
  ops: ["Rotate the payment keys", "Alert when payouts stop", "Restore drill of the order database", "Move builds to the new runners",
    "Cut the cost of log storage", "Certificate renewal without a person", "Dashboards for seat holds", "Upgrade the database to 17"],
};
const LABELS = ["payments", "tickets", "timetable", "accessibility", "partner", "security"];

/// A generator of its own, so that every week is the same week.
function dice(seed) {
  let state = seed;
  return (below) => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return Math.trunc((state / 2147483648) * below);
  };
}

/// One call of the command line as somebody, so many hours before now.
function at(world, hours, as, ...args) {
  const moment = new Date(Date.now() - hours * 3_600_000).toISOString().replace("T", " ").slice(0, 19);
  const env = { ...process.env, ONUS_AS: as, NO_COLOR: "1", TZ: "UTC" };
  delete env.ONUS_STORE;
  const options = { cwd: world.directory, env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] };
  const [program, ...words] = hours > 0 ? ["faketime", "-m", moment, onus, "--json", ...args] : [onus, "--json", ...args];
  const said = begun(() => execFileSync(program, words, options));
  return said.trim() ? JSON.parse(said) : {};
}

/// Faketime names what it shares by its process, and gives up where a killed one of that number left its own behind; the
/// program has not begun then, and the next try has another number.
function begun(call) {
  for (let left = 20; ; left -= 1) {
    try {
      return call();
    } catch (error) {
      if (left === 0 || !String(error.stderr).includes("sem_open: File exists")) throw error;
    }
  }
}

/// Who there is, where they work, and the map.
function found(world, hours) {
  writeFileSync(join(world.directory, "executor-identity-map.yaml"), MAP);
  const git = (...args) => execFileSync("git", args, { cwd: world.directory, stdio: "ignore" });
  git("add", "executor-identity-map.yaml");
  git("commit", "-q", "-m", "Who does what, and where");
  for (const [handle, kind, tier] of WORKERS) at(world, hours, "@ann", "worker", "add", handle, "--kind", kind, ...(tier ? ["--tier", tier] : []));
  for (const place of PLACES) at(world, hours, "@ann", "workstation", "add", place);
}

/// Every ask as a line of an import, in the order in which they come up.
function asks(roll) {
  const lines = [];
  for (const [type, titles] of Object.entries(ASKS)) {
    for (const title of titles) lines.push({ type, title });
    for (const more of [["for partner railways", "on small screens"], ["in the night", "after a restart"]]) {
      for (const title of titles) lines.push({ type, title: `${title} ${more[roll(2)]}` });
    }
  }
  for (let n = lines.length - 1; n > 0; n--) {
    const other = roll(n + 1);
    [lines[n], lines[other]] = [lines[other], lines[n]];
  }
  return lines.map(({ type, title }, n) => ({
    title, type,
    body: `As a rider I want this to work wherever I am.\n\n- it works on a slow line\n- what went wrong is said in plain words\n\nAsked for by support, ${2 + roll(40)} tickets.`,
    priority: ["P0", "P1", "P1", "P2", "P2", "P2", "P2", "P3", "P3", "P4"][n === 3 ? 0 : 1 + roll(9)],
    kind: roll(4) === 0 ? "chore" : "feature",
    role: type, sprint: n < 100 ? "s12" : "s13",
    tags: [LABELS[roll(LABELS.length)]],
  }));
}

/// The furnished workspace: what is where is told, for tests that look for it.
export function furnish(world, { days = 6 } = {}) {
  const roll = dice(7);
  const week = { done: [], held: [] };
  const hoursAgo = (day, hour) => day * 24 + (18 - hour);
  found(world, hoursAgo(days, 7));
  const lines = asks(roll);
  const perDay = Math.ceil(lines.length / (days + 1));
  const open = { backend: [], frontend: [], docs: [], ops: [] };
  for (let day = days; day >= 0; day--) {
    const file = join(world.directory, "asks.jsonl");
    const today = lines.splice(0, perDay);
    writeFileSync(file, today.map((line) => JSON.stringify(line)).join("\n"));
    const before = day === 0 ? 9 : 0;
    const added = at(world, hoursAgo(day, 8) - before, "@ann", "import", "--format", "jsonl", file);
    const ids = at(world, hoursAgo(day, 8) - before, "@ann", "list", "--limit", "500").tasks;
    for (const task of ids) if (!open[task.type]?.includes(task.id) && !week.done.includes(task.id) && task.state === "open") open[task.type].push(task.id);
    if (day === 0) break;
    for (const [hour, until] of [[9, 11], [11, 13], [14, 16], [16, 18]]) {
      const begun = [];
      for (const [type, agent] of Object.entries(AGENT_OF)) {
        const id = open[type][0];
        if (!id || roll(8) === 0) continue;
        open[type].shift();
        const place = type === "ops" ? "ws-ops" : OWN_PLACE[agent];
        begun.push({ id, agent, lease: at(world, hoursAgo(day, hour), agent, "claim", id, "--workstation", place, "--ttl", "4h").lease.token });
      }
      for (const { id, agent, lease } of begun) {
        const end = hoursAgo(day, until) + 0.1 + roll(50) / 60;
        if (roll(5) === 0) at(world, end + 0.2, agent, "note", id, "The first half works; the edge cases are next.", "--lease", lease);
      }
      for (const { id, agent, lease } of begun) {
        at(world, hoursAgo(day, until) + 0.05, agent, "complete", id, "--resolution", "It works as asked; the tests show it.", "--lease", lease);
        if (agent !== "@quill") {
          const tokens = 40_000 + roll(400_000);
          at(world, hoursAgo(day, until) + 0.04, agent, "session", "usage", id, "--input-tokens", String(tokens), "--output-tokens", String(Math.trunc(tokens / 9)),
            "--cost", (tokens / 90_000).toFixed(2));
        }
        week.done.push(id);
      }
      if (hour === 11 || hour === 14) people(world, week, open, { hoursAgo, day, hour: hour + 0.2, roll });
    }
  }
  present(world, week, open);
  return week;
}

/// What people do beside the agents: one of them a task in the morning, another in the afternoon.
function people(world, week, open, { hoursAgo, day, hour, roll }) {
  const [who, place, type] = hour < 12 ? ["@mira", "desk-mira", "frontend"] : ["@ann", "desk-ann", "backend"];
  const id = open[type][1];
  if (!id || roll(4) === 0) return;
  open[type].splice(1, 1);
  const lease = at(world, hoursAgo(day, hour), who, "claim", id, "--workstation", place).lease.token;
  at(world, hoursAgo(day, hour + 1) + roll(30) / 60, who, "complete", id, "--resolution", "Talked it over with support, and did it.", "--lease", lease);
  week.done.push(id);
}

/// The middle of a day: work that goes on, waits, went silent, needs somebody.
function present(world, week, open) {
  const take = (type) => open[type].shift();
  const hold = (hours, who, id, place, ttl) => at(world, hours, who, "claim", id, "--workstation", place, "--ttl", ttl).lease.token;
  const blocked = take("backend");
  const lease = hold(2, "@anvil", blocked, "ws-backend-2", "8h");
  at(world, 1.5, "@anvil", "block", blocked, "--on", "external:the bank's test account", "--lease", lease, "--release-lease");
  week.blocked = blocked;
  const asked = take("docs");
  const question = hold(1.4, "@quill", asked, "ws-docs", "8h");
  at(world, 1.2, "@quill", "block", asked, "--on", "person:@ann", "--note", "Which tariff words do riders see?", "--lease", question, "--release-lease");
  week.asked = asked;
  for (const [who, type, place] of [["@forge", "backend", "ws-backend-1"], ["@quill", "docs", "ws-docs"], ["@anvil", "ops", "ws-ops"]]) {
    const id = take(type);
    if (!id) continue;
    const token = hold(0.7, who, id, place, "2h");
    at(world, 0.4, who, "note", id, "Reproduced it; the cause is in the retry loop.", "--lease", token);
    week.held.push(id);
  }
  for (const type of ["backend", "frontend"]) {
    const [first, second, third] = open[type];
    if (third) {
      at(world, 0.3, "@ann", "edit", second, "--depends-on", first);
      at(world, 0.3, "@ann", "edit", third, "--depends-on", second);
      week.waiting = third;
    }
  }
  at(world, 0.3, "@ann", "drop", open.frontend.at(-1), "--reason", "riders never asked for it");
  at(world, 0.2, "@ann", "workstation", "quarantine", "desk-mira", "--reason", "its disk is failing");
  at(world, 0.2, "@ann", "milestone", "add", "sprint-12", "--title", "Refunds and night trains", "--sprint", "s12",
    "--target", new Date(Date.now() + 4 * 86_400_000).toISOString().slice(0, 10));
  at(world, 0.2, "@ann", "view", "save", "Payments first", "--tag", "payments");
  change(world, week);
  week.silent = take("frontend");
  // A lease runs by a clock that no told time moves: this one is short, and runs out for real.
  hold(0, "@pixel", week.silent, "ws-web-1", "2s");
}

/// A person's own worktree, with a commit to be looked at.
function change(world, week) {
  const tree = at(world, 0, "@ann", "workstation", "add", "desk-tom", "--kind", "worktree").workstation.path;
  week.changed = at(world, 0, "@ann", "add", "Round fares to whole cents", "--sprint", "s13").task.id;
  const lease = at(world, 0, "@tom", "claim", week.changed, "--workstation", "desk-tom").lease.token;
  writeFileSync(join(tree, "fares.txt"), "round half up\nin cents\n");
  const env = { ...process.env, ONUS_AS: "@tom", ONUS_LEASE: lease };
  for (const args of [["add", "-A"], ["commit", "-q", "-m", "Round fares"]]) execFileSync("git", args, { cwd: tree, env, stdio: "pipe" });
}
