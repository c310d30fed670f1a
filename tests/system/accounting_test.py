# SPDX-License-Identifier: Apache-2.0
"""Every sample taken in the kernel is either shown or counted as lost, with a reason: also when the server
is killed in the middle and comes back."""
import os
import re
import signal
import subprocess
import time

from harness import (CPUS, PROGRAMS, WORK, Agent, Server, build_programs, check, end, equal, need_bpf, note, run, start,
                     wait_for)

RATE = 199


def flame_total(server):
    """The flame graph's root, the folded lines' sum, and the accounting, for everything there is."""
    graph = server.flamegraph()
    return graph["nodes"]["total"][0], sum(v for _, v in server.folded()), graph["accounting"]


def check_closed(server, what):
    total, folded, accounting = flame_total(server)
    note("%s: %s" % (what, accounting))
    equal(accounting["samples"], total, what + ": the accounting's samples are the flame graph's total")
    equal(folded, total, what + ": the folded stacks sum up to it")
    equal(accounting["taken"], accounting["samples"] + accounting["lost"], what + ": taken = samples + lost")
    equal(sum(accounting["lost_by"].values()), accounting["lost"], what + ": every loss has a reason")
    equal(accounting["lost_by"].get("unexplained", 0), 0, what + ": nothing is unexplained")
    return accounting


def agent_counts(agent):
    """The numbers of the agent's last words: name=value pairs of its log."""
    return {k: int(v) for k, v in re.findall(r"\b([a-z_]+)=(\d+)\b", agent.text())}


def busy_load():
    return [start([PROGRAMS + "/burn", "60", "60"]) for _ in range(2)] + \
        [start([PROGRAMS + "/syscall_loop", "/usr/bin", "60"])]


def check_reasons(server, accounting):
    """What the agent counted by result is what its samples say one by one, sentence by sentence."""
    with open("bpf/results.h") as file:
        sentences = dict(re.findall(r'RESULT\((\w+),\s*"([^"]*)"\)', file.read()))
    with open("node-agent/runtimes/frame_merge.h") as file:
        sentences.update(("interpreter_" + name, text) for name, text in
                         re.findall(r'X\((\w+),[\s\\]*"([^"]*)"\)', file.read()))
    stacks = server.json("/api/v1/agents")["agents"][0]["stacks"]
    note("stacks: %s" % stacks)
    guessed = stacks.pop("guessed", None)
    check(guessed is not None and guessed <= stacks.get("complete", 0), "guessed ones are some of the complete", stacks)
    check(set(stacks) <= set(sentences), "every result is one of the table", sorted(stacks))
    equal(sum(stacks.values()), accounting["samples"], "every sample has one result")
    equal(stacks.pop("complete", 0), accounting["samples"] - accounting["unwind_incomplete"], "complete or incomplete")
    rows = accounting["incomplete_by"]
    equal({row["reason"]: row["samples"] for row in rows}, {sentences[k]: v for k, v in stacks.items() if v},
          "the same counts by sentence in the answer's accounting as the agent has by name")
    check(all(sum(m["samples"] for m in row["modules"]) <= row["samples"] for row in rows), "modules are some of them", rows)


def undisturbed():
    build_programs("burn", "syscall_loop")
    load = busy_load()
    server = Server(data="undisturbed")
    # The events' own count, by somebody else: perf counts cpu-clock on every CPU over the same time.
    agent = Agent("--frequency", str(RATE), "--report-interval", "1s", "--log-level", "debug", server=server)
    time.sleep(8)
    check(agent.stop()[0] == 0, "the agent ends with status 0", agent.text()[-800:])
    accounting = check_closed(server, "undisturbed")
    equal(accounting.get("cpus"), os.sysconf("SC_NPROCESSORS_ONLN"), "with how many CPUs the host has")
    check(accounting["samples"] > RATE * 4, "there are samples at all", accounting)
    check_reasons(server, accounting)
    counts = agent_counts(agent)
    note("the agent's last words: %s" % counts)
    equal(counts.get("taken"), accounting["taken"], "the agent's own count of taken is the server's")
    perf_ns = counts.get("perf_count_ns", 0)
    ticks = counts.get("taken", 0) + counts.get("idle", 0)
    expected = perf_ns * RATE / 1e9
    check(expected and abs(ticks - expected) <= 0.03 * expected,
          "taken plus idle agrees with the perf events' counts within 3 %", "%d ticks, %.0f expected" % (ticks, expected))
    for process in load:
        process.kill()


def killed_in_the_middle():
    load = busy_load()
    server = Server(data="killed", log="killed.log")
    agent = Agent("--frequency", str(RATE), "--report-interval", "1s", server=server, log="agent-killed.log")
    time.sleep(4)
    before = flame_total(server)[2]["samples"]
    server.kill()
    time.sleep(3)
    server.start()
    after = flame_total(server)[2]["samples"]
    check(after >= before > 0, "what was acknowledged before SIGKILL is there after the restart",
          "%d before, %d after" % (before, after))
    # Back-off may take a while; new samples show that the agent found the server again.
    check(wait_for(lambda: flame_total(server)[2]["samples"] > after, 40), "the agent finds the server again",
          agent.text()[-800:])
    time.sleep(2)
    check(agent.stop()[0] == 0, "the agent ends with status 0", agent.text()[-800:])
    accounting = check_closed(server, "after SIGKILL and restart")
    equal(agent_counts(agent).get("taken"), accounting["taken"], "the agent's own count of taken is the server's")
    for process in load:
        process.kill()
    status, seconds = server.stop()
    equal(status, 0, "the server ends with status 0 on SIGTERM")
    server.start()
    again = check_closed(server, "after an orderly restart")
    equal(again["samples"], accounting["samples"], "an orderly restart changes nothing")


need_bpf()
def held_up():
    """An agent that did not come to read its ring: what was lost meanwhile is in the report of that time, not in the next."""
    build_programs("burn")
    load = [start([PROGRAMS + "/burn", "40", "40"]) for _ in range(CPUS)]
    server = Server(data="held")
    agent = Agent("--frequency", "997", "--report-interval", "2s", "--log-level", "debug", server=server, log="held.log")
    reports = re.compile(r"debug report seq=(\d+) samples=\d+ bytes=\d+ taken=(\d+) ring_full=(\d+)")
    wait_for(lambda: len(reports.findall(agent.text())) >= 1, 30)
    agent.process.send_signal(signal.SIGSTOP)
    before = len(reports.findall(agent.text()))
    time.sleep(6)
    agent.process.send_signal(signal.SIGCONT)
    wait_for(lambda: len(reports.findall(agent.text())) >= before + 2, 60)
    counts = [tuple(map(int, found)) for found in reports.findall(agent.text())]
    note("reports before and after: %s" % counts)
    first, last = counts[before][2] - (counts[before - 1][2] if before else 0), counts[-1][2]
    check(last > 1000, "samples were lost", counts)
    check(first > 0.9 * last, "in the report of that time", counts)
    agent.stop()
    check_closed(server, "an agent that was held up")
    server.stop()
    for process in load:
        end(process)


run(undisturbed, killed_in_the_middle, held_up)
