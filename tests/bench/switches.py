# SPDX-License-Identifier: Apache-2.0
"""What it costs to follow threads off their CPU, at 20 000 and at 100 000 context switches a second: BPF's time for each,
the agent's CPU, and what the program itself pays for each; perf sched record beside it in the same run.

switch_rows() is the part "switches" of bench.py. BENCH_SWITCH_SECONDS (6) of each measurement, BENCH_SWITCH_ROUNDS (2)."""
import os
import shutil
import statistics
import subprocess
import time

import ratios
from cost import Window, cpu_ns, descriptors, family
from harness import CPUS, WORK, end, start
from profilers import Ours

SECONDS = int(os.environ.get("BENCH_SWITCH_SECONDS", "6"))
ROUNDS = int(os.environ.get("BENCH_SWITCH_ROUNDS", "2"))
RATES = (20000, 100000)
TRACING = "26"  # BPF_PROG_TYPE_TRACING: the program at each switch, where there are trampolines
FEW_STACKS = "0.001%"


def load(rate):
    return subprocess.Popen([WORK + "/switch_load", str(rate), str(SECONDS)], stdout=subprocess.PIPE, text=True)


def load_said(process):
    """(switches a second, nanoseconds of CPU for each)"""
    switches, used = map(int, process.communicate(timeout=SECONDS + 60)[0].split())
    return switches / SECONDS, used / max(switches, 1)


def at_switches(pid):
    """(nanoseconds, runs) of the program at each switch: of those of its kind the one that runs the most."""
    found = [(int(info["run_time_ns"]), int(info["run_cnt"])) for member in family(pid) for info in descriptors(member)
             if info.get("prog_type") == TRACING and "run_cnt" in info]
    return max(found, key=lambda of: of[1], default=(0, 0))


def nobody(rate):
    return load_said(load(rate))[1], None


def ours(rate, *more):
    """(nanoseconds of the program's CPU a switch, (BPF ns a switch, per cent of a CPU in BPF, in user space))"""
    agent = Ours(19, "10s", ("--profile", "off-cpu", *more))
    time.sleep(3)
    costs, before = Window(agent.pid), at_switches(agent.pid)
    cost = load_said(load(rate))[1]
    after = at_switches(agent.pid)
    costs.close()
    user, kernel = (share * CPUS for share in costs.shares())
    agent.stop()
    return cost, ((after[0] - before[0]) / max(after[1] - before[1], 1), kernel, user)


def perf(rate):
    """(the same, (0, 0, per cent of a CPU of perf itself)), tracefs mounted for it alone."""
    process = start(["unshare", "-m", "sh", "-c", 'mount -t tracefs tracefs /sys/kernel/tracing; exec "$@"', "sh",
                     "perf", "sched", "record", "-o", WORK + "/sched.data"], "perf.log")
    time.sleep(2)
    if process.poll() is not None:
        return None
    before, began = cpu_ns(process.pid), time.monotonic()
    cost = load_said(load(rate))[1]
    used, elapsed = cpu_ns(process.pid) - before, time.monotonic() - began
    end(process, 60, 2)  # SIGINT: it writes its file to the end
    return cost, (0, 0, 100 * used / elapsed / 1e9)


def switch_rows(row):
    os.makedirs(WORK, exist_ok=True)
    subprocess.run(["cc", "-O2", "tests/bench/switch_load.c", "-o", WORK + "/switch_load"], check=True)
    kinds = {"nobody": nobody, "few stacks": lambda rate: ours(rate, "--off-cpu-budget", FEW_STACKS), "farflame": ours}
    if shutil.which("perf"):
        kinds["perf sched record"] = perf
    for rate in RATES:
        seen = {name: [] for name in kinds}
        for _ in range(ROUNDS):  # one after the other, so that what else goes on is in all of them
            for name, measure in kinds.items():
                seen[name].append(measure(rate))
        seen = {name: runs for name, runs in seen.items() if None not in runs}
        alone = min(cost for cost, _ in seen["nobody"])
        row("off-cpu at %d switches a second" % rate, "%d x %d s" % (ROUNDS, SECONDS), "", "%.0f ns of CPU each without" % alone)
        few = min(more[0] for _, more in seen["few stacks"])
        row("  BPF's time for a switch without a stack", "%.0f ns" % few, "300 ns", "bpf_stats' own time included")
        paid = {name: max(min(cost for cost, _ in runs) - alone, 1) for name, runs in seen.items()}
        ratios.at_most("what a program pays for a switch beside perf sched record, %d/s" % rate, paid["farflame"],
                       paid.get("perf sched record"), 0.5)
        for name in list(seen)[2:]:
            kernel, user = (statistics.median(more[i] for _, more in seen[name]) for i in (1, 2))
            row("  " + name, "%.2f + %.2f %% of a CPU" % (user, kernel), "1 %" if rate == RATES[0] and name == "farflame" else "",
                "user space + BPF; the program pays %+.0f ns a switch" % paid[name])
