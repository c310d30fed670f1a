# SPDX-License-Identifier: Apache-2.0
"""What windows in allocators cost programs that know nothing of them, at --mem-budget 1 %: one that takes memory 10 million
times a second, and one that does it half a million times; beside the same without an agent, and beside what
gperftools' and jemalloc's own sampling costs the first.

windows_rows() is the part "windows" of bench.py. BENCH_WINDOW_SECONDS (20) of each run, BENCH_WINDOW_ROUNDS (3) pairs."""
import os
import statistics
import subprocess

from harness import BUILD, PROGRAMS, WORK, Agent, build_programs, end, wait_for
from malloc_cost import malloc_peers, malloc_program

SECONDS = int(os.environ.get("BENCH_WINDOW_SECONDS", "20"))
ROUNDS = int(os.environ.get("BENCH_WINDOW_ROUNDS", "3"))
LOG, BUDGET, NS_OF_ONE = "info allocations ", "1 %", 100


class Waiting:
    """A program that begins when it is told, so that its number is known before."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen(["sh", "-c", 'read -r line && exec "$@"', "sh", *arguments], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def run(self):
        return self.process.communicate("\n\n")[0]


def busy_ns(text):
    return float(text.split()[0])


def moderate_ns(text):
    said = dict(line.split() for line in text.splitlines() if " " in line)
    return int(said["cpu_ns"]) / int(said["turns"])


def watched(program):
    """(what it printed, the agent's own account)"""
    agent = Agent("--profile", "mem-alloc", "--mem-budget", "1%", "--output", WORK + "/windows.otlp", "--report-interval", "600s",
                  "--pid", str(program.process.pid), log="windows-%d.log" % program.process.pid, wait=False)
    if not wait_for(lambda: "info profiling" in agent.text(), 60):
        raise RuntimeError("the agent does not profile:\n" + agent.text())
    text = program.run()
    end(agent.process)
    line = [line for line in agent.text().splitlines() if LOG in line][-1]
    return text, {name: float(value) for name, value in (word.split("=") for word in line.split(LOG)[1].split())}


def cost_row(row, name, arguments, ns_of):
    pairs, counts = [], {}
    for _ in range(ROUNDS):
        without = ns_of(Waiting(*arguments).run())
        text, counters = watched(Waiting(*arguments))
        pairs.append((without, ns_of(text)))
        for key, value in counters.items():
            counts[key] = counts.get(key, 0) + value
    row("allocation windows, %s: CPU" % name, "%+.2f %%, %.2f %% by probes" % (
        (statistics.median(with_it / without for without, with_it in pairs) - 1) * 100,
        counts["cost_us"] / max(counts["used_us"] + counts["unseen_us"], 1) * 100), BUDGET,
        "%d windows, %d samples, %d of %d cut off" % (counts["windows"], counts["samples"], counts["cut_off"], ROUNDS))


def windows_rows(row):
    build_programs("takes")
    program = malloc_program()
    cost_row(row, "10 M mallocs/s", [program, str(SECONDS * 1000 // NS_OF_ONE)], busy_ns)
    cost_row(row, "half a million a second", [PROGRAMS + "/takes", str(SECONDS), "40000"], moderate_ns)
    malloc_peers(row, program)
