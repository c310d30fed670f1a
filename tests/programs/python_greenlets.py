# SPDX-License-Identifier: Apache-2.0
"""Greenlets that take turns: each is switched away from at another depth, in Python and in callbacks of C, and entered
from other places than it began at. First prints, as one line of JSON, the chains of calls that there are, as
python_names.py does: those of the greenlet that runs, and of no other. Needs greenlet."""
import json
import sys
import threading
import time

import greenlet

chains = []
is_noting = True


def note():
    frame, chain = sys._getframe(1), []
    while frame:
        code = frame.f_code
        chain.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno])
        frame = frame.f_back
    if is_noting and chain[::-1] not in chains:
        chains.append(chain[::-1])


def burn():
    total = 0
    for i in range(3000):
        total += i * i
        total ^= i
    if is_noting:
        note()
    return total


class Ring:
    """Greenlets and the one that made them, one after the other."""
    def __init__(self, runs):
        self.members = [greenlet.greenlet(run) for run in runs] + [greenlet.getcurrent()]
        self.turn = len(runs)

    def switch(self):
        burn()
        self.turn = (self.turn + 1) % len(self.members)
        self.members[self.turn].switch(self)
        burn()


def shallow(ring):
    while True:
        ring.switch()
        burn()


def deep(ring, left=12):
    if left:
        deep(ring, left - 1)
        burn()
        return
    while True:
        ring.switch()


def key(ring):
    ring.switch()
    return burn()


def callbacks(ring):
    while True:
        sorted([ring] * 3, key=key)
        burn()


def generate(ring):
    while True:
        ring.switch()
        yield burn()


def generators(ring):
    for _ in generate(ring):
        burn()


def ends(parent):
    burn()


def short(ring):
    """Makes some that end, from below callbacks of C."""
    def make(_):
        burn()
        greenlet.greenlet(ends).switch(None)

    while True:
        list(map(make, range(2)))
        ring.switch()


def down(ring, left):
    if left:
        down(ring, left - 1)
    else:
        ring.switch()
    burn()


def run(until):
    ring = Ring([shallow, deep, callbacks, generators, short])
    for depth in range(1 << 30):
        down(ring, depth % 10 * 2)
        if time.time() > until and depth > 30:
            break


def start(until):
    thread = threading.Thread(target=run, args=(until,))
    thread.start()
    if not until:
        thread.join()


for end in (0, time.time() + float(sys.argv[1])):
    start(end)
    run(end)
    if is_noting:
        print(json.dumps(chains), flush=True)
    is_noting = False
