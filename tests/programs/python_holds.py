# SPDX-License-Identifier: Apache-2.0
"""Takes blocks of known sizes, each site in a line of its own, and keeps every third of them: python_holds.py ROUNDS. Says
"ready", waits for a line, and says of each site: function, line, bytes taken, bytes kept; ends with another line. Instead of
ROUNDS "tracemalloc": what that says of one round, function, line, bytes."""
import array
import sys
import time

KEPT, PAUSE = 3, 50
MEET = 1.5  # seconds, in which an agent meets the code and finds the interpreter: of 3.6 only while that runs
SMALL, COUNT = 200, 100


def holds_bytes():
    return bytes(3000)


def holds_bytearray():
    return bytearray(5000)


def holds_list():
    return [None] * 400


def holds_tuple():
    return (None,) * 300


def holds_string():
    return "x" * 5000


def holds_array():
    return array.array("d", (0.0,)) * 500


def holds_small():
    return list(map(bytes, (SMALL,) * COUNT))


LARGE = [holds_bytes, holds_bytearray, holds_list, holds_tuple, holds_string, holds_array]
EMPTY = {list: [], bytearray: bytearray(), array.array: array.array("d")}


def size_of(block):
    """What of it is one piece of more than 512 bytes: lists and their like have a head of their own. Of many small ones what
    they take of pools, which have pieces of multiples of 16 bytes (of 8 before 3.8)."""
    if isinstance(block, list) and block[0] is not None:
        unit = 16 if sys.version_info >= (3, 8) else 8
        pieces = sum((sys.getsizeof(piece) + unit - 1) // unit * unit for piece in block)
        return pieces + sys.getsizeof(block) - sys.getsizeof([])
    return sys.getsizeof(block) - (sys.getsizeof(EMPTY[type(block)]) if type(block) in EMPTY else 0)


def line_of(site):
    return site.__code__.co_firstlineno + 1


def told_by_tracemalloc():
    import tracemalloc
    tracemalloc.start(1)
    kept = [site() for site in LARGE + [holds_small]]
    rows = {row.traceback[0].lineno: row.size for row in tracemalloc.take_snapshot().statistics("lineno")
            if row.traceback[0].filename == __file__}
    for site, block in zip(LARGE + [holds_small], kept):
        print(site.__name__, line_of(site), rows.get(line_of(site), 0), size_of(block))


def meet(sites):
    """How often each of them has taken what it takes."""
    began, times = time.time(), 0
    while time.time() < began + MEET:
        if time.time() > began + times * 0.05:
            times += len([site() for site in sites]) // len(sites)
    return times


def main():
    rounds, kept, counts = int(sys.argv[1]), [], {}
    sites = LARGE + [holds_small]
    print("ready", flush=True)
    sys.stdin.readline()
    met = meet(sites)
    for number in range(rounds):
        if number % PAUSE == 0:
            time.sleep(0.02)
        for site in sites:
            block = site()
            if number % KEPT == 0:
                kept.append(block)
    for site in sites:
        size = size_of(site())
        print(site.__name__, line_of(site), size * (rounds + met), size * len(range(0, rounds, KEPT)), flush=True)
    sys.stdin.readline()


if sys.argv[1] == "tracemalloc":
    told_by_tracemalloc()
else:
    main()
