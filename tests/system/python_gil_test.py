# SPDX-License-Identifier: Apache-2.0
"""How long threads of Python wait for the interpreter's lock, as the agent says, against what each of them says itself;
what they wait for besides, sleeping and for locks of threading, is not among it. And the threads' own names."""
import collections
import glob
import json
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import otlp  # pylint: disable=wrong-import-position
from harness import Agent, BUILD, WORK, check, equal, need_bpf, note, run, skip  # pylint: disable=wrong-import-position

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs", "python_gil.py")
VERSIONS = os.environ.get("PYTHONS", "debian 3.6 3.8 3.11 3.12 3.13").split()
SECONDS = float(os.environ.get("PYTHON_SECONDS", "1.2"))
THREADS = ("spins_a", "spins_b", "sleeps", "locks", "holds")


def interpreter(version):
    if version == "debian":
        return "/usr/bin/python3"
    found = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/%s.*/bin/python%s" % (version, version))))
    return found[-1] if found else None


def begin():
    programs = {}
    for version in VERSIONS:
        if not interpreter(version):
            skip("there is no CPython %s" % version)
            continue
        programs[version] = subprocess.Popen([interpreter(version), PROGRAM, str(SECONDS)], stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE)
        programs[version].stdout.readline()
    return programs


def say(program):
    program.stdin.write(b"\n")
    program.stdin.flush()


def record(programs):
    """What each program says, and the agent's file. They work one after the other."""
    output, said = os.path.join(WORK, "gil.otlp"), {}
    agent = Agent("--pid", ",".join(str(program.pid) for program in programs.values()), "--profile", "off-cpu",
                  "--off-cpu-budget", "100%", "--output", output, "--report-interval", "600s")
    time.sleep(0.5)
    for version, program in programs.items():
        say(program)
        said[version] = json.loads(program.stdout.readline().decode())
    check(agent.stop()[0] == 0, "the agent ends well", agent.text()[-2000:])
    note([line for line in agent.text().splitlines() if "info waits" in line][-1])
    for program in programs.values():
        program.communicate(timeout=30)
    return said, output


# functions: of Python's, else what a frame is; leaf first. runtime: whether they are the interpreter's own.
Stack = collections.namedtuple("Stack", "functions runtime wait thread incomplete")


def frame_of(reader, index):
    location = reader.dictionary.location_table[index]
    attributes = reader.attributes(location.attribute_indices)
    kind = attributes.get("profile.frame.type")
    if kind == "cpython":
        function = reader.dictionary.function_table[location.lines[0].function_index]
        kind = reader.strings[function.name_strindex]
    return kind, attributes.get("farflame.runtime", False)


def stacks_of(path):
    """(pid, stack, nanoseconds)"""
    reader = otlp.Reader(otlp.read(BUILD, path))
    for resource_profiles in reader.request.resource_profiles:
        wait = reader.resource(resource_profiles).get("farflame.label.wait")
        for scope in resource_profiles.scope_profiles:
            for sample in (sample for profile in scope.profiles for sample in profile.samples):
                indices = reader.dictionary.stack_table[sample.stack_index].location_indices
                functions, runtime = zip(*[frame_of(reader, i) for i in indices])
                attributes = reader.attributes(sample.attribute_indices)
                yield (int(attributes["farflame.lifetime"].split(".")[0]),
                       Stack(functions, runtime, wait, attributes["thread.name"], attributes.get("farflame.incomplete")),
                       sample.values[1])


def judge(version, said, stacks):
    waited, others, bad, shown, names = collections.Counter(), collections.Counter(), [], [], set()
    for stack, value in stacks:
        thread = [name for name in THREADS if name in stack.functions]
        is_lock = stack.functions[0] == "[GIL]"
        if is_lock != (stack.wait == "gil") or stack.functions.count("[GIL]") != is_lock:
            bad.append(stack)
        python = [i for i, name in enumerate(stack.functions) if name not in ("native", "kernel", "[GIL]")]
        if is_lock and python and not (all(stack.runtime[1:python[0]]) and "kernel" not in stack.functions):
            shown.append(stack)
        if len(thread) == 1:
            names.add((thread[0], stack.thread))
            (waited if is_lock else others)[thread[0]] += value / 1e9
    check(not bad, version + ": the class of a wait for the lock is gil, its leaf [GIL], and of no other", bad[:3])
    # 3.6's interpreter is found only while a thread runs in it at the moment: until then its threads have the kernel's name.
    is_late = version == "3.6"
    names -= {(thread, "python3.6") for thread in THREADS} if is_late else set()
    equal(names, {(thread, "größe of what " + thread) for thread in THREADS}, version + ": threads have the names that threading gave them")
    check(not shown, version + ": between [GIL] and what waits there is nothing but the interpreter's own", shown[:2])
    for thread, truth in said.items():
        note("%s %s: %s, lock %.3f, other waits %.3f" % (version, thread, truth, waited[thread], others[thread]))
        most = truth["wall"] - truth["cpu"] - truth["own"]
        slack = 0.05 * truth["wall"] + 0.05
        check(waited[thread] <= most + slack, "%s: %s waits for the lock no longer than it is off its CPU for no other reason" % (version, thread),
              "%.3f of %.3f s" % (waited[thread], most))
        check(others[thread] >= truth["own"] - slack, "%s: what %s waits for besides is not the lock" % (version, thread),
              "%.3f of %.3f s" % (others[thread], truth["own"]))
        check(waited[thread] > 0, "%s: %s waits for the lock" % (version, thread))
        if thread != "locks":  # which says the least that it waited for its own
            check(waited[thread] >= most - truth["delay"] - slack - 0.3 * is_late, "%s: %s has all of its waits for the lock" % (version, thread),
                  "%.3f of %.3f s, %.3f s in the run queue" % (waited[thread], most, truth["delay"]))


def test_lock():
    programs = begin()
    pids = {program.pid: version for version, program in programs.items()}
    said, output = record(programs)
    stacks = collections.defaultdict(list)
    for pid, stack, value in stacks_of(output):
        stacks[pids.get(pid)].append((stack, value))
    for version in said:
        judge(version, said[version], stacks[version])


need_bpf()
run(test_lock)
