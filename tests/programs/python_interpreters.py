# SPDX-License-Identifier: Apache-2.0
"""One thread in an interpreter of its own, which another one has called, and one in the process' first, for SECONDS."""
import sys
import threading
import time

if sys.version_info >= (3, 13):
    import _interpreters as interpreters
else:
    import _xxsubinterpreters as interpreters

INSIDE = """
import time

def inner_leaf():
    total = 0
    for i in range(20000):
        total += i * i
    return total

def inner_main(until):
    while time.time() < until:
        inner_leaf()
        time.sleep(0.001)

inner_main(%r)
"""


def outer(until):
    call = interpreters.exec if sys.version_info >= (3, 13) else interpreters.run_string
    call(interpreters.create(), INSIDE % until)


def first_main(until):
    while time.time() < until:
        sum(i * i for i in range(20000))
        time.sleep(0.001)  # before 3.12 nothing else has an interpreter give its lock to another one


end = time.time() + float(sys.argv[1])
thread = threading.Thread(target=outer, args=(end,))
thread.start()
first_main(end)
thread.join()
