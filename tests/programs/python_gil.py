# SPDX-License-Identifier: Apache-2.0
"""Threads that fight for the interpreter's lock, and beside them one that sleeps and one that waits for a lock of
threading. After a line on stdin they work for so many seconds; then each says in JSON how long it was there, on a CPU and
queueing for one (/proc/…/schedstat), and what it waited for by its own doing at least."""
import json
import select
import sys
import threading
import time

SECONDS = float(sys.argv[1])
KEPT = {}
HELD = threading.Lock()
BEGIN = threading.Event()


def schedstat():
    with open("/proc/thread-self/schedstat") as file:
        return [int(word) for word in file.read().split()[:2]]


def keep(work):
    BEGIN.wait()
    before, start = schedstat(), time.perf_counter()
    own = work(start + SECONDS)
    wall, after = time.perf_counter() - start, schedstat()
    KEPT[work.__name__] = {"wall": wall, "cpu": (after[0] - before[0]) / 1e9, "delay": (after[1] - before[1]) / 1e9,
                           "own": own}


def spins_a(end):
    while time.perf_counter() < end:
        pass
    return 0


def spins_b(end):
    while time.perf_counter() < end:
        sum(range(100))
    return 0


def sleeps(end):
    own = 0
    while time.perf_counter() < end:
        time.sleep(0.05)
        own += 0.05
    return own


def locks(end):
    """Waits while the other one holds it: from the moment that it asks until that one lets go."""
    own = 0
    while time.perf_counter() < end:
        asked = time.perf_counter()
        with HELD:
            own += max(0, RELEASED[0] - asked)
        time.sleep(0.001)
        own += 0.001
    return own


def holds(end):
    own = 0
    while time.perf_counter() < end:
        with HELD:
            time.sleep(0.03)
            own += 0.03
            RELEASED[0] = time.perf_counter()
        time.sleep(0.003)
        own += 0.003
    return own


RELEASED = [0]
THREADS = [threading.Thread(target=keep, args=(work,), name="größe of what " + work.__name__) for work in (spins_a, spins_b, sleeps, locks, holds)]
for thread in THREADS:
    thread.start()
print("ready", flush=True)
while sys.version_info < (3, 7) and not select.select([sys.stdin], [], [], 0)[0]:
    pass  # nobody finds its state while no thread runs
sys.stdin.readline()
BEGIN.set()
for thread in THREADS:
    thread.join()
print(json.dumps(KEPT), flush=True)
sys.stdin.readline()
