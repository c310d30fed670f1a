# SPDX-License-Identifier: Apache-2.0
"""What windows in allocators cost programs that know nothing of them, at --mem-budget 1 %: one that takes memory 10 million
times a second, and one that does it half a million times; beside the same without an agent, and beside what
gperftools' and jemalloc's own sampling costs the first. And how far what is said of a call site is off after a minute, by
the programs' own tallies: of all sites that take 5 % or more of what their program takes.

windows_rows() is the part "windows" of bench.py. BENCH_WINDOW_SECONDS (20) of each run, BENCH_WINDOW_ROUNDS (3) pairs,
BENCH_WINDOW_SITES (60) seconds for sites, 0 leaves them out."""
import os
import statistics
import subprocess

import ratios
from allocation_windows_test import Program, read
from harness import BUILD, PROGRAMS, WORK, Agent, build_programs, end, wait_for
from malloc_cost import malloc_peers, malloc_program

SECONDS = int(os.environ.get("BENCH_WINDOW_SECONDS", "20"))
ROUNDS = int(os.environ.get("BENCH_WINDOW_ROUNDS", "3"))
SITES = int(os.environ.get("BENCH_WINDOW_SITES", "60"))
LOG, BUDGET, NS_OF_ONE = "info allocations ", "1 %", 100
OFF, PART = 0.2, 0.05  # what a site may be off by that takes such a part


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


def agent_of(programs, budget):
    out = WORK + "/windows.otlp"
    agent = Agent("--profile", "mem-alloc", "--mem-budget", budget, "--output", out, "--report-interval", "600s", "--pid",
                  ",".join(str(program.process.pid) for program in programs),
                  log="windows-%d.log" % programs[0].process.pid, wait=False)
    agent.out = out
    if not wait_for(lambda: "info profiling" in agent.text(), 60):
        raise RuntimeError("the agent does not profile:\n" + agent.text())
    return agent


def watched(program):
    """(what it printed, the agent's own account)"""
    agent = agent_of([program], "1%")
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


def sites_row(row, name, program, count, budget):
    programs = [Program(program, SITES, str(20000 + 10000 * (i % 3))) for i in range(count)]
    agent = agent_of(programs, budget)
    for one in programs:
        one.go()
    tallies = [one.tally() for one in programs]
    sums, counters = read(agent, programs[0].path)
    known = {site: sum(tally[site] for tally in tallies) for site in tallies[0] if site.startswith("by_")}
    off = {site: sums.get(site, (0, 0))[0] / bytes_ - 1 for site, bytes_ in known.items()
           if bytes_ >= PART * sum(known.values())}
    worst = max(off.values(), key=abs)
    row("allocation windows, %s, %s: worst site of %d" % (name, budget, len(off)), "%+.1f %%, all %+.1f %%" % (
        worst * 100, (sum(sums.get(site, (0, 0))[0] for site in known) / sum(known.values()) - 1) * 100), "%d %%" % (OFF * 100),
        "%s; %s windows, %.1f of %d s unseen, load %.1f" % (
            ", ".join("%s %+.1f" % (site[3:], 100 * by) for site, by in off.items()), counters["windows"],
            int(counters["unseen_us"]) / 1e6, (int(counters["used_us"]) + int(counters["unseen_us"])) / 1e6, os.getloadavg()[0]))
    return abs(worst)


def windows_rows(row):
    build_programs("takes", "takes_cc")
    if SITES:
        for name, program, count in (("a C program", "takes", 1), ("a C++ program", "takes_cc", 1), ("24 programs", "takes", 24)):
            worst = sites_row(row, name + " for a minute", program, count, "20%")
            ratios.at_most("%s for a minute, 20%%: worst site, beside %d %%" % (name, OFF * 100), worst, OFF, 1)
        sites_row(row, "a C program for a minute", "takes", 1, "1%")  # few windows: no promise
    program = malloc_program()
    cost_row(row, "10 M mallocs/s", [program, str(SECONDS * 1000 // NS_OF_ONE)], busy_ns)
    cost_row(row, "half a million a second", [PROGRAMS + "/takes", str(SECONDS), "40000"], moderate_ns)
    malloc_peers(row, program)
