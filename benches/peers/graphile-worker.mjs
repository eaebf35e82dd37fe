// graphile-worker: adds jobs that do nothing, drains them, prints jobs per second.
// node graphile-worker.mjs DATABASE JOBS WORKERS LOCAL_QUEUE
import { run, runMigrations } from "graphile-worker";
import pg from "pg";

const [connectionString, jobs, workers, localQueue] = process.argv.slice(2);
const wanted = Number(jobs);
await runMigrations({ connectionString });
const client = new pg.Client({ connectionString });
await client.connect();
await client.query("SELECT count(graphile_worker.add_job('nothing')) FROM generate_series(1, $1::int)", [wanted]);
await client.query("ANALYZE");
await client.end();

let [done, finished] = [0, null];
const all = new Promise((resolve) => (finished = resolve));
const quiet = { error() {}, warn() {}, info() {}, debug() {} };
const { Logger } = await import("graphile-worker");
const began = process.hrtime.bigint();
const runner = await run({
  connectionString,
  concurrency: Number(workers),
  noHandleSignals: true,
  logger: new Logger(() => (level, message) => (quiet[level] ?? quiet.info)(message)),
  preset: {
    worker: { concurrentJobs: Number(workers), ...(Number(localQueue) ? { localQueue: { size: Number(localQueue) } } : {}) },
  },
  taskList: {
    nothing: async () => {
      if (++done === wanted) finished();
    },
  },
});
await all;
const seconds = Number(process.hrtime.bigint() - began) / 1e9;
await runner.stop();
console.log(wanted / seconds);
process.exit(0);
