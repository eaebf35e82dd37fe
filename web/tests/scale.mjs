// A store with as many tasks as somebody asks for, and when a page of it is first painted. The test and the benchmark share it.
import { writeFileSync } from "node:fs";
import { join } from "node:path";

const WORDS = ["seat", "refund", "timetable", "ticket", "platform", "fare", "journey", "payment", "operator", "basket", "receipt", "discount"];

/// So many tasks of a team: a quarter of them complete, a tenth waiting for another, each with a body of some sixty words.
export function furnish(world, tasks) {
  world.run("workstation", "add", "tree-a");
  const word = (n) => WORDS[n % WORDS.length];
  const body = (n) => Array.from({ length: 60 }, (_, at) => word(n * 7 + at * (1 + (n % 5)))).join(" ");
  const line = (n) => JSON.stringify({ title: `Task number ${n} of many, with a title of ordinary length`, priority: `P${n % 5}`, body: body(n),
    origin_ask_ref: `scale:${n}`, type: ["backend", "frontend", "docs"][n % 3], role: ["backend", "frontend", "docs"][n % 3], sprint: `s${n % 40}`,
    tags: [`tag${n % 7}`, ...(n % 1_000 === 1 ? ["rare"] : [])], ...(n % 4 === 3 ? { state: "complete", resolution: "done" } : {}),
    ...(n % 10 === 0 && n > 4 ? { depends_on: [`scale:${n - 4}`] } : {}) });
  const file = join(world.directory, "tasks.jsonl");
  writeFileSync(file, Array.from({ length: tasks }, (_, n) => line(n)).join("\n"));
  world.run("import", "--format", "jsonl", file);
  const numbers = Array.from({ length: tasks }, (_, n) => n);
  return { ready: numbers.filter((n) => n % 4 !== 3 && !(n % 10 === 0 && n > 4)).length };
}

/// What people look at most, by address.
export const PAGES = { board: "/board", list: "/board?view=list", "a word of all": "/board?q=ordinary", "a rare word": "/board?q=4711",
  "two words of many": "/board?q=seat+refund", "one label": "/board?tag=tag3", "a rare label": "/board?tag=rare", "one sprint": "/board?sprint=s8" };

/// When the page was first painted, so many times; a page may be live a moment before that.
export async function paints(world, page, path, times) {
  const all = [];
  for (let n = 0; n < times; n++) {
    await world.open(page, path);
    const entry = await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
    all.push(await entry.jsonValue());
  }
  return all;
}

export const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.trunc(numbers.length / 2)];
