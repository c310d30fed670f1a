#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Threads off their CPU: how long they waited and where, against the waiting program's own clocks; what must
not appear; who woke them, and what they waited for."""
import glob
import os
import re
import shutil
import signal
import subprocess
import time

from harness import (CPUS, PROGRAMS, WORK, Agent, Server, build_programs, check, end, equal, fd_links, need_bpf, note, program_copy,
                     run, start, wait_for)

need_bpf()
build_programs("waits")
SECONDS = 5
# thread → what it waits for, who wakes it, by which thread
CAUSES = {"sleep_5ms": ("sleep", "timer", ""), "wait_futex": ("lock", "timer", ""), "wait_vfork": ("child", "wait_vfork", ""),
          "read_answer": ("pipe", "waits_woken", "pipe_writer"), "read_socket": ("socket", "waits_woken", "socket_server"),
          "wait_unlock": ("lock", "waits_woken", "unlocker")}
WAITS = ("sleep_1ms", "sleep_5ms", "sleep_20ms", "sleep_150ms", "wait_futex", "wait_vfork", "read_answer", "read_socket",
         "wait_unlock")
NEVER = ("spin_only", "yield_only")


def by_thread(rows):
    """thread → (value, value of stacks in the function of the thread's name, of whole ones that are not)"""
    sums = {}
    for frames, value in rows:
        total, known, other = sums.get(frames[0], (0, 0, 0))
        is_known = frames[0] in frames[1:]
        is_other = not is_known and not any(frame.startswith("[incomplete") for frame in frames)
        sums[frames[0]] = (total + value, known + value * is_known, other + value * is_other)
    return sums


def children(pid):
    found = []
    for stat in glob.glob("/proc/[0-9]*/stat"):
        try:
            fields = open(stat).read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.split("/")[2]))
    return found


def test_all():
    """One run of all types, nothing left out."""
    server = Server("--symbol-dir", PROGRAMS)
    config = os.path.join(WORK, "agent.conf")
    with open(config, "w") as file:
        file.write("profile = on-cpu,off-cpu,waker,run-queue,still-blocked\n")
    # Only these: on a busy host everything, without a budget, is more than the ring takes.
    sleeper = start([shutil.which("sleep"), "16"])
    begin = time.monotonic()
    program = subprocess.Popen([program_copy("waits", "waits_known"), str(SECONDS)], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    helper = wait_for(lambda: children(program.pid), 10)
    agent = Agent("--config", config, "--report-interval", "1s", "--off-cpu-budget", "100%", "--log-level", "debug",
                  "--pid", ",".join(map(str, [sleeper.pid, program.pid, *helper])), server=server)
    is_prompt(agent.process.pid)
    done, _ = program.communicate("x", 60)
    tallies = {}
    for line in done.splitlines():
        name, times, ns, _ = line.split()
        tallies[name] = (int(times), int(ns))
    still_blocked(server, sleeper, begin)
    other_types(server, agent, config)
    agent.stop()
    waits(server, tallies, declared_loss(agent.text()))
    exact_counts(server, {name: tally for name, tally in tallies.items() if name not in NEVER})


def is_prompt(pid):
    """Where sessions are groups to the scheduler, a priority within its own group would starve it."""
    try:
        group = open("/proc/%d/autogroup" % pid).read()
    except OSError:
        return
    if open("/proc/sys/kernel/sched_autogroup_enabled").read().strip() == "1":
        check(group.rstrip().endswith(" nice -10"), "the agent's session has the agent's priority", group)


def declared_loss(log):
    """The share of the time without a stack, which a machine too busy to read the ring says itself: by chance one that is
    lost stands for as many waits as the others."""
    line = re.findall("info waits .*", log)[0]
    count = {name: int(number) for name, number in re.findall(r"(\w+)=(\d+)", line)}
    lost = count["stacks_lost"] + count["ends_lost"] + count["refused"]
    note(line)
    uncovered = 1 - count["covered_s"] / max(count["exact_s"], 1) if lost else 0
    return max(uncovered, lost / max(count["stacks"] + lost, 1))


def waits(server, tallies, loss):
    match = '{process="waits_known"}'
    where = {"match": match, "group_by": "thread"}
    rows = server.wait_for_names(lambda rows: any("sleep_5ms" in row[0][1:] for row in rows), type="off-cpu", **where)
    values = by_thread(server.folded(type="off-cpu", value="value", **where))
    counts = by_thread(server.folded(type="off-cpu", value="samples", **where))
    note("off-cpu %s" % values)
    for name in WAITS:
        times, ns = tallies[name]
        value, known, other = values.get(name, (0, 0, 0))
        check((0.9 - 2 * loss) * ns <= value <= 1.1 * ns,
              "%s waited as long as its own clock says" % name, "%d of %d ns" % (value, ns))
        check(known and other <= 0.02 * value, "%s waits in the function of that name" % name,
              "%d and %d of %d ns" % (known, other, value))
        times *= 2 if name == "wait_vfork" else 1  # for the child's exit too
        check(counts.get(name, (0,))[0] <= 1.1 * times + 10, "%s: no wait counts twice" % name,
              "%s of %d" % (counts.get(name), times))
    for name in NEVER:
        known = values.get(name, (0, 0, 0))[1]
        equal(known, 0, "%s never waits there" % name)
    leaves = {frames[-1] for frames, _ in rows if frames[0] == "sleep_5ms"}
    check(leaves and not any(leaf.startswith(("schedule", "__schedule", "bpf_")) for leaf in leaves),
          "the leaf is the function that sleeps, not the scheduler", leaves)
    wakers(server, match, tallies, loss)
    run_queue(server, match)
    accounting(server)


def wakers(server, match, tallies, loss):
    rows = server.folded(type="off-cpu", value="value", match=match, group_by="thread,waker")
    woken = sum(value for frames, value in rows if frames[0] == "read_answer")
    helper = sum(value for frames, value in rows if frames[0] == "read_answer" and frames[1] == "waits_known")
    check(woken and helper >= 0.8 * woken, "who waits for an answer is woken by who answers", "%d of %d" % (helper, woken))
    rows = server.folded(type="waker", value="value", match=match)
    leaves = {frames[-1] for frames, _ in rows}
    check(leaves and all(leaf.startswith("try_to_wake_up") for leaf in leaves),
          "the leaf is the function that wakes, not what watches it", leaves)
    answer = sum(value for frames, value in rows if "answer" in frames and "help" in frames)
    unknown = sum(value for frames, value in rows if any(frame.startswith("[incomplete") for frame in frames))
    ns = tallies["read_answer"][1]
    check(answer and answer <= 1.1 * ns and answer + unknown >= (0.8 - 2 * loss) * ns,
          "the waker's stack is the one that wrote the answer", "%d, incomplete %d, of %d" % (answer, unknown, ns))


def run_queue(server, match):
    values = by_thread(server.folded(type="run-queue", value="value", match=match, group_by="thread"))
    check(values.get("spin_only", (0,))[0] > 0, "who is preempted while it spins is in the run queue", values)


def accounting(server):
    """Every type's samples are accounted for, and on-cpu's as before."""
    for kind in ("on-cpu", "off-cpu"):
        answer = server.flamegraph(type=kind)["accounting"]
        equal(answer["lost_by"].get("unexplained", 0), 0, "no %s sample is unexplained" % kind)
        equal(answer["taken"], answer["samples"] + answer["lost"], "%s: taken = samples + lost" % kind)
    check("exact" not in server.flamegraph(type="on-cpu")["accounting"], "on-cpu has no exact count beside its samples")


def exact_counts(server, tallies):
    """What the kernel side counted without stacks is in the answers, and stands beside the program's own clocks."""
    own = sum(ns for _, ns in tallies.values())
    for kind in ("off-cpu", "run-queue"):
        answer = wait_for(lambda: (lambda a: a if a.get("exact") else None)(server.flamegraph(type=kind, value="value")["accounting"]), 10)
        if not check(answer, "%s has an exact count beside its samples" % kind):
            continue
        note("%s: exact %d, covered %d, value %d, own clocks %d" % (
            kind, answer["exact"], answer["covered"], answer["value"], own))
        equal(answer["covered"], answer["value"], "%s: what is covered is what the samples say" % kind)
        if kind == "off-cpu":
            check(answer["exact"] >= 0.98 * own, "exact holds at least what the program's own clocks say",
                  "%d of %d ns" % (answer["exact"], own))
            check(answer["exact"] <= own + 90e9, "and little more: the helper and the sleeper",
                  "%d of %d ns" % (answer["exact"], own))
        timeline = server.json("/api/v1/timeline", type=kind)["accounting"]
        equal((timeline.get("exact"), timeline.get("covered")), (answer["exact"], answer["covered"]),
              "%s: the timeline says the same" % kind)


def still_blocked(server, sleeper, begin):
    """Not in off-cpu before it wakes; still-blocked meanwhile; once, with its whole length, afterwards."""
    where = {"match": '{process="sleep"}', "value": "value"}
    rows = wait_for(lambda: server.folded(type="still-blocked", **where), 30)
    # It began before the agent, which counts from its own start.
    is_early = time.monotonic() - begin < 15
    if check(rows, "a thread that waits for more than ten seconds is still-blocked") and is_early:
        check(sum(value for _, value in server.folded(type="off-cpu", **where)) < 1e9, "it is not in off-cpu before it wakes")
    sleeper.wait(30)
    wait_for(lambda: sum(value for _, value in server.folded(type="off-cpu", **where)) > 9e9, 20)
    total = sum(value for _, value in server.folded(type="off-cpu", **where))
    check(9e9 <= total <= 16.5e9, "and is when it has, once", total)


def other_types(server, agent, config):
    """SIGHUP: bad options change nothing; good ones take effect under the same process id."""
    with open(config, "w") as file:
        file.write("profile = nonsense\n")
    agent.process.send_signal(signal.SIGHUP)
    check(wait_for(lambda: "options not taken" in agent.text(), 10), "bad options are not taken, and it says so")
    check(agent.process.poll() is None, "and it goes on")
    with open(config, "w") as file:
        file.write("profile = on-cpu\n")
    begun = agent.text().count("info profiling")
    agent.process.send_signal(signal.SIGHUP)
    check(wait_for(lambda: agent.text().count("info profiling") > begun, 20), "other types begin with SIGHUP")
    check(agent.process.poll() is None, "under the same process id")
    links = fd_links(agent.process.pid)
    check(links and not any("bpf_link" in link or "raw_tracepoint" in link for link in links),
          "on-cpu alone is attached to no tracepoint", links)


def causes():
    """On a machine where every CPU runs somebody else: a timer's wake-up is the timer's, not that of who is interrupted."""
    server = Server("--symbol-dir", PROGRAMS, data="woken")
    bystanders = [start(["/bin/sh", "-c", "while :; do :; done"]) for _ in range(CPUS)]
    program = subprocess.Popen([program_copy("waits", "waits_woken"), str(SECONDS), *CAUSES], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    helper = wait_for(lambda: children(program.pid), 10)
    agent = Agent("--profile", "off-cpu,waker", "--report-interval", "1s", "--off-cpu-budget", "100%", "--pid",
                  ",".join(map(str, [program.pid, *helper])), server=server, log="woken.log")
    program.communicate("x", 60)
    woken = {"type": "waker", "value": "value", "match": '{process="timer",attr_woken_thread_name="sleep_5ms"}'}
    # The kernel's names come from the agent, in its own time.
    server.wait_for_names(lambda rows: any(row[0][-1].startswith("try_to_wake_up") for row in rows), **woken)
    agent.stop()
    for bystander in bystanders:
        end(bystander)
    where = {"match": '{process="waits_woken"}', "type": "off-cpu", "value": "value"}
    where["group_by"] = "thread,wait,waker,waker.thread.name"
    rows = server.wait_for_names(lambda rows: any("sleep_5ms" in row[0][1:] for row in rows), **where)
    for thread, cause in CAUSES.items():
        found = {}
        for frames, value in rows:
            if frames[0] == thread and thread in frames[1:]:
                key = tuple(frames[1:4])
                found[key] = found.get(key, 0) + value
        note("%s %s" % (thread, found))
        told = sum(value for key, value in found.items() if key[:2] == cause[:2] and cause[2] in ("", key[2]))
        check(told and told >= 0.9 * sum(found.values()), "%s: %s, woken by %s" % (thread, cause[0], " ".join(cause[1:])), found)
    rows = server.folded(**woken)
    leaves = {frames[-1] for frames, _ in rows}
    check(leaves and all(leaf.startswith("try_to_wake_up") for leaf in leaves) and
          all(frame.endswith("_[k]") for frames, _ in rows for frame in frames[1:]), "the timer's stack has nothing of who was interrupted", rows)


run(test_all, causes)
