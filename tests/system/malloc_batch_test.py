#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Samples of libfarflame-malloc.so that are told many in one trap: the kernel counts the traps, the program its blocks
and how deep it took them; listeners that come, go and know nothing of batches."""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, "tests/tools")
import harness
import otlp  # noqa: E402
from harness import BUILD, Agent, check, end, equal, need_bpf, note, run, wait_for
from malloc_library_test import LIBRARY, Count
from malloc_memory_test import known

DEPTH, GROUP, BYTES = 10, 64, 1024  # sample_load's
PATH = os.path.join(harness.WORK, "sample_load")


def start(groups, held):
    """It runs once it is told to; each of its blocks is a sample."""
    if not os.path.exists(PATH):
        subprocess.run(["cc", "-O2", "-g", "-fno-builtin", "tests/bench/sample_load.c", "-o", PATH], check=True)
    process = subprocess.Popen(["sh", "-c", 'read go; exec env "$@"', "sh", "LD_PRELOAD=" + LIBRARY, "FARFLAME_MALLOC_RATE=16", PATH,
                                str(groups), str(held)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    harness._started.append(process)
    return process


def start_agent(processes, name):
    keeper = subprocess.Popen(["sleep", "300"], env={**os.environ, "LD_PRELOAD": LIBRARY})
    harness._started.append(keeper)
    out = os.path.join(harness.WORK, name + ".otlp")
    agent = Agent("--profile", "mem-alloc,mem-inuse", "--output", out, "--report-interval", "120s", "--log-level", "debug",
                  "--mem-budget", "100%", "--pid", ",".join(str(process.pid) for process in [*processes, keeper]), log=name + ".log")
    agent.out, agent.keeper = out, keeper
    check(wait_for(lambda: "program probed" in agent.text(), 60), "the library is probed", agent.text())
    return agent


def stacks(path):
    """{type: {frames in take(): bytes}}, the agent's counters"""
    rows = [line.split() for line in subprocess.run(["nm", "-n", PATH], capture_output=True, text=True, check=True).stdout.splitlines()]
    rows = [(int(words[0], 16), words[2]) for words in rows if len(words) == 3]
    begin, stop = next((at, rows[i + 1][0]) for i, (at, name) in enumerate(rows) if name == "take")
    reader, sums = otlp.Reader(otlp.read(BUILD, path)), {}
    tables = reader.dictionary
    for resource in reader.request.resource_profiles:
        for profile in (profile for scope in resource.scope_profiles for profile in scope.profiles):
            if reader.strings[profile.sample_type.unit_strindex] != "bytes":
                continue
            kind = sums.setdefault(reader.strings[profile.sample_type.type_strindex], {})
            for sample in profile.samples:
                places = [tables.location_table[index] for index in tables.stack_table[sample.stack_index].location_indices]
                depth = sum(begin <= place.address < stop for place in places)
                kind[depth] = kind.get(depth, 0) + sum(sample.values)
    return sums, reader.counters()


def check_stacks(path, text, blocks):
    """Besides what the C library takes for itself, each block has the frames of its calls."""
    sums, counters = stacks(path)
    note("%s: %s" % (text, {name: value for name, value in counters.items() if "mem." in name and value and "window" not in name}))
    missing, deep = 1 - known(counters, {}), {kind: depths.get(DEPTH + 1, 0) for kind, depths in sums.items()}
    want = blocks * BYTES
    check(want * (0.95 - missing) <= deep.get("mem-alloc", 0) <= want * 1.001, text + ": what was taken, eleven calls deep", (want, sums))
    check(sum(value for depth, value in sums.get("mem-alloc", {}).items() if 0 < depth <= DEPTH) == 0, text + ": no stack ends between", sums)
    return sums, counters, missing


def test_few_traps():
    groups = 160
    program = start(groups, 0)
    agent = start_agent([program], "few")
    counts = [Count("alloc", LIBRARY), Count("batch", LIBRARY), Count("free", LIBRARY)]
    program.stdin.write("\n")
    program.stdin.flush()
    check(wait_for(lambda: counts[1].read() > 5, 20), "after a while many are told at once")
    before = [count.read() for count in counts]
    program.communicate("")
    hits = [count.read() - was for count, was in zip(counts, before)]
    for count in counts:
        count.close()
    end(agent.process)
    check_stacks(agent.out, "at once", groups * GROUP)
    note("traps: %d of one sample, %d of many, %d of ends; before %s" % (*hits, before))
    samples = groups * GROUP - before[0] - 40 * before[1]
    check(samples > 1000 and sum(hits) < samples / 5, "far fewer traps than samples", (samples, before, hits))
    agent.keeper.kill()


def test_held():
    """What is in use at the end of an agent's time is what the program holds."""
    groups, held = 150, 1000
    program = start(groups, held)
    agent = start_agent([program], "held")
    program.stdin.write("\n")
    program.stdin.flush()
    time.sleep(3)  # of five and more
    os.kill(program.pid, signal.SIGSTOP)
    end(agent.process)
    sums, counters = stacks(agent.out)
    note("%s" % sums)
    got, want = sums.get("mem-inuse", {}).get(DEPTH + 1, 0), (held + 1) * BYTES
    # What waits in the program at that moment is not told: one batch of records.
    check(want * (0.9 * known(counters, {})) <= got <= want * 1.03, "in use is what it holds", (want, sums))
    os.kill(program.pid, signal.SIGCONT)
    program.communicate("")
    equal(program.returncode, 0, "it goes on to its end")
    agent.keeper.kill()


def test_listeners():
    """One that is killed leaves nothing behind; one that knows no batches is told one by one."""
    program, later = start(300, 0), start(100, 0)
    agent = start_agent([program], "killed")
    program.stdin.write("\n")
    program.stdin.flush()
    time.sleep(1)
    agent.process.kill()
    agent.process.wait()
    agent.keeper.kill()
    time.sleep(1)
    second = start_agent([later], "second")
    later.communicate("\n")
    program.communicate("")
    equal((program.returncode, later.returncode), (0, 0), "both go on to their end")
    end(second.process)
    check_stacks(second.out, "after another one", 100 * GROUP)
    second.keeper.kill()
    old, plain = Count("alloc", LIBRARY), start(20, 0)
    plain.communicate("\n")
    check(old.read() >= 20 * GROUP, "a listener that knows no batches is told of each", old.read())
    old.close()


if __name__ == "__main__":
    need_bpf()
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    run(test_few_traps, test_held, test_listeners)
