#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Page faults: how many bytes were touched for the first time and where, against the touching program's own
tally and the kernel's count of its faults."""
import os
import re
import subprocess
import time

from harness import (PROGRAMS, WORK, Agent, Server, build_programs, check, equal, need_bpf, note, program_copy, run)

need_bpf()
build_programs("touches")
LONG = bool(os.environ.get("PAGE_FAULT_LONG"))  # five thousand samples of each function and more
PAGES = 320000 if LONG else 80000
PAGE = 4096
FUNCTIONS = ("touch_once", "touch_twice", "touch_four_times", "touch_every_other", "touch_by_kernel", "touch_file")


def touch(server, *options):
    """Runs the program beside an agent. Returns its tally, function → (pages, minor, major), and the agent."""
    program = subprocess.Popen([program_copy("touches", "touches_known"), str(PAGES), os.path.join(WORK, "file")],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    agent = Agent("--profile", "on-cpu,page-fault", "--report-interval", "1s", *options, server=server)
    program.stdin.write("go\n")
    program.stdin.flush()
    tally = {}
    while len(tally) < len(FUNCTIONS) + 1:
        name, *numbers = program.stdout.readline().split()
        tally[name] = tuple(map(int, numbers))
    time.sleep(1)  # the last samples are of its last moments
    agent.stop()
    program.stdin.close()
    program.wait()
    return tally, agent


def sums(rows):
    found = {name: 0 for name in (*FUNCTIONS, "touch_populated")}
    for frames, value in rows:
        for name in found:
            if name in frames:
                found[name] += value
    return found


def test_tally():
    server = Server("--symbol-dir", PROGRAMS)
    tally, agent = touch(server, "--page-fault-budget", "100%")
    match = '{process="touches_known"}'
    server.wait_for_names(lambda rows: any("touch_once" in row[0] for row in rows), type="page-fault", match=match)
    values = sums(server.folded(type="page-fault", value="value", match=match))
    counts = sums(server.folded(type="page-fault", value="samples", match=match))
    lost = int(re.findall(r"info page faults .*stacks_lost=(\d+)", agent.text())[-1])
    stacks = int(re.findall(r"info page faults .*stacks=(\d+)", agent.text())[-1])
    note("%s %s %s lost %d of %d" % (tally, values, counts, lost, stacks))
    for name in FUNCTIONS:
        pages, minor, major = tally[name]
        faults = major if name == "touch_file" else minor
        expected = faults * PAGE
        slack = 0.1 * expected + lost / max(stacks, 1) * expected
        check(abs(values[name] - expected) <= slack, "%s touched as much as it says itself" % name,
              "%d, not %d, bytes in %d samples" % (values[name], expected, counts[name]))
        if name != "touch_file":
            check(counts[name] >= 0.75 * faults / 61 * (1 - lost / max(stacks, 1)), "%s has its samples" % name, counts[name])
    equal(values["touch_populated"], 0, "what MAP_POPULATE brings is not seen, as documented")
    by_kind = server.folded(type="page-fault", value="value", match=match, group_by="fault")
    major = sum(value for frames, value in by_kind if frames[0] == "major")
    in_file = sum(value for frames, value in by_kind if frames[0] == "major" and "touch_file" in frames)
    check(in_file and in_file >= 0.9 * tally["touch_file"][2] * PAGE and major >= in_file,
          "faults that waited for the disk are major", "%d of %d" % (in_file, major))
    answer = server.flamegraph(type="page-fault", value="value", match=match)
    equal(answer["unit"], "bytes", "the unit is bytes")


def test_budget():
    """The default budget: fewer stacks, and each stands for more."""
    server = Server("--symbol-dir", PROGRAMS, data="budget")
    tally, agent = touch(server)
    match = '{process="touches_known"}'
    server.wait_for_names(lambda rows: any("touch_once" in row[0] for row in rows), type="page-fault", match=match)
    values = sums(server.folded(type="page-fault", value="value", match=match))
    counts = sums(server.folded(type="page-fault", value="samples", match=match))
    note("%s %s" % (values, counts))
    expected = sum(tally[name][1] for name in FUNCTIONS if name != "touch_file") * PAGE
    found = sum(values[name] for name in FUNCTIONS if name != "touch_file")
    samples = sum(counts[name] for name in FUNCTIONS if name != "touch_file")
    check(samples < expected / PAGE / 61 / 2 and samples > 30, "fewer stacks are taken", samples)
    check(0.2 * expected < found < 3 * expected, "the sum stands for all that was touched",
          "%d of %d bytes in %d samples" % (found, expected, samples))


INTERPRETED = """
import ctypes
ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE
def state():
    fields = open("/proc/self/stat").read().rsplit(") ", 1)[1].split()
    return int(fields[7]), int(open("/proc/self/statm").read().split()[1])
input()
before = state()
memory = bytearray(400 << 20)
for at in range(0, len(memory), 4096):
    memory[at] = 1
after = state()
print(*[now - then for then, now in zip(before, after)], flush=True)
input()
"""


def test_interpreter():
    """CPython: what its resident set grows by, as the kernel says it."""
    server = Server("--symbol-dir", PROGRAMS, data="interpreter")
    program = subprocess.Popen(["/usr/bin/python3", "-c", INTERPRETED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    agent = Agent("--profile", "page-fault", "--pid", str(program.pid), "--report-interval", "1s", "--page-fault-budget", "100%",
                  "--upload", "never", server=server, log="interpreter.log")
    program.stdin.write("go\n")
    program.stdin.flush()
    faults, pages = map(int, program.stdout.readline().split())
    time.sleep(1)
    agent.stop()
    program.communicate("\n")
    value = sum(value for _, value in server.folded(type="page-fault", value="value"))
    samples = sum(value for _, value in server.folded(type="page-fault", value="samples"))
    note("%d bytes in %d samples; %d faults, %d pages more resident" % (value, samples, faults, pages))
    check(abs(value - faults * PAGE) <= 0.15 * faults * PAGE, "CPython's faults are there", "%d, not %d" % (value, faults * PAGE))
    check(abs(value - pages * PAGE) <= 0.15 * pages * PAGE, "and are what its resident set grew by",
          "%d, not %d" % (value, pages * PAGE))


run(test_tally, test_budget, test_interpreter)
