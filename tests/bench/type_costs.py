# SPDX-License-Identifier: Apache-2.0
"""What each type of profile costs: the agent with on-cpu alone, with each other type beside it, and with all, one after
the other on the same load, so many rounds; then page faults alone while programs do nothing but touch memory.

type_rows() is the part "types" of bench.py. BENCH_TYPE_SECONDS (20) of each measurement, BENCH_TYPE_ROUNDS (2)."""
import os
import re
import statistics
import subprocess
import time

import loads
from cost import Window, cpu_ns, pss_kib
from harness import BUILD, CPUS, build_programs
from profilers import Ours

SECONDS = int(os.environ.get("BENCH_TYPE_SECONDS", "20"))
ROUNDS = int(os.environ.get("BENCH_TYPE_ROUNDS", "2"))
SETTLE_S = 8
MACHINE_BUDGET = "0.3 %"  # of what is on by default
STORM_PAGES = 4096        # touched and given back, again and again
STORM = """
import mmap, sys, time
while True:
    memory = mmap.mmap(-1, %d * 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(15)  # MADV_NOHUGEPAGE
    for at in range(0, len(memory), 4096):
        memory[at] = 1
    memory.close()
""" % STORM_PAGES


def offered():
    """The types that this agent takes, by its --help."""
    text = subprocess.run([BUILD + "/farflame-agent", "--help"], capture_output=True, text=True, check=True).stdout
    listed = re.search(r"what to profile: ((?:[a-z-]+, )*[a-z-]+), separated", " ".join(text.split()))
    return listed.group(1).split(", ")


def sets():
    others = [name for name in offered() if name != "on-cpu"]
    yield from [["on-cpu"], *(["on-cpu", name] for name in others)]
    if len(others) > 1:
        yield ["on-cpu", *others]


def measure(types, rate=19):
    """(percent of the machine in user space, in BPF, PSS in KiB, bytes of maps, samples in reports a second)"""
    agent = Ours(rate, "10s", ("--profile", ",".join(types)))
    time.sleep(SETTLE_S)
    costs = Window(agent.pid)
    time.sleep(SECONDS)
    costs.close()
    user, kernel = costs.shares()
    memory = max(pss_kib(agent.pid), agent.watch.take())
    agent.stop()
    return user, kernel, memory, costs.map_bytes


def on_load(row, what, budgets):
    seen = {}
    for _ in range(ROUNDS):
        for types in sets():
            seen.setdefault(",".join(types), (types, []))[1].append(measure(types))
    row("types on %s: user space + BPF; memory at most; maps" % what, "%d x %d s" % (ROUNDS, SECONDS))
    alone = sum(statistics.median([m[i] for m in seen["on-cpu"][1]]) for i in (0, 1))
    for types, measured in seen.values():
        user, kernel = (statistics.median([m[i] for m in measured]) for i in (0, 1))
        name = "all %d" % len(types) if len(types) > 2 else types[-1] if len(types) == 1 else "on-cpu and " + types[1]
        row("  " + name, "%.3f + %.3f = %.3f %%" % (user, kernel, user + kernel), MACHINE_BUDGET,
            "%+.3f %%; %.1f MB (%s); %.1f MiB (%s)" % (user + kernel - alone, max(m[2] for m in measured) / 1024, budgets[0],
                                                       max(m[3] for m in measured) / 2**20, budgets[1]))


def faults_of(pid):
    return int(open("/proc/%d/stat" % pid).read().rsplit(") ", 1)[1].split()[7])


def storm_load():
    load = loads.Processes()
    for _ in range(CPUS):
        load.add("/usr/bin/python3", "-c", STORM)
    return load


def storm_rows(row):
    """Beside what the agent takes without a storm."""
    agent = Ours(19, "10s", ("--profile", "page-fault"))
    time.sleep(SETTLE_S)
    costs = Window(agent.pid)
    time.sleep(SECONDS / 2)
    quiet = costs.close().shares()
    load = storm_load()
    time.sleep(SETTLE_S)
    pids = [process.pid for process in load.all]
    before, used, costs = sum(map(faults_of, pids)), sum(map(cpu_ns, pids)), Window(agent.pid)
    time.sleep(SECONDS)
    busy = costs.close().shares()
    faults, used = sum(map(faults_of, pids)) - before, sum(map(cpu_ns, pids)) - used
    load.end()
    agent.stop()
    row("page-fault, %.0f faults a second: user space + BPF" % (faults / costs.elapsed),
        "%.3f + %.3f = %.3f %%" % (*busy, sum(busy)), "0.1 %",
        "%.3f %% without them; %.2f us of CPU each for the program" % (sum(quiet), used / 1e3 / max(faults, 1)))


def type_rows(row):
    load = loads.fifty()
    time.sleep(SETTLE_S)
    on_load(row, "50 processes", ("12 MB", "16 MiB"))
    loads.two_hundred(load)
    time.sleep(SETTLE_S)
    on_load(row, "200 processes with JVM and node", ("24 MB", "32 MiB"))
    load.end()
    storm_rows(row)
