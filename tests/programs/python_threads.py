# SPDX-License-Identifier: Apache-2.0
"""Threads with names of many kinds. Says its version, where its state is, and of each thread its number as the C library
has it and its name, in hexadecimal; then waits for good."""
import ctypes
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

symbol = "_PyRuntime" if sys.version_info >= (3, 7) else "_PyThreadState_Current"
state = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, symbol))
ready, threads = threading.Semaphore(0), []


def wait(*_):
    threads.append(threading.current_thread())
    ready.release()
    threading.Event().wait()


class Many(threading.Thread):
    def __init__(self, **more):
        for i in range(40):  # more than a class keeps the order of
            setattr(self, "attribute_%d" % i, i)
        super().__init__(**more)


class Other(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.more = vars(self)  # its attributes are a dict of their own


class Two(Other, dict):
    __hash__ = object.__hash__


def begin(thread):
    thread.daemon = True
    thread.run = wait
    thread.start()
    ready.acquire()


for name in ("plain", "größe", "測量" * 40, "😀", "x" * 300, "MainThread"):
    begin(threading.Thread(name=name))
begin(threading.Thread())
begin(Many(name="many"))
begin(Other())
begin(Two())
pool = ThreadPoolExecutor(2, "pool")
pool.submit(wait)
ready.acquire()
renamed = threading.Thread(name="before")
begin(renamed)
renamed.name = "after"
for _ in range(100):  # a table that has grown, and has holes
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
threads.append(threading.current_thread())
print(sys.hexversion, state, len(threads))
for thread in threads:
    print(thread.ident, thread.name.encode().hex() if sys.version_info >= (3, 5) else "")
sys.stdout.flush()
while sys.version_info < (3, 7):  # nobody finds its state while no thread runs
    pass
threading.Event().wait()
