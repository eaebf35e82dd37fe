"""pgqueuer: adds jobs that do nothing, drains them in batches, prints jobs per second.

python drain_pgqueuer.py DATABASE JOBS BATCH
"""

import asyncio
import logging
import sys
import time
from datetime import timedelta

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

database, wanted, batch = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
logging.disable(logging.CRITICAL)


async def main():
    driver = AsyncpgDriver(await asyncpg.connect(database))
    queries = Queries(driver)
    await queries.install()
    for at in range(0, wanted, 1000):
        count = min(1000, wanted - at)
        await queries.enqueue(["nothing"] * count, [None] * count, [0] * count)
    queue, done = PgQueuer(driver), 0

    @queue.entrypoint("nothing")
    async def nothing(job):
        nonlocal done
        done += 1
        if done == wanted:
            queue.shutdown.set()

    began = time.perf_counter()
    await queue.run(batch_size=batch, dequeue_timeout=timedelta(seconds=1))
    print(done / (time.perf_counter() - began))


asyncio.run(main())
