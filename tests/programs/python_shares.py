# SPDX-License-Identifier: Apache-2.0
"""Six functions within each other, each busy by itself, the innermost one at ten lines of different weight, until the
end of its input. Then prints, as one line of JSON, the CPU time that it has measured itself: {"functions": {name: seconds},
"lines": {number: seconds}}. For CPython 3.6 and newer."""
import json
import select
import sys
import time

clock = time.thread_time if sys.version_info >= (3, 7) else time.process_time
functions, lines = {}, {}
last = clock()


def spent():
    """CPU time since it was asked for last."""
    global last
    before, last = last, clock()
    return last - before


def add(to, key):
    to[key] = to.get(key, 0) + spent()


def one():
    sum(range(6000)); add(functions, "one")
    two()


def two():
    sum(range(9000)); add(functions, "two")
    three()


def three():
    sum(range(3000)); add(functions, "three")
    four()


def four():
    sum(range(12000)); add(functions, "four")
    five()


def five():
    sum(range(5000)); add(functions, "five")
    six()


def six():
    sum(range(5000)); add(lines, FIRST + 1)
    sum(range(500)); add(lines, FIRST + 2)
    sum(range(10000)); add(lines, FIRST + 3)
    sum(range(1000)); add(lines, FIRST + 4)
    sum(range(8000)); add(lines, FIRST + 5)
    sum(range(4000)); add(lines, FIRST + 6)
    sum(range(2000)); add(lines, FIRST + 7)
    sum(range(15000)); add(lines, FIRST + 8)
    sum(range(3000)); add(lines, FIRST + 9)
    sum(range(6000)); add(lines, FIRST + 10)


FIRST = six.__code__.co_firstlineno
while not select.select([sys.stdin], [], [], 0)[0]:
    for _ in range(100):
        one()
    spent()
functions["six"] = sum(lines.values())
print(json.dumps({"functions": functions, "lines": lines}), flush=True)
