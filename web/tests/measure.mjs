// usage: node web/tests/measure.mjs TASKS TIMES, for `./bench board`
// First paints of the pages that people look at most, in a store of so many tasks: one line of JSON each, medians in milliseconds.
import { World } from "./support.mjs";
import { PAGES, furnish, median, paints } from "./scale.mjs";

const [tasks, times] = process.argv.slice(2).map(Number);
const world = await World.start();
try {
  furnish(world, tasks);
  const page = await world.signedIn();
  // Whoever searches first reads what nobody has read yet; a server does so by itself (crates/onus-server/src/indexer.rs).
  await world.open(page, "/board?q=ordinary");
  for (const [name, path] of Object.entries(PAGES)) {
    await world.open(page, path);
    console.log(JSON.stringify({ name, ms: median(await paints(world, page, path, times)) }));
  }
} finally {
  await world.end();
}
