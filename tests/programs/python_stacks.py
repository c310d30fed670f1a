# SPDX-License-Identifier: Apache-2.0
"""Stacks of every shape that CPython's list of frames has, for some time: python_stacks.py SECONDS. Plain Python 3.6.

The first thread goes deep, through C into Python again (sorted, map, a class' own __getattr__ and __del__), through
generators and a coroutine, eval() and exceptions; the second one is in C without the lock for most of its time, the
third one waits.
"""
import sys
import threading
import time
import zlib

END = time.monotonic() + float(sys.argv[1])
WORDS = list(range(40))


def leaf(number):
    total = 0
    for i in range(60):
        total += i ^ number
    return total


def deep(left, then):
    if left:
        return deep(left - 1, then) + 1
    return then()


def through_sorted():
    return len(sorted(WORDS[:9], key=lambda number: leaf(number)))


def through_map():
    return sum(map(leaf, WORDS[:9]))


def numbers(count):
    for number in range(count):
        yield leaf(number)


def through_generators():
    def outer():
        yield from numbers(9)
    return sum(value for value in outer())


class Attributes:
    def __getattr__(self, name):
        return leaf(len(name))

    def __del__(self):
        leaf(1)


def through_attributes():
    return Attributes().anything + getattr(Attributes(), "other")


async def coroutine(left):
    if left:
        return await coroutine(left - 1)
    return leaf(left)


def through_coroutine():
    try:
        coroutine(5).send(None)
    except StopIteration as end:
        return end.value


def through_eval():
    return eval("leaf(3) + through_map()")


def through_exception():
    try:
        deep(3, lambda: leaf(1) / 0)
    except ZeroDivisionError:
        return leaf(2)


WAYS = [through_sorted, through_map, through_generators, through_attributes, through_coroutine, through_eval,
        through_exception]


def first():
    depths = [0, 3, 30, 300]
    turn = 0
    while time.monotonic() < END:
        deep(depths[turn % 4], WAYS[turn % len(WAYS)])
        turn += 1


def without_lock():
    piece = bytes(1 << 20)
    while time.monotonic() < END:
        zlib.crc32(piece)


def waits():
    while time.monotonic() < END:
        time.sleep(0.01)


sys.setrecursionlimit(5000)
for function in (without_lock, waits):
    threading.Thread(target=function, daemon=True).start()
first()
