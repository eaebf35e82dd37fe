// A team at work: enough of everything for the pages that look back.
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

const MAP = `routing:
  - task_type: backend
    agent_name: "@builder"
    workstation: ws-backend
  - task_type: frontend
    agent_name: "@painter"
    workstation: ws-frontend
`;

/// The day so many days ago, as the calendar names it in UTC.
export const daysAgo = (days) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);

/// Somebody else's command.
function by(world, handle, ...args) {
  world.as = handle;
  try {
    return world.run(...args);
  } finally {
    delete world.as;
  }
}

/// An agent does a whole task; what was said is refused nowhere.
function completed(world, agent, place, title, type) {
  const id = world.add(title, "--type", type, "--sprint", "s1");
  const claimed = by(world, agent, "claim", id, "--workstation", place);
  by(world, agent, "note", id, "the first half works", "--lease", claimed.lease.token);
  by(world, agent, "complete", id, "--resolution", `${title}: done, and it works`, "--lease", claimed.lease.token);
  return id;
}

/// Who there is, where they work, and the map.
function found(world) {
  writeFileSync(join(world.directory, "executor-identity-map.yaml"), MAP);
  const git = (...args) => execFileSync("git", args, { cwd: world.directory, stdio: "ignore" });
  git("add", "executor-identity-map.yaml");
  git("commit", "-q", "-m", "routing");
  for (const [handle, tier] of [["@builder", "opus"], ["@painter", "sonnet"]]) {
    world.run("worker", "add", handle, "--kind", "agent", "--tier", tier);
  }
  for (const name of ["ws-backend", "ws-frontend", "ws-desk", "ws-old"]) world.run("workstation", "add", name);
}

/// Tasks completed, refused, forced, blocked and proposed; a workstation closed; with `days`, sessions of the last days.
export function tell(world, { days = false } = {}) {
  found(world);
  if (days) backdate(world);
  const story = { done: [] };
  story.done.push(completed(world, "@builder", "ws-backend", "Store sessions in whole seconds", "backend"));
  story.done.push(completed(world, "@painter", "ws-frontend", "Show the lease as a ring", "frontend"));
  story.forced = world.add("Rotate the signing key", "--type", "frontend", "--sprint", "s1");
  try {
    by(world, "@builder", "claim", story.forced, "--workstation", "ws-backend");
  } catch {
    // The map refuses it: that is the point.
  }
  world.run("claim", story.forced, "--for", "@builder", "--workstation", "ws-backend", "--force", "--reason", "@painter is away");
  world.run("complete", story.forced, "--resolution", "rotated", "--force", "--reason", "it could not wait");
  story.blocked = world.add("Choose the retention period", "--type", "backend");
  const held = by(world, "@builder", "claim", story.blocked, "--workstation", "ws-backend");
  by(world, "@builder", "block", story.blocked, "--on", "person:@ann", "--lease", held.lease.token, "--release-lease");
  story.proposed = by(world, "@painter", "add", "Rings on small screens", "--type", "frontend", "--check", "npm test").task.id;
  story.unroutable = world.add("Write the haiku of the release", "--type", "poetry");
  story.held = world.add("Keep the ring through a restart", "--type", "frontend", "--sprint", "s1");
  by(world, "@painter", "claim", story.held, "--workstation", "ws-frontend");
  world.run("workstation", "quarantine", "ws-old", "--reason", "its disk is failing");
  return story;
}

/// When a session was, beyond its assignment: one person says so, and another one agrees.
export function correct(world, ...args) {
  world.run("session", "correct", ...args);
  by(world, "@clerk", "session", "correct", ...args);
}

/// Sessions of the last days: the record keeps when they were made, a correction says when they were.
function backdate(world) {
  world.run("worker", "add", "@clerk", "--kind", "human");
  const plan = [["@builder", "ws-backend", "backend"], ["@painter", "ws-frontend", "frontend"], ["@ann", "ws-desk", "backend"]];
  for (const [who, place, type] of plan) {
    const id = world.add(`Work of ${who}`, "--type", type);
    for (let days = 6; days >= 1; days--) {
      const claimed = by(world, who, "claim", id, "--workstation", place);
      by(world, who, "release", id, "--note", "so far", "--lease", claimed.lease.token);
      const [session] = world.run("session", "list", "--task", id).sessions;
      const hours = 2 + ((days * who.length) % 5);
      const from = `${daysAgo(days)}T08:15:00Z`;
      const to = `${daysAgo(days)}T${String(8 + hours).padStart(2, "0")}:00:00Z`;
      correct(world, String(session.id), "--start", from, "--end", to, "--reason", "kept on paper");
      if (who !== "@ann") {
        by(world, who, "session", "usage", id, "--session", String(session.id), "--input-tokens", "180000", "--output-tokens", "24000",
          "--cost", "1.75", "--model", "opus");
      }
    }
  }
}
