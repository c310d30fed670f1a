# SPDX-License-Identifier: Apache-2.0
"""Runs the same few chains of calls again and again. First prints, as one line of JSON, which they are: for each the
frames from the root to the leaf as the interpreter itself has them, [function, file, line]. For CPython 3.6 and newer."""
import functools
import json
import sys
import threading
import time

sys.dont_write_bytecode = True
import python_awaits  # pylint: disable=wrong-import-position

chains = []
is_noting = True


def note():
    frame, chain = sys._getframe(1), []
    while frame:
        code = frame.f_code
        chain.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno])
        frame = frame.f_back
    if is_noting:
        chains.append(chain[::-1])


def burn():
    total = 0
    for i in range(300):
        total += i * i
        total ^= i
    if is_noting:
        note()
    return total


def one():
    return burn() + two()


def two():
    return three() + \
        burn()


def three():
    return four(
        burn(),
        2)


def four(a, b):
    return five() + a + b


def five():
    return burn()


class Größe:
    def 测量(self):
        return burn() + self.inner(self)

    class Inner:
        def __call__(self, outer):
            return burn()

    inner = Inner()


def key(x):
    return burn() + x


def generate():
    for i in range(3):
        yield burn() + i


def compare(a, b):
    return burn() * 0 + a - b


class Dying:
    def __del__(self):
        burn()


def hold():
    kept = Dying()
    if is_noting:
        note()
    return kept is None


class Made:
    def __init__(self, n):
        self.n = burn() + n


MADE = """def %s(n):
    return burn() + n
%s(1)
"""


def recurse(n):
    return recurse(n - 1) if n else burn()


def each():
    one()
    Größe().测量()
    sorted(range(3), key=key)
    sum(generate())
    list(map(lambda x: burn() + x, range(2)))
    sorted([2, 1], key=functools.cmp_to_key(compare))
    hold()
    python_awaits.each(burn)
    recurse(20)
    exec("burn()", globals())
    for name in ("one_made", "two_made"):
        exec(compile(MADE % (name, name), "<%s>" % name, "exec"), {"burn": burn})
    Made(1)
    return [burn() for _ in range(2)]


def run(until):
    while True:
        each()
        if time.time() > until:
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
