# SPDX-License-Identifier: Apache-2.0
"""Takes arrays of known sizes in functions of its own: numpy_takes.py SECONDS ROUNDS. Says "ready", waits for a line, and says
then for each function how many bytes that was; ends with another line."""
import sys
import time

import numpy

KEPT = 48
CPU = 0.3
NUMBERS = numpy.arange(6000, dtype=numpy.float64)
HALF, EVEN = NUMBERS[:3000], numpy.arange(0, 6000, 2)


def by_empty():
    return [numpy.empty(8000) for _ in range(10)], 10 * 64000


def by_zeros():
    return [numpy.zeros(5000) for _ in range(10)], 10 * 40000


def by_arange():
    return [numpy.arange(4000) for _ in range(10)], 10 * 32000


def by_adding():
    return [NUMBERS + NUMBERS for _ in range(10)], 10 * 48000


def by_copying():
    return [HALF.copy() for _ in range(20)], 20 * 24000


def by_joining():
    return [numpy.concatenate((HALF, HALF, HALF)) for _ in range(5)], 5 * 72000


def by_converting():
    return [NUMBERS.astype(numpy.float32) for _ in range(15)], 15 * 24000


def by_choosing():
    return [NUMBERS[EVEN] for _ in range(15)], 15 * 24000


def by_resizing():  # each time it takes all of it anew
    out, taken = [], 0
    for _ in range(5):
        array = numpy.empty(1000)
        taken += 8000
        for size in (3000, 6000):
            array.resize(size, refcheck=False)
            taken += size * 8
        out.append(array)
    return out, taken


def by_pages():  # each is mapped by itself
    return numpy.empty(60000), 480000


def work(rounds):
    odd = 0
    for i in range(rounds):
        odd += i & 1
    return odd


def main():
    functions = [by_empty, by_zeros, by_arange, by_adding, by_copying, by_joining, by_converting, by_choosing, by_resizing, by_pages]
    counts, kept = dict.fromkeys((function.__name__ for function in functions), 0), []
    print("ready", flush=True)
    sys.stdin.readline()
    began, seconds = time.time(), float(sys.argv[1])
    # On a busy machine until it has had CPU time enough to be seen.
    while time.time() < began + seconds or (time.process_time() < CPU * seconds and time.time() < began + 4 * seconds):
        for function in functions:
            made, taken = function()
            counts[function.__name__] += taken
            kept.append(made)
            work(int(sys.argv[2]))
        if len(kept) >= KEPT * len(functions):
            kept = []
    for name, count in counts.items():
        print(name, count, flush=True)
    sys.stdin.readline()


main()
