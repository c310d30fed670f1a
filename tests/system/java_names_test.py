# SPDX-License-Identifier: Apache-2.0
"""Java's functions and lines by their shares of the time, which its programs are made to have: interpreted, compiled by C1
and C2, within each other or inlined; threads by name; classes that come and go are never called by another's name.

JDKS and JDK_PATHS: which Javas (17, as Debian has it); JAVA_SECONDS=60: how long each is sampled (6)."""
import collections
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import otlp  # noqa: E402
from harness import BUILD, WORK, build_java, check, end, jdks, need_bpf, note, run, skip, skip_all, start  # noqa: E402

JAVAS = jdks("17")
SECONDS = int(os.environ.get("JAVA_SECONDS", "8"))
HOT = ["Six.hot%d" % number for number in range(1, 7)]
# {name: (options, program)}; each has one busy thread.
LOADS = {
    "C2": ([], "Six"),
    "C2 without inlining": (["-XX:-Inline"], "Six"),
    "C1": (["-XX:TieredStopAtLevel=1"], "Six"),
    "the interpreter": (["-Xint"], "Six"),
    "lines of C2's": ([], "Lines"),
    "interpreted lines": (["-Xint"], "Lines"),
}
SLACK = 0.02

Sample = collections.namedtuple("Sample", "time_ns tid thread incomplete frames")  # frames: leaf first, "" for others'
Frame = collections.namedtuple("Frame", "name line kind is_runtime")


class Profile:
    """What the agent says of processes while they run: samples by process."""
    def __init__(self, pids, seconds, name, *options, frequency=397):
        self.path = os.path.join(WORK, re.sub(r"\W", "-", name) + ".otlp")
        self.agent = subprocess.run(
            [os.path.join(BUILD, "farflame-agent"), "--output", self.path, "--duration", "%ds" % seconds, "--timestamps",
             "--frequency", str(frequency), *options, *(part for pid in pids for part in ("--pid", str(pid)))],
            capture_output=True, text=True, timeout=seconds + 120, check=False)
        self.reader = otlp.Reader(otlp.read(BUILD, self.path))
        self.frames = [self.frames_at(location) for location in self.reader.dictionary.location_table]
        owners = {int(tid): pid for pid in pids for tid in os.listdir("/proc/%d/task" % pid)}
        self.samples = collections.defaultdict(list)
        for sample in self.read():
            if sample.tid in owners:
                self.samples[owners[sample.tid]].append(sample)

    def frames_at(self, location):
        attributes = self.reader.attributes(location.attribute_indices)
        kind = attributes.get("profile.frame.type", "")
        is_runtime = bool(attributes.get("farflame.runtime"))
        functions = self.reader.dictionary.function_table
        named = [Frame(self.reader.strings[functions[line.function_index].name_strindex], line.line, kind, is_runtime)
                 for line in location.lines]
        return named or [Frame("", 0, kind, is_runtime)]

    def read(self):
        for resource in self.reader.request.resource_profiles:
            for scope in resource.scope_profiles:
                for profile in scope.profiles:
                    for sample in profile.samples:
                        attributes = self.reader.attributes(sample.attribute_indices)
                        stack = self.reader.dictionary.stack_table[sample.stack_index]
                        frames = [frame for i in stack.location_indices for frame in self.frames[i] if frame.kind != "kernel"]
                        for time_ns in sample.timestamps_unix_nano:
                            yield Sample(time_ns, int(attributes.get("thread.id") or 0), attributes.get("thread.name", ""),
                                         attributes.get("farflame.incomplete", ""), frames)


def java_of(sample):
    return [frame for frame in sample.frames if frame.kind == "jvm"]


def off_shares(counts, weights, slack=SLACK):
    """What is further from its share than chance puts it, with slack for what one start differs from the next."""
    total, whole = sum(counts[key] for key in weights), sum(weights.values())
    return ["%s: %.3f of %d, %.3f of the work" % (key, counts[key] / max(total, 1), total, weight / whole)
            for key, weight in weights.items()
            if abs(counts[key] / max(total, 1) - weight / whole) > 4 * (weight / whole / max(total, 1)) ** 0.5 + slack]


def nested(samples):
    """(samples in the innermost function that have all six in order, and main; those that have not)"""
    whole, others = 0, collections.Counter()
    for sample in samples:
        names = [frame.name for frame in java_of(sample)]
        if names and names[0] == HOT[5]:
            if names == [*reversed(HOT), "Six.main"]:
                whole += 1
            else:
                others[sample.incomplete, " ".join(names)] += 1
    return whole, others


def check_six(what, samples):
    leaves = collections.Counter(java_of(sample)[0].name for sample in samples if java_of(sample))
    wrong = off_shares(leaves, {name: number + 1 for number, name in enumerate(HOT)})
    check(sum(leaves.values()) > 60 and not wrong, "%s: shares of six functions are those of their loops" % what, wrong or leaves)
    whole, others = nested(samples)
    check(whole > 20 and sum(others.values()) <= 0.01 * whole, "%s: six of six within each other, called by main" % what,
          (whole, others.most_common(3)))


def check_lines(what, samples):
    lines = collections.Counter(java_of(sample)[0].line for sample in samples
                                if java_of(sample) and java_of(sample)[0].name == "Lines.hot")
    first = next(number for number, line in enumerate(open("tests/programs/java/Lines.java"), 1) if "1 * ROUNDS" in line)
    # Of a loop that C2 has compiled, what lies before its first description has another one's line.
    wrong = off_shares(lines, {first + i: i + 1 for i in range(10)}, SLACK if "interpreted" in what else 0.05)
    outside = sum(count for line, count in lines.items() if not first <= line < first + 10)
    check(sum(lines.values()) > 100 and not wrong, "%s: shares of ten lines are those of their loops" % what, wrong or lines)
    check(outside <= 0.02 * sum(lines.values()), "%s: hardly any is elsewhere" % what, lines)


def known(samples):
    """Those from when the agent has found the machine, and has read what code it and its C library have."""
    known_ns = min((sample.time_ns for sample in samples if java_of(sample)), default=0) + 2 * 10**9
    return [sample for sample in samples if sample.time_ns > known_ns]


def check_whole(what, samples):
    incomplete = collections.Counter(sample.incomplete for sample in samples if sample.incomplete)
    if incomplete:
        begin = min(sample.time_ns for sample in samples)
        note("%s: incomplete after ms: %s" % (what, sorted((sample.time_ns - begin) // 10**6 for sample in samples if sample.incomplete)[-20:]))
    check(len(samples) > 60 and sum(incomplete.values()) <= 0.02 * len(samples), "%s: stacks are whole" % what,
          (len(samples), incomplete))


def times_of(path):
    """[(from, until, class)…]"""
    return [(int(fields[0]), int(fields[1]), fields[2]) for fields in map(str.split, open(path)) if len(fields) == 3]


def check_churn(what, samples, path):
    """Each class is made at another's place: by the times that the program notes itself, a sample's is the one that worked
    then."""
    ahead_ns, times = time.time_ns() - time.monotonic_ns(), times_of(path)
    counts, wrong = collections.Counter(), []
    for sample in samples:
        bodies = {frame.name.rsplit(".", 1)[0] for frame in java_of(sample) if "Body_" in frame.name}
        at = sample.time_ns - ahead_ns
        then = {body for since, until, body in times if since - 2000000 <= at <= until + 2000000}
        if not bodies or not then:
            counts["others"] += 1
        elif bodies <= then:
            counts["right"] += 1
        else:
            wrong.append((bodies, then, sample.incomplete))
    note("%s: %d classes, samples %s, %d wrong" % (what, len(times), dict(counts), len(wrong)))
    check(counts["right"] > 50, "%s: samples have the class that worked then" % what, dict(counts))
    check(not wrong, "%s: and never the name of another" % what, wrong[:3])


def check_threads(what, samples):
    """By the names that Java has given them."""
    found = collections.defaultdict(collections.Counter)
    for sample in samples:
        frames = java_of(sample)
        found[sample.thread][frames[-1].name if frames else sample.incomplete] += 1
    note("%s: %s" % (what, {thread: dict(roots) for thread, roots in found.items()}))
    busy = {thread: found[thread] for thread in ("busy-1", "busy-2", "busy-3")}
    check(all(sum(roots.values()) > 5 for roots in busy.values()), "%s: busy ones have their names" % what, busy)
    outside = {thread: dict(roots) for thread, roots in busy.items()
               if sum(roots.values()) - roots["java.lang.Thread.run"] > 1 + 0.05 * sum(roots.values())}
    check(not outside, "%s: and begin in Thread.run" % what, outside)


def check_java(name, java, classes):
    log = os.path.join(WORK, "churn-" + name)
    command = [java, "-XX:+UseSerialGC", "-Xmx256m", "-cp", classes]
    running = {load: start([*command[:1], *options, *command[1:], program, "3600"], "target.log")
               for load, (options, program) in LOADS.items()}
    running["churn"] = start([*command, "Churn", str(SECONDS + 6), "5000", log], "target.log")
    running["threads"] = start([*command, "Threads", "3600", "500"], "target.log")
    time.sleep(2)
    profile = Profile([process.pid for process in running.values()], SECONDS, name)
    check(profile.agent.returncode == 0, "Java %s: the agent ends well" % name, profile.agent.stderr[-2000:])
    running["churn"].wait(60)
    for load, process in running.items():
        end(process)
        what, samples = "Java %s, %s" % (name, load), known(profile.samples[process.pid])
        if load in LOADS:
            samples = [sample for sample in samples if sample.thread == "java"]
            note("%s: %d samples" % (what, len(samples)))
            check_six(what, samples) if LOADS[load][1] == "Six" else check_lines(what, samples)
            check_whole(what, samples)
        elif load == "churn":
            check_churn(what, samples, log)
        else:
            check_threads(what, samples)


def test_javas():
    classes = build_java("Six", "Lines", "Churn", "Threads")
    for name, java in JAVAS.items():
        if java:
            check_java(name, java, classes)
        else:
            skip("there is no Java %s" % name)


if __name__ == "__main__":
    if os.geteuid() != 0:
        skip_all("needs root")
    need_bpf()
    run(test_javas)
