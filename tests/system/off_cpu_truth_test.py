#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Waits and run queue against what the kernel accounts for each thread: direct reads, a queue for a mutex, a thread
that changes CPUs while it sleeps, a real-time thread that takes the CPU, switches; who exits or becomes another
program while it waits; an agent that begins anew meanwhile; threads of the kernel, which wait for nobody."""
import glob
import os
import re
import shutil
import subprocess
import time

from harness import WORK, PROGRAMS, Agent, Server, build_programs, check, end, equal, need_bpf, note, program_copy, run, skip, start, wait_for

need_bpf()
build_programs("blocks")
SECONDS = 4


def begin(name, *arguments):
    return subprocess.Popen([program_copy("blocks", name), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def sums(server, type_, match, value="value", group_by="thread"):
    found = {}
    for frames, number in server.folded(type=type_, match=match, value=value, group_by=group_by):
        found[frames[0]] = found.get(frames[0], 0) + number
    return found


def measure(server, data):
    """(a sleeper that sleeps on, since when, what the threads say, the agent's counts)"""
    sleeper = subprocess.Popen([program_sleep(), "-n", "1"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    slept_from = time.monotonic()
    programs = [begin("blocks_work", "work", str(SECONDS), data), begin("blocks_exit", "exit"), begin("blocks_exec", "exec")]
    pids = ",".join(str(process.pid) for process in [sleeper, *programs])
    agent = Agent("--profile", "off-cpu,run-queue", "--report-interval", "1s", "--off-cpu-budget", "100%", "--pid", pids,
                  "--log-level", "debug", server=server)
    for program in programs:
        program.stdin.write("x")
        program.stdin.flush()
    said = programs[0].communicate(timeout=60)[0]
    for program in programs[1:]:
        program.communicate(timeout=30)
    agent.stop()
    line = [line for line in agent.text().splitlines() if "info waits" in line][-1]
    note(line)
    return sleeper, slept_from, said, {name: int(value) for name, value in re.findall(r"\b(\w+)=(\d+)", line)}


def test_truth():
    data = os.path.join(WORK, "direct")
    with open(data, "wb") as file:
        file.write(os.urandom(4 << 20))
        os.fsync(file.fileno())
    # An agent that gets no CPU for long finds its ring full, and says so: such a time is not measured.
    for attempt in range(3):
        server = Server("--symbol-dir", PROGRAMS, data="data%d" % attempt)
        sleeper, slept_from, said, counts = measure(server, data)
        if counts["stacks_lost"] <= 0.01 * counts["stacks"] or attempt == 2:
            break
        note("%d stacks of waits were lost: once more" % counts["stacks_lost"])
        server.stop()
        end(sleeper)
    kept = {line.split()[0]: dict(zip(("wall", "cpu", "delay", "voluntary", "involuntary"), map(int, line.split()[1:])))
            for line in said.splitlines()}
    ends(server)  # before the whole host's threads come in, others' sleep among them
    restarted(server, sleeper, slept_from)
    lost = counts["exact_s"] - counts["covered_s"] + 1 if counts["stacks_lost"] > 0.01 * counts["stacks"] else 0
    accounts(server, kept, counts["waits"], 1e9 * lost)


def program_sleep():
    """A copy of head under a name of its own, which waits until it is told something."""
    path = os.path.join(WORK, "sleeps_on")
    shutil.copy2(shutil.which("head"), path)
    return path


def accounts(server, kept, waits, lost):
    match = '{process="blocks_work"}'
    server.wait_for_names(lambda rows: any("sleep_and_move" in row[0] for row in rows), type="off-cpu", match=match)
    waited, starved = sums(server, "off-cpu", match), sums(server, "run-queue", match)
    blocks = sums(server, "off-cpu", match, "samples")
    for name, truth in kept.items():
        note("%s %s: off-cpu %d in %d, run-queue %d" % (
            name, truth, waited.get(name, 0), blocks.get(name, 0), starved.get(name, 0)))
        off = truth["wall"] - truth["cpu"]
        slack = 0.05 * truth["wall"] + 50e6
        # A wait lasts until the thread has a CPU again, so that part of the delay is in it and part is not.
        check(off - truth["delay"] - slack - lost <= waited.get(name, 0) <= off + slack,
              "%s: off-cpu is the time that the kernel gave it no CPU" % name,
              "%d, of %d off its CPU, %d of them in the run queue" % (waited.get(name, 0), off, truth["delay"]))
        # Ours begins when it is woken, the kernel's when another CPU has queued it, some microseconds later. Of
        # one that is moved while it sleeps the kernel's counts more: it may be in a queue still.
        if name != "moves":
            check(0.9 * truth["delay"] - slack <= starved.get(name, 0) <= 1.1 * truth["delay"] + 100e3 * truth["voluntary"] + slack,
                  "%s: run-queue is the kernel's own delay" % name, "%d of %d ns" % (starved.get(name, 0), truth["delay"]))
        check(blocks.get(name, 0) <= truth["voluntary"] + 5, "%s: no wait counts twice" % name,
              "%d of %d" % (blocks.get(name, 0), truth["voluntary"]))
    voluntary = sum(truth["voluntary"] for truth in kept.values())
    check(0 <= waits - voluntary + 5 <= 0.01 * voluntary + 100, "as many waits were counted as there were voluntary switches",
          "%d of %d" % (waits, voluntary))
    if subprocess.run(["chrt", "-f", "1", "true"], capture_output=True).returncode:
        skip("no real-time priority here: nobody takes the CPU from another")
    else:
        check(kept["behind"]["delay"] > 0.2 * kept["behind"]["wall"], "the real-time thread does take the CPU", kept["behind"])
    check(kept["moves"]["voluntary"] > 20, "the thread that changes CPUs does sleep", kept["moves"])
    rows = server.folded(type="off-cpu", value="value", match=match, group_by="thread")
    for name, function in (("read_direct", "read_direct"), ("convoy_a", "queue_for_lock"), ("moves", "sleep_and_move")):
        there = sum(value for frames, value in rows if frames[0] == name and function in frames[1:])
        check(there >= 0.9 * waited.get(name, 0) > 0, "%s waits in %s" % (name, function), "%d of %d" % (there, waited.get(name, 0)))
    disk = {frames[-1] for frames, _ in rows if frames[0] == "read_direct" and any("pread" in f for f in frames)}
    check(disk, "direct reads wait in the call that reads", [frames for frames, _ in rows if frames[0] == "read_direct"][:3])


def ends(server):
    """A wait that ends with its thread counts once, and no longer than the thread was there."""
    for name in ("blocks_exit", "blocks_exec"):
        rows = server.wait_for_names(lambda rows: any("sleep_ns" in row[0] for row in rows), type="off-cpu", value="value",
                                     match='{process="%s"}' % name)
        known = sum(value for frames, value in rows if "wait_for_ever" in frames)
        check(known <= 2e9, "%s: who waits for ever waited no longer than it was there" % name, known)
        own = sum(value for frames, value in rows if "main" in frames and "sleep_ns" in frames)
        check(1.4e9 <= own <= 2.5e9, "%s: what its first thread waited is there" % name, "%d\n%s" % (own, rows[:5]))
    rows = server.folded(type="off-cpu", value="value", match='{process="sleep"}')
    check(0.9e9 <= sum(value for _, value in rows) <= 1.5e9, "the program that it became waits under its own name", rows[:5])


def kernel_threads():
    names, others = set(), set()
    for stat in glob.glob("/proc/[0-9]*/stat"):
        try:
            text = open(stat).read()
        except OSError:
            continue
        name = text[text.index("(") + 1:text.rindex(")")]
        is_kernel = text.rpartition(")")[2].split()[1] == "2" or text.startswith(("2 ", "0 "))
        (names if is_kernel else others).add(name)
    return names - others


def restarted(server, sleeper, slept_from):
    """A second agent, for the whole host, while somebody still waits whom the first one saw fall asleep."""
    before = sum(sums(server, "off-cpu", '{process="sleeps_on"}').values())
    equal(before, 0, "a wait that lasts is not in off-cpu")
    agent = Agent("--profile", "off-cpu,run-queue,still-blocked", "--report-interval", "1s", server=server, log="second.log")
    # On a busy machine it takes the agent a while to look at everybody who waits for long.
    wait_for(lambda: sums(server, "still-blocked", '{process="sleeps_on"}'), 60)
    told = (time.monotonic() - slept_from) * 1e9
    sleeper.communicate(b"x\n", 60)
    slept = (time.monotonic() - slept_from) * 1e9
    wait_for(lambda: sums(server, "off-cpu", '{process="sleeps_on"}'), 15)
    time.sleep(1.5)  # it may come twice, were that wrong
    agent.stop()
    total = sum(sums(server, "off-cpu", '{process="sleeps_on"}').values())
    note("slept %d, off-cpu %d" % (slept, total))
    check(0.9 * told <= total <= 1.02 * slept, "a wait during which the agent began anew counts once, from its beginning",
          "%d of %d ns" % (total, slept))
    seen = set(sums(server, "off-cpu", "", group_by="process")) | set(sums(server, "run-queue", "", group_by="process"))
    check(len(seen) > 3, "the second agent saw the whole host", seen)
    wrong = {name for name in seen if name in kernel_threads() or name.startswith("swapper")}
    check(not wrong, "no thread of the kernel and no idle one is among them", wrong)


run(test_truth)
