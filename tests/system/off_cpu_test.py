#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Threads off their CPU: how long they waited and where, against the waiting program's own clocks; what must
not appear; who woke them."""
import shutil
import subprocess

from harness import (PROGRAMS, Agent, Server, build_programs, check, equal, need_bpf, note, program_copy, run, start,
                     wait_for)

need_bpf()
build_programs("waits")
SECONDS = 5
WAITS = ("sleep_1ms", "sleep_5ms", "sleep_20ms", "sleep_150ms", "wait_futex", "wait_vfork", "read_answer")
NEVER = ("spin_only", "yield_only")


def by_thread(rows):
    """thread → (value, value of complete stacks in the function of the thread's name)"""
    sums = {}
    for frames, value in rows:
        total, known = sums.get(frames[0], (0, 0))
        sums[frames[0]] = (total + value, known + (value if frames[0] in frames[1:] else 0))
    return sums


def profile():
    """One run, all types, nothing left out: (server, the program's tallies, agent)"""
    server = Server("--symbol-dir", PROGRAMS)
    agent = Agent("--report-interval", "1s", "--profile", "on-cpu,off-cpu,waker,run-queue,still-blocked",
                  "--off-cpu-budget", "100%", "--log-level", "debug", server=server)
    # Once, so that its code is known: stacks of the first moment may be incomplete.
    subprocess.run([PROGRAMS + "/waits", "1"], stdout=subprocess.DEVNULL, check=True)
    done = subprocess.run([program_copy("waits", "waits_known"), str(SECONDS)], capture_output=True, text=True, check=True)
    tallies = {}
    for line in done.stdout.splitlines():
        name, times, ns, _ = line.split()
        tallies[name] = (int(times), int(ns))
    agent.stop()
    return server, tallies, agent


def test_waits():
    server, tallies, agent = profile()
    match = '{process="waits_known"}'
    where = {"match": match, "group_by": "thread"}
    rows = server.wait_for_names(lambda rows: any("sleep_5ms" in row[0][1:] for row in rows), type="off-cpu", **where)
    values = by_thread(server.folded(type="off-cpu", value="value", **where))
    counts = by_thread(server.folded(type="off-cpu", value="samples", **where))
    lost = "threads_full" in agent.text() and "refused=0" not in agent.text()
    note("off-cpu %s" % values)
    for name in WAITS:
        times, ns = tallies[name]
        value, known = values.get(name, (0, 0))
        check(0.9 * ns <= value <= 1.1 * ns,
              "%s waited as long as its own clock says" % name, "%d of %d ns, lost: %s" % (value, ns, lost))
        check(known >= 0.9 * value, "%s waits in the function of that name" % name, "%d of %d ns" % (known, value))
        check(counts.get(name, (0, 0))[0] >= 0.8 * times, "%s: nearly every wait has its stack" % name,
              "%s of %d" % (counts.get(name), times))
    for name in NEVER:
        _, known = values.get(name, (0, 0))
        equal(known, 0, "%s never waits there" % name)
    leaves = {frames[-1] for frames, _ in rows if frames[0] == "sleep_5ms"}
    check(leaves and not any(leaf.startswith(("schedule", "__schedule", "bpf_")) for leaf in leaves),
          "the leaf is the function that sleeps, not the scheduler", leaves)
    wakers(server, match, tallies)
    run_queue(server, match)
    accounting(server)


def wakers(server, match, tallies):
    rows = server.folded(type="off-cpu", value="value", match=match, group_by="thread,waker")
    woken = sum(value for frames, value in rows if frames[0] == "read_answer")
    helper = sum(value for frames, value in rows if frames[0] == "read_answer" and frames[1] == "waits_known")
    check(woken and helper >= 0.8 * woken, "who waits for an answer is woken by who answers", "%d of %d" % (helper, woken))
    rows = server.folded(type="waker", value="value", match=match)
    answer = sum(value for frames, value in rows if "answer" in frames and "help" in frames)
    ns = tallies["read_answer"][1]
    check(0.8 * ns <= answer <= 1.2 * ns, "the waker's stack is the one that wrote the answer", "%d of %d" % (answer, ns))


def run_queue(server, match):
    values = by_thread(server.folded(type="run-queue", value="value", match=match, group_by="thread"))
    check(values.get("spin_only", (0, 0))[0] > 0, "who is preempted while it spins is in the run queue", values)


def accounting(server):
    """Every type's samples are accounted for, and on-cpu's as before."""
    for kind in ("on-cpu", "off-cpu"):
        answer = server.flamegraph(type=kind)["accounting"]
        equal(answer["lost_by"].get("unexplained", 0), 0, "no %s sample is unexplained" % kind)
        equal(answer["taken"], answer["samples"] + answer["lost"], "%s: taken = samples + lost" % kind)


def test_still_blocked():
    """Not in off-cpu before it wakes; still-blocked meanwhile; once, with its whole length, afterwards."""
    server = Server(data="data2")
    agent = Agent("--report-interval", "1s", "--profile", "off-cpu,still-blocked", "--off-cpu-budget", "100%",
                  server=server)
    sleeper = start([shutil.which("sleep"), "12.5"])
    where = {"match": '{process="sleep"}', "value": "value"}
    rows = wait_for(lambda: server.folded(type="still-blocked", **where), 30)
    if check(rows, "a thread that waits for more than ten seconds is still-blocked"):
        check(sleeper.poll() is not None or sum(value for _, value in server.folded(type="off-cpu", **where)) < 1e9,
              "it is not in off-cpu before it wakes")
    sleeper.wait(30)
    total = wait_for(lambda: sum(value for _, value in server.folded(type="off-cpu", **where)) > 12e9, 20)
    check(total, "and is when it has")
    agent.stop()
    total = sum(value for _, value in server.folded(type="off-cpu", **where))
    check(12.4e9 <= total <= 13.5e9, "once", total)
    equal(server.flamegraph(type="on-cpu")["accounting"]["samples"], 0, "on-cpu was not asked for")


run(test_waits, test_still_blocked)
