# SPDX-License-Identifier: Apache-2.0
"""A thousand tasks of five kinds, for SECONDS; then prints, as one line of JSON, which CPU time each kind had, as the
program itself counts it. For CPython 3.8 and newer."""
import asyncio
import json
import sys
import time

TASKS = 1000
spent_ns = {}


def compute(n):
    total = 0
    for i in range(n):
        total += i * i
    return total


async def measured(kind, n):
    begin = time.thread_time_ns()
    compute(n)
    spent_ns[kind] = spent_ns.get(kind, 0) + time.thread_time_ns() - begin


async def kind_1(until):
    while time.time() < until:
        await measured("kind_1", 1000)
        await asyncio.sleep(0)


async def kind_2(until):
    while time.time() < until:
        await measured("kind_2", 2000)
        await asyncio.sleep(0)


async def part_3():
    await measured("kind_3", 3000)
    await asyncio.sleep(0)


async def kind_3(until):
    while time.time() < until:
        await asyncio.gather(part_3(), return_exceptions=True)


async def kind_4(until):
    while time.time() < until:
        await measured("kind_4", 4000)
        await asyncio.sleep(0.001)


async def steps(until):
    while time.time() < until:
        yield
        await asyncio.sleep(0)


async def kind_5(until):
    async for _ in steps(until):
        await measured("kind_5", 5000)


async def main(until):
    kinds = (kind_1, kind_2, kind_3, kind_4, kind_5)
    if not hasattr(asyncio, "TaskGroup"):
        await asyncio.gather(*(kinds[i % len(kinds)](until) for i in range(TASKS)))
        return
    async with asyncio.TaskGroup() as group:
        for i in range(TASKS):
            group.create_task(kinds[i % len(kinds)](until))


if len(sys.argv) > 2:
    import uvloop
    uvloop.install()
asyncio.run(main(time.time() + float(sys.argv[1])))
print(json.dumps(spent_ns))
