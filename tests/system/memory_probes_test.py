#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long probes in programs that take memory last, and whom a cut-off concerns."""
import os
import subprocess
import sys
import time

sys.path.insert(0, "tests/tools")
import harness
from go_memory_test import RATE, Program, build, compilers, read
from harness import BUILD, PROGRAMS, Agent, build_programs, check, end, need_bpf, note, run, skip, wait_for

LIBRARY = os.path.join(BUILD, "libfarflame-malloc.so")


def probes_of(agent):
    """How many perf events the agent has: two more for a program that is probed."""
    directory, count = "/proc/%d/fd/" % agent.process.pid, 0
    for name in os.listdir(directory):
        try:
            count += os.readlink(directory + name) == "anon_inode:[perf_event]"
        except OSError:
            pass
    return count


def check_released(text, more, *arguments):
    """Probes hold a file, and with it its file system, from being let go."""
    process = subprocess.Popen(["sh", "-c", 'read go; exec "$@"', "sh", *arguments], stdin=subprocess.PIPE,
                               stdout=subprocess.DEVNULL, text=True)
    harness._started.append(process)
    agent = Agent("--profile", "mem-alloc,mem-inuse", "--output", harness.WORK + "/busy.otlp", "--pid", str(process.pid),
                  log="busy.log")
    check(wait_for(lambda: probes_of(agent) > 0, 30), text + ": the agent runs")
    time.sleep(1)
    before = probes_of(agent)
    process.stdin.write("\n")
    process.stdin.flush()
    check(wait_for(lambda: probes_of(agent) == before + more, 30), text + ": it is probed", probes_of(agent) - before)
    time.sleep(3)
    check(probes_of(agent) == before + more, text + ": it is probed as long as it runs", probes_of(agent) - before)
    process.kill()
    process.wait()
    began = time.monotonic()
    free = wait_for(lambda: probes_of(agent) == before, 20)
    note("%s: %.1f s" % (text, time.monotonic() - began))
    check(free, text + ": the probes are gone soon after its end", probes_of(agent) - before)
    end(agent.process)


def test_files_are_let_go():
    check_released("a library", 3, "env", "LD_PRELOAD=" + LIBRARY, os.path.join(PROGRAMS, "allocs"), "1", "1", "1", "wait")
    if not compilers():
        skip("no Go compiler")
        return
    path = build(compilers()[0], "go_memory", "go_busy")
    check_released("a Go program", 2, path, "65536", "/dev/null")


def test_forked_child_stays_probed():
    """The child that has a library by fork() alone, after its parent's end. It allocates for twelve seconds: a busy
    machine's agent finds it late."""
    agent = Agent("--profile", "mem-alloc", "--output", harness.WORK + "/forked.otlp", "--log-level", "debug", log="forked.log")
    wait_for(lambda: "profiling" in agent.text(), 30)
    code = ("import os,sys,time\n"
            "if os.fork(): os._exit(0)\n"
            "time.sleep(5)\n"
            "print('child', flush=True)\n"
            "for i in range(1500): bytearray(100000); time.sleep(0.008)\n")
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env={
        **os.environ, "LD_PRELOAD": LIBRARY, "FARFLAME_MALLOC_RATE": "65536"})
    harness._started.append(process)
    check(process.stdout.readline() == "child\n", "the child runs")
    process.stdout.read()
    end(agent.process)
    _, _, samples, _ = read(harness.WORK + "/forked.otlp", None)
    check(samples > 20, "its memory is sampled", samples)


def test_cut_off_is_one_process_own():
    if not compilers():
        skip("no Go compiler")
        return
    path = build(compilers()[0], "go_memory", "go_cut")
    os.link(path, harness.WORK + "/go_modest")  # the same file by another name
    greedy, modest = Program(path, "1", os.devnull), Program(harness.WORK + "/go_modest", str(RATE), os.devnull)
    out = harness.WORK + "/cut.otlp"
    # What a sample costs beside the runtime's own work for it differs by machine: a tenth to a third of it.
    agent = Agent("--profile", "mem-alloc", "--output", out, "--log-level", "debug", "--mem-budget", "5%", "--pid",
                  "%d,%d" % (greedy.process.pid, modest.process.pid), log="cut.log")
    check(wait_for(lambda: "program probed" in agent.text(), 30), "they are probed", agent.text())
    greedy.tell("1500")
    check(wait_for(lambda: "cut off" in agent.text(), 20), "the one that samples each piece is cut off", agent.text())
    # Within seconds the other one has probes of its own.
    check(wait_for(lambda: agent_probes(agent) >= 1, 20), "the other one is probed by itself", agent.text())
    before = modest.tell("1")
    tally = modest.tell("100")
    end(agent.process)
    sums, _, samples, reader = read(out, path, "go_modest")
    check(reader.counters().get("farflame.mem.cut_off") == 1, "one is counted", reader.counters())
    # The first stacks are cut before they show who allocates.
    taken = sum(value for value, _ in sums.get(("mem-alloc", "bytes"), {}).values())
    want = sum(tally[site][0] - before[site][0] for site in tally)
    note("%d samples, %d bytes of %d" % (samples, taken, want))
    check(abs(taken / want - 1) < 0.2, "what the other one takes is seen", "got %d, want %d" % (taken, want))


def agent_probes(agent):
    return agent.text().count("program probed by itself")


if __name__ == "__main__":
    need_bpf()
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    build_programs("allocs")
    run(test_files_are_let_go, test_forked_child_stays_probed, test_cut_off_is_one_process_own)
