# SPDX-License-Identifier: Apache-2.0
"""A program in Python as the part "python" of the bench starts many of: requests through 200 functions, ten deep, for a
share of one CPU. Runs with 3.6 and later.

python_load.py steady MODULE SHARE   until it is ended
python_load.py work MODULE COUNT     so many requests at once; prints the CPU seconds that they took
python_load.py fresh MODULE SECONDS  for so long
"""
import importlib.util
import sys
import time

REQUEST_HZ = 20


def name_thread(name):
    with open("/proc/self/comm", "w") as comm:
        comm.write(name)


def load(path):
    spec = importlib.util.spec_from_file_location("requests", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def steady(module, share):
    """REQUEST_HZ times a second work, then rest."""
    name_thread("bench-python")
    number = 0
    while True:
        begin, used = time.perf_counter(), time.process_time()
        while time.process_time() - used < share / REQUEST_HZ:
            module.request(number)
            number += 1
        time.sleep(max(0.001, begin + 1 / REQUEST_HZ - time.perf_counter()))


def work(module, count):
    for number in range(int(count / 10)):  # warm
        module.request(number)
    used = time.process_time()
    for number in range(int(count)):
        module.request(number)
    print(time.process_time() - used, flush=True)


def fresh(module, seconds):
    name_thread("bench-fresh")
    end, number = time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        module.request(number)
        number += 1


def main():
    module, number = load(sys.argv[2]), float(sys.argv[3])
    {"steady": steady, "work": work, "fresh": fresh}[sys.argv[1]](module, number)


main()
