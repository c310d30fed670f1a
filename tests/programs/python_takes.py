# SPDX-License-Identifier: Apache-2.0
"""Takes memory in functions whose bytes it knows: python_takes.py SECONDS ROUNDS [at-once]. Says "ready", waits for a line, and
says then for each function how many bytes that was, by sys.getsizeof(). Ends with another line, or at once."""
import sys
import time

ROUNDS_KEPT = 96
CPU = 0.3


def by_bytes_small():
    out = [None] * 500
    for i in range(500):
        out[i] = bytes(100)
    return out


def by_bytes_large():
    out = [None] * 38
    for i in range(38):
        out[i] = bytes(2000)
    return out


def by_lists():
    out = [None] * 175
    for i in range(175):
        out[i] = [None] * 30
    return out


def by_tuples():
    out = [None] * 250
    for i in range(250):
        out[i] = tuple([i] * 25)
    return out


def by_strings():
    out = [None] * 200
    for i in range(200):
        out[i] = "x" * (50 + i * 2)
    return out


def by_dicts():
    out = [None] * 150
    for i in range(150):
        out[i] = {1: None, 2: None, 3: None}
    return out


def by_growing():
    out = []
    for i in range(1000):
        out.append(None)
    return out


def size_of(made, name):
    if name == "by_growing":  # each time it grows it takes all of it anew
        sizes, out = set(), []
        for i in range(len(made)):
            out.append(None)
            sizes.add(sys.getsizeof(out))
        return sum(sizes)
    return sys.getsizeof(made) + sum(sys.getsizeof(piece) for piece in made)


def work(rounds):
    odd = 0
    for i in range(rounds):
        odd += i & 1
    return odd


def main():
    functions = [by_bytes_small, by_bytes_large, by_lists, by_tuples, by_strings, by_dicts, by_growing]
    sizes = {function.__name__: size_of(function(), function.__name__) for function in functions}
    counts = dict.fromkeys(sizes, 0)
    print("ready", flush=True)
    sys.stdin.readline()
    began, seconds = time.time(), float(sys.argv[1])
    kept = []
    # On a busy machine until it has had CPU time enough to be seen.
    while time.time() < began + seconds or (time.process_time() < CPU * seconds and time.time() < began + 4 * seconds):
        for function in functions:
            kept.append(function())
            counts[function.__name__] += 1
            work(int(sys.argv[2]))
        if len(kept) >= ROUNDS_KEPT * len(functions):
            kept = []
    for name, count in counts.items():
        print(name, count * sizes[name], flush=True)
    if sys.argv[3:] != ["at-once"]:
        sys.stdin.readline()


main()
