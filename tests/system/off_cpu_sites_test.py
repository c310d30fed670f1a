#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Estimates of waits per call site, at about 100 000 context switches a second, against the program's own clocks
and not scaled to any total; long waits, of which none may be missed.

FARFLAME_OFF_CPU_SECONDS=60 with FARFLAME_OFF_CPU_BUDGET=1% asks for 5 % at every call site."""
import os
import re
import subprocess

from harness import PROGRAMS, Agent, Server, build_programs, check, equal, need_bpf, note, program_copy, run

need_bpf()
build_programs("call_sites")
SECONDS = int(os.environ.get("FARFLAME_OFF_CPU_SECONDS", "6"))
BUDGET = os.environ.get("FARFLAME_OFF_CPU_BUDGET", "4%")


def profile(name, seconds, budget, *more):
    """({site: (times, ns)}, {site: (samples, ns)}, the agent's last word on waits)"""
    server = Server("--symbol-dir", PROGRAMS)
    program = subprocess.Popen([program_copy("call_sites", name), str(seconds), *more], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    agent = Agent("--profile", "off-cpu", "--report-interval", "1s", "--off-cpu-budget", budget, "--log-level", "debug",
                  "--pid", str(program.pid), server=server)
    done, _ = program.communicate("x", seconds + 60)
    agent.stop()
    exact = {line.split()[0]: tuple(map(int, line.split()[1:])) for line in done.splitlines()}
    where = {"match": '{process="%s"}' % name, "type": "off-cpu"}
    server.wait_for_names(lambda rows: any(set(exact) & set(row[0]) for row in rows), **where)
    estimates = {}
    for column, value in enumerate(("samples", "value")):
        for frames, number in server.folded(value=value, **where):
            for site in set(exact) & set(frames):
                estimates.setdefault(site, [0, 0])[column] += number
    line = re.findall("info waits .*", agent.text())[-1]
    note(line)
    return exact, estimates, {key: int(number) for key, number in re.findall(r"(\w+)=(\d+)", line)}


def test_estimates():
    exact, estimates, said = profile("estimates", SECONDS, BUDGET)
    is_long = SECONDS >= 60
    for site, (times, ns) in exact.items():
        samples, value = estimates.get(site, (0, 0))
        # Several standard errors of so many samples of equal length; each stands for a whole power of two.
        # Those of a site with waits of many lengths do not: a few stand for most of it.
        error = 0.05 if is_long else max(0.05, (15 if site.startswith("mixed") else 8) / max(samples, 1) ** 0.5)
        note("%-12s %7d waits %6d samples, %.3f of %.3f s: %.3f" % (site, times, samples, value / 1e9, ns / 1e9, value / ns))
        check(abs(value / ns - 1) <= error, "%s: what its waits add up to is within %.0f %%" % (site, error * 100),
              "%.3f of it with %d samples" % (value / ns, samples))
    samples = sum(samples for samples, _ in estimates.values())
    check(samples >= (5000 if is_long else 500), "there are %d samples" % samples)
    coverage = said["covered_s"] / said["exact_s"]
    check(abs(coverage - 1) <= (0.05 if is_long else 0.2), "what samples stand for is what was waited: %.3f" % coverage)
    equal(said["stacks_lost"] + said["ends_lost"] + said["refused"], 0, "no stack and no end of a wait was lost")


def test_long():
    """With the default budget."""
    exact, estimates, said = profile("long_waits", SECONDS, "0.1%", "long")
    seen = {site: numbers for site, numbers in estimates.items() if site in exact}
    missed = {site: times - seen.get(site, (0, 0))[0] for site, (times, _) in exact.items()}
    note("missed: %s" % {site: count for site, count in missed.items() if count})
    check(sum(missed.values()) <= 1 and min(missed.values()) >= 0, "none of its waits is missed, but one on a busy machine", missed)
    for site, (value, times) in {site: (seen[site][1], seen[site][0]) for site in seen}.items():
        ns = exact[site][1] * times / exact[site][0]
        check(abs(value / ns - 1) <= 0.02, "%s: they are as long as its own clock says" % site, "%d of %d ns" % (value, ns))
    check(said["escaped"] <= 2, "and the agent knows of none that was, but on a busy machine", said["escaped"])


run(test_estimates, test_long)
