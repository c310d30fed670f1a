# SPDX-License-Identifier: Apache-2.0
"""What names inside of Python cost: 20 processes of the CPythons that this machine has, half of them at work, and one
after the other the agent, the OpenTelemetry eBPF profiler (OTEL_PROFILER) and py-spy record (PY_SPY, nonblocking, a
parent's children all at once), so many rounds; medians. What the names alone cost is the difference of two agents that
run at the same time, one of them with --interpreters off: whatever else the machine does, both see it.

python_rows() is the part "python" of bench.py. BENCH_PYTHON_SECONDS (20) of each measurement, BENCH_PYTHON_ROUNDS (3)."""
import glob
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

import loads
import otlp
import ratios
from cost import PeakWatch, Window, pss_kib
from harness import BUILD, CPUS, WORK, end, start
from profilers import OTEL, Otel, Ours

SECONDS = int(os.environ.get("BENCH_PYTHON_SECONDS", "20"))
ROUNDS = int(os.environ.get("BENCH_PYTHON_ROUNDS", "3"))
PY_SPY = os.environ.get("PY_SPY", shutil.which("py-spy") or "")
PROCESSES = 20
BUSY_SHARE = 0.6   # of the machine, by half of the processes
SETTLE_S = 12      # a report interval and more: names are known
FRESH = 12
FRESH_S = 0.8
PAIRS = 7          # of runs of a program with and without a profiler
LOAD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "python_load.py")
MIB = 2**20


# --- what runs ---

def interpreters():
    """Debian's, and pyenv's where there are some."""
    found = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3")))
    return ["/usr/bin/python3", *found]


VERBS = "load parse render check update merge encode decode filter collect resolve write flush apply".split()
NOUNS = "user session invoice request header template column payload account cursor report message token route schema".split()


def module():
    """200 functions, in chains of ten, called as people call theirs."""
    names = ["%s_%s" % (verb, noun) for noun in NOUNS for verb in VERBS][:200]
    text = "".join(
        "def %s(number):\n    total = 0\n    for i in range(40):\n        total += i * number\n    %s\n\n\n" % (
            name, "return total" if i % 10 == 9 else "return total + %s(number)" % names[i + 1]) for i, name in enumerate(names))
    return loads.written(WORK, "requests.py", text + "FIRST = [%s]\n\n\ndef request(number):\n"
                         "    return FIRST[number %% len(FIRST)](number)\n" % ", ".join(names[::10]))


def twenty(path):
    """Children of one shell, since py-spy follows children; its pid."""
    found, lines = interpreters(), []
    for i in range(PROCESSES):
        share = BUSY_SHARE * CPUS / (PROCESSES / 2) if i % 2 else 0.002
        lines.append("%s %s steady %s %.4f" % (found[i // 2 % len(found)], LOAD, path, share))
    text = "import subprocess, time\nall = [subprocess.Popen(line.split()) for line in %r]\ntime.sleep(3600)\n" % lines
    return start(["/usr/bin/python3", loads.written(WORK, "parent.py", text)])


def end_family(parent):
    children = open("/proc/%d/task/%d/children" % (parent.pid, parent.pid)).read().split()
    end(parent, how=signal.SIGKILL)
    for child in children:
        os.kill(int(child), signal.SIGKILL)


# --- who watches ---

def ours(rate, interval="10s", more=()):
    return Ours(rate, interval, more)


def without(rate, interval="10s", more=()):
    return Ours(rate, interval, ("--interpreters", "off", *more))


class PySpy:
    """Of a process and its children, as its documents say for production. Its reports are one file at the end."""
    name = "py-spy"

    def __init__(self, rate, pid):
        self.file = os.path.join(WORK, "spy.raw")
        self.process = start([PY_SPY, "record", "--nonblocking", "--subprocesses", "--rate", str(rate), "--format", "raw",
                              "--output", self.file, "--pid", str(pid)], "spy.log")
        self.pid, self.watch = self.process.pid, PeakWatch(self.process.pid)
        time.sleep(1)
        if self.process.poll() is not None:
            raise RuntimeError("py-spy does not run")

    def stop(self):
        """(samples, how many of them reach the module's frame, bytes of the file, errors that it tells of)"""
        self.watch.over = True
        end(self.process, how=signal.SIGINT)
        lines = [line.rsplit(" ", 1) for line in open(self.file).read().splitlines()]
        told = re.findall(r"Errors: (\d+)", open(os.path.join(WORK, "spy.log"), errors="replace").read())
        count = sum(int(number) for _, number in lines)
        return (count, sum(int(number) for stack, number in lines if "<module>" in stack), os.path.getsize(self.file),
                int(told[-1]) if told else 0)


# --- samples ---

class Named:
    """A sample of one of our programs: its functions of Python's, leaf first."""

    def __init__(self, count, names, times):
        self.count, self.names, self.times = count, names, times
        self.is_named = any(name and name != "[no name]" for name in names)
        self.is_whole = "<module>" in names and all(names) and "[no name]" not in names


def samples(profiler, since, thread):
    """(those of the thread, how many samples there are in all, [(their time, the report's time)])"""
    found, every, ages = [], 0, []
    for at, _, message in profiler.reports(since):
        request = otlp.messages(BUILD).ExportProfilesServiceRequest()
        request.ParseFromString(message)
        reader = otlp.Reader(request)
        frames = {}
        for resource in request.resource_profiles:
            for profile in (p for scope in resource.scope_profiles for p in scope.profiles):
                for sample in profile.samples:
                    times = [ns / 1e9 for ns in sample.timestamps_unix_nano]
                    count = len(times) or sample.values[0]
                    every += count
                    if reader.attributes(sample.attribute_indices).get("thread.name") != thread:
                        continue
                    stack = reader.dictionary.stack_table[sample.stack_index].location_indices
                    for index in stack:
                        if index not in frames:
                            frames[index] = reader.frame(index)
                    found.append(Named(count, [frames[i].name for i in stack if frames[i].kind == "cpython"], times))
                    ages += [(moment, at) for moment in times]
    return found, every, ages


def share(found, holds):
    return 100 * sum(s.count for s in found if holds(s)) / max(1, sum(s.count for s in found))


# --- steady ---

def steady(*kinds):
    """Of each what it costs; they run at the same time."""
    profilers = [kind(19) for kind in kinds]
    time.sleep(SETTLE_S)
    for profiler in profilers:
        profiler.watch.take()
    since, costs = time.monotonic(), [Window(profiler.pid) for profiler in profilers]
    time.sleep(SECONDS)
    for window in costs:
        window.close()
    seen = [figures(profiler, since, window) for profiler, window in zip(profilers, costs)]
    for profiler in profilers:
        profiler.stop()
    return seen


def figures(profiler, since, costs):
    wire = [length for _, length, _ in profiler.reports(since)]
    found, every, _ = samples(profiler, since, "bench-python")
    return {"pss": pss_kib(profiler.pid) / 1024, "peak": profiler.watch.take() / 1024, "maps": costs.map_bytes / MIB,
            "user": costs.shares()[0], "bpf": costs.shares()[1], "us": costs.us_per_sample(), "wire": sum(wire) / max(every, 1),
            "samples": every, "of python": 100 * sum(s.count for s in found) / max(every, 1),
            "named": share(found, lambda s: s.is_named), "whole": share(found, lambda s: s.is_whole),
            "depth": sum(s.count * len(s.names) for s in found) / max(every, 1)}


def more():
    """What the agent takes for the names; with "depth" and "of python" as they are."""
    on, off = steady(ours, without)
    return {key: on[key] - off[key] for key in on} | {key: on[key] for key in ("samples", "depth", "of python")}


def spied(parent):
    spy = PySpy(19, parent.pid)
    time.sleep(SETTLE_S)
    spy.watch.take()
    costs = Window(spy.pid)
    time.sleep(SECONDS)
    costs.close()
    memory, peak = pss_kib(spy.pid) / 1024, spy.watch.take() / 1024
    count, whole, size, errors = spy.stop()
    return {"pss": memory, "peak": peak, "maps": 0, "user": costs.shares()[0], "bpf": 0, "us": 0, "wire": size / max(count, 1),
            "samples": count, "named": 100 * count / max(count + errors, 1), "whole": 100 * whole / max(count, 1)}


def rounds(row):
    """{name: median of each figure}"""
    kinds = {"with": lambda _: steady(ours)[0], "more": lambda _: more()}
    if OTEL:
        kinds["otel"] = lambda _: steady(Otel)[0]
    if PY_SPY:
        kinds["py-spy"] = spied
    seen = {name: [] for name in kinds}
    parent = twenty(module())
    time.sleep(3)
    for number in range(ROUNDS):
        order = list(kinds.items())
        for name, measure in order if number % 2 == 0 else order[::-1]:
            try:
                seen[name].append(measure(parent))
            except (RuntimeError, OSError) as error:
                print("%s: %s" % (name, error), file=sys.stderr)
    end_family(parent)
    return {name: {key: statistics.median(one[key] for one in all_) for key in all_[0]} for name, all_ in seen.items() if all_}


def columns(seen, show):
    """Ours beside the peers'."""
    return show(seen["with"]), "; ".join("%s %s" % (name, show(seen[name]) if name in seen else why) for name, why in (
        ("otel", "not run: OTEL_PROFILER is not set"), ("py-spy", "not run: no PY_SPY")))


def steady_rows(row, seen):
    on, names = seen["with"], seen["more"]
    row("python: %d processes, %d CPythons; %d x %d s; load average %.1f" % (
        PROCESSES, len(interpreters()), ROUNDS, SECONDS, os.getloadavg()[0]), "", "", "peers")

    def line(what, show, budget="", added=None):
        mine, peers = columns(seen, show)
        row("  " + what, mine + (" (%s)" % added if added else ""), budget, peers)

    line("memory (PSS), peak, MB", lambda s: "%.1f, %.1f" % (s["pss"], s["peak"]), "+2 MB", "%+.2f MB" % names["pss"])
    line("BPF maps, MiB", lambda s: "%.2f" % s["maps"], "+1 MiB", "%+.2f MiB" % names["maps"])
    line("user space + BPF of the machine, %", lambda s: "%.3f + %.3f" % (s["user"], s["bpf"]), "+0.05 %",
         "%+.3f %+.3f %%" % (names["user"], names["bpf"]))
    line("BPF a sample, us (%.0f %% Python's, %.1f of its frames)" % (names["of python"], names["depth"]),
         lambda s: "%.1f" % s["us"], "%+.1f us" % (3 * names["of python"] / 100 + 0.15 * names["depth"]),
         "%+.1f us" % names["us"])
    line("bytes a sample on the wire", lambda s: "%.1f" % s["wire"], "+10", "%+.1f of %d" % (names["wire"], names["samples"]))
    line("samples of Python with names, to <module>, %", lambda s: "%.1f, %.1f" % (s["named"], s["whole"]))
    for name, peer, memory in (("OTel", seen.get("otel"), 0.25), ("py-spy", seen.get("py-spy"), 1)):
        ratios.at_most("Python: memory beside %s's" % name, on["pss"], peer and peer["pss"], memory)
        ratios.at_most("Python: CPU beside %s's" % name, on["user"] + on["bpf"], peer and peer["user"] + peer["bpf"], 0.5)


# --- a fresh program ---

def fresh(kind):
    """(ms from exec to the first named sample of each program, ms that the oldest sample waited for its report)"""
    profiler = kind(99, "2s", () if kind is Otel else ("--timestamps",))
    path, clock = module(), time.time() - time.monotonic()
    time.sleep(3)
    since, begins = time.monotonic(), []
    for i in range(FRESH):
        begins.append(time.time())
        subprocess.run([interpreters()[i % len(interpreters())], LOAD, "fresh", path, str(FRESH_S)], check=True)
        time.sleep(0.2)
    time.sleep(5)
    found, _, ages = samples(profiler, since, "bench-fresh")
    named = sorted(moment for s in found if s.is_named for moment in s.times)
    profiler.stop()
    took = [next((moment - begin for moment in named if begin <= moment < begin + FRESH_S + 0.5), None) for begin in begins]
    told = dict(re.findall(r"Python located pid=(\d+).* after_us=(\d+)", profiler.text())[::-1])
    return {"took": [1000 * t if t else None for t in took], "share": share(found, lambda s: s.is_named),
            "oldest": max([at + clock - moment for moment, at in ages], default=0),
            "known": sorted(int(us) / 1000 for us in told.values() if int(us) < 1e6)}


def fresh_rows(row):
    def show(seen):
        took = sorted(t for t in seen["took"] if t is not None)
        return "%.0f ms of %d/%d; %.1f %%" % (statistics.median(took) if took else 0, len(took), FRESH, seen["share"])

    on, off, peer = fresh(ours), fresh(without), None
    if OTEL:
        peer = fresh(Otel)
    row("  exec to the first sample with names at 99 Hz; samples with names", show(on), "", "otel %s" % (
        show(peer) if peer else "not run"))
    row("  exec to recognition, median and most, ms", "%.1f, %.1f of %d" % (
        statistics.median(on["known"]), on["known"][-1], len(on["known"])) if on["known"] else "none", "50 ms")
    row("  oldest sample in a report of 2 s", "%.2f s" % on["oldest"], "2 s", "%.2f s without interpreters" % off["oldest"])


# --- the program itself ---

def work_s(path):
    return float(subprocess.run(["/usr/bin/python3", LOAD, "work", path, "6000"], capture_output=True, text=True,
                                check=True).stdout)


def slower(kind, path):
    """Percent more CPU for the same work, of pairs one after the other; (median, least, most)"""
    found = []
    for _ in range(PAIRS):
        alone = work_s(path)
        profiler = kind()
        time.sleep(1)
        found.append(100 * (work_s(path) / alone - 1))
        profiler.stop()
    return statistics.median(found), min(found), max(found)


def slowdown_rows(row):
    path = module()

    class Nobody:
        def stop(self):
            pass

    def show(values):
        return "%+.2f %% (%+.1f to %+.1f)" % values

    row("  the program's CPU for its work, %d pairs" % PAIRS, show(slower(lambda: ours(19), path)), "+0.1 %", "; ".join([
        "nobody " + show(slower(Nobody, path)), "otel " + (show(slower(lambda: Otel(19), path)) if OTEL else "not run")]))


def python_rows(row):
    steady_rows(row, rounds(row))
    fresh_rows(row)
    slowdown_rows(row)
