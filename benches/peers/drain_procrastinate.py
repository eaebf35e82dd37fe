"""procrastinate: adds jobs that do nothing, drains them, prints jobs per second.

python drain_procrastinate.py DATABASE JOBS WORKERS
"""

import asyncio
import logging
import sys
import time

import procrastinate

database, wanted, workers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
logging.disable(logging.CRITICAL)
app = procrastinate.App(
    connector=procrastinate.PsycopgConnector(conninfo=database, min_size=1, max_size=workers + 2)
)
done = 0


@app.task(name="nothing")
async def nothing():
    global done
    done += 1


async def main():
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        for at in range(0, wanted, 1000):
            await nothing.batch_defer_async(*({} for _ in range(min(1000, wanted - at))))
        began = time.perf_counter()
        await app.run_worker_async(concurrency=workers, wait=False, listen_notify=False, install_signal_handlers=False)
        print(done / (time.perf_counter() - began))


asyncio.run(main())
sys.exit(0 if done == wanted else 1)
