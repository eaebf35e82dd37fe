// pg-boss: adds jobs that do nothing; each worker fetches and completes one at a time. Prints jobs per second.
// node pg-boss.mjs DATABASE JOBS WORKERS
import * as module from "pg-boss";

const PgBoss = module.PgBoss ?? module.default;
const [connectionString, jobs, workers] = process.argv.slice(2);
const wanted = Number(jobs);
const boss = new PgBoss({ connectionString, max: Number(workers), supervise: false, schedule: false });
boss.on("error", (error) => console.error(error));
await boss.start();
await boss.createQueue("nothing");
const chunk = 1000;
for (let at = 0; at < wanted; at += chunk) {
  const part = Array.from({ length: Math.min(chunk, wanted - at) }, () => ({ name: "nothing", data: {} }));
  // The queue's name moved from the jobs to an argument of its own.
  await (boss.insert.length > 1 ? boss.insert("nothing", part) : boss.insert(part));
}
let done = 0;
const began = process.hrtime.bigint();
await Promise.all(
  Array.from({ length: Number(workers) }, async () => {
    for (;;) {
      const [job] = (await boss.fetch("nothing")) ?? [];
      if (!job) return;
      await boss.complete("nothing", job.id);
      done += 1;
    }
  }),
);
const seconds = Number(process.hrtime.bigint() - began) / 1e9;
console.log(done / seconds);
process.exit(done === wanted ? 0 : 1);
