# SPDX-License-Identifier: Apache-2.0
"""Three threads of Python that wait: one for good, one for long and again, one very often and 40 calls deep."""
import threading
import time


def sleeps():
    while True:
        time.sleep(0.5)


def naps(left):
    if left:
        return naps(left - 1)
    while True:
        time.sleep(0.02)


def begins():
    threading.Thread(target=sleeps, daemon=True).start()
    threading.Thread(target=naps, args=(40,), daemon=True).start()
    time.sleep(3600)


begins()
