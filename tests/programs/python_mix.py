# SPDX-License-Identifier: Apache-2.0
"""Python in C++ in Python, until it is ended: python_mix.py LIBRARY (python_mix.cc). First prints, as one line of JSON,
which functions of both call each other where it computes, root first. Plain ctypes, for CPython 3.6 and newer."""
import ctypes
import json
import sys

CALL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
library = ctypes.CDLL(sys.argv[1])
CHAINS = {
    "plain": ["run", "mix_plain", "called", "plain", "burn"],
    "in_flight": ["run", "mix_plain", "called", "plain", "mix_catches", "mix_throws", "~mix_guard", "mix_in_flight", "called",
                  "in_flight", "burn"],
    "caught": ["run", "mix_plain", "called", "plain", "mix_catches", "called", "caught", "burn"],
}


def burn():
    total = 0
    for i in range(2000):
        total += i * i
    return total


def plain(number):
    burn()
    return library.mix_catches(number + 1)


def in_flight(number):
    return burn() * 0 + number


def caught(number):
    return burn() * 0 - number


def called(number):
    if number == 1:
        return plain(number)
    return in_flight(number) if number > 0 else caught(number)


def run():
    return library.mix_plain(1)


callback = CALL(called)
ctypes.c_void_p.in_dll(library, "call").value = ctypes.cast(callback, ctypes.c_void_p).value
print(json.dumps(list(CHAINS.values())), flush=True)
while True:
    run()
