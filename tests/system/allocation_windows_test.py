#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mem-alloc of programs that know nothing of it: by call site, against the exact tally that each keeps itself, and what
it costs them. How far a sum may be off follows from the samples and the windows that it comes from.
ALLOCATION_WINDOWS_SECONDS: how long; from 60 on sites of 5 percent are within 20 percent whatever follows, for a quiet
machine."""
import os
import re
import shutil
import statistics
import subprocess
import sys

sys.path.insert(0, "tests/tools")
import harness
import otlp  # noqa: E402
from harness import BUILD, PROGRAMS, Agent, build_programs, check, end, need_bpf, note, run, skip, wait_for

SECONDS = int(os.environ.get("ALLOCATION_WINDOWS_SECONDS", "7"))
IS_HARD = SECONDS >= 60
LONG = 20      # on a machine that is too busy to tell in SECONDS
COLD_PRICE = 0.25  # where 24 programs take turns on few CPUs each turn begins cold, its first probes cost more, sums are less
CLEAR = 0.35   # a sum that may be off by more says nothing
ROUNDS = "40000"
LOG = "info allocations "


class Program:
    def __init__(self, name, seconds=SECONDS, rounds=ROUNDS, before=(), path=None):
        self.path = path or os.path.join(PROGRAMS, name)
        self.process = subprocess.Popen([*before, self.path, str(seconds), rounds], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        harness._started.append(self.process)
        self.process.stdout.readline()

    def go(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def tally(self):
        return {line.split()[0]: int(line.split()[1]) for line in self.process.stdout}


def start_agent(programs, name, budget="20%"):
    out = os.path.join(harness.WORK, name + ".otlp")
    agent = Agent("--profile", "mem-alloc", "--output", out, "--report-interval", "600s", "--log-level", "debug", "--mem-budget",
                  budget, "--pid", ",".join(str(program.process.pid) for program in programs), log=name + ".log")
    agent.out = out
    check(wait_for(lambda: "profiling" in agent.text(), 60), "the agent profiles", agent.text())
    return agent


def functions(path):
    rows = [line.split() for line in subprocess.run(["nm", "-nC", path], capture_output=True, text=True,
                                                    check=True).stdout.splitlines()]
    rows = [(int(words[0], 16), words[2].partition("(")[0]) for words in rows if len(words) > 2 and words[1] in "tT"]
    return [(start, stop, name) for (start, name), (stop, _) in zip(rows, rows[1:]) if name.startswith("by_")]


def read(agent, path):
    """{site or None: (bytes, samples)}, the agent's counters"""
    end(agent.process)
    of, sums = functions(path), {}
    reader = otlp.Reader(otlp.read(BUILD, agent.out))
    tables = reader.dictionary
    for resource in reader.request.resource_profiles:
        for scope in resource.scope_profiles:
            for profile in scope.profiles:
                if (reader.strings[profile.sample_type.type_strindex] != "mem-alloc" or
                        reader.strings[profile.sample_type.unit_strindex] != "bytes"):
                    continue
                for sample in profile.samples:
                    places = [tables.location_table[index].address
                              for index in tables.stack_table[sample.stack_index].location_indices]
                    site = next((name for place in places for start, stop, name in of if start <= place < stop), None)
                    value, count = sums.get(site, (0, 0))
                    sums[site] = (value + sample.values[-1], count + sample.values[0])
    lines = [line for line in agent.text().splitlines() if line.startswith(LOG)]
    counters = dict(word.split("=", 1) for word in lines[-1][len(LOG):].split()) if lines else {}
    return sums, counters


class Windows:
    """How much windows differ among themselves: bytes by CPU time, of processes that do the same. The log has some of them,
    the counters say of how many."""

    def __init__(self, text, counters, does=lambda pid: pid):
        rates, lines = {}, text.count("\ndebug window pid=")
        for pid, bytes_, used_us in re.findall(
                r"^debug window pid=(\d+) .* bytes=(\d+) .* open_used_us=(\d+) .* blurred=0\b", text, re.M):
            if int(used_us) >= 200:  # as the agent has it
                rates.setdefault(does(int(pid)), []).append(int(bytes_) / int(used_us))
        several = [of for of in rates.values() if len(of) > 1]
        self.count = round(sum(map(len, rates.values())) * max(1, int(counters.get("windows", 0)) / max(lines, 1)))
        self.degrees = sum(len(of) - 1 for of in several)
        squares = sum((len(of) - 1) * (statistics.stdev(of) / statistics.mean(of)) ** 2 for of in several)
        self.spread = (squares / self.degrees) ** 0.5 if self.degrees else 1

    def off(self, samples, price=0.1):
        """By what share a sum of so many samples may be off: four standard deviations of chance, of samples and of windows (of
        few with Student's margin), and what a probe's price, and CPU time beside others, are known to."""
        own = self.spread * (1 + 2.5 / self.degrees) ** 2 if self.degrees else 1
        return price + 4 * (1 / max(samples, 1) + own ** 2 / max(self.count, 1)) ** 0.5


def compare(text, sums, tally, windows):
    """Chance, the machine's noise in CPU time, and no more."""
    total = sum(tally.values())
    got = sum(value for site, (value, _) in sums.items() if site in tally)
    allowed = windows.off(sum(count for site, (_, count) in sums.items() if site in tally))
    note("%s: %d windows, which differ by %.1f %%: the sum may be off by %.0f %%" % (
        text, windows.count, 100 * windows.spread, 100 * allowed))
    note("%s: %s, all %+.1f %%" % (text, ", ".join("%s %+.1f %% of %d" % (
        site, (sums.get(site, (0, 0))[0] / want - 1) * 100, sums.get(site, (0, 0))[1]) for site, want in tally.items()),
        (got / total - 1) * 100))
    check(abs(got - total) <= allowed * total, "%s: the sum" % text, (got, total, allowed))
    for site, want in tally.items():
        value, count = sums.get(site, (0, 0))
        part, known = value / max(got, 1), want / total
        allowed = min(windows.off(count), 0.2) if IS_HARD and known >= 0.05 else windows.off(count)
        check(abs(value - want) <= allowed * want, "%s: %s within %d %%" % (text, site, allowed * 100), (value, want))
        check(abs(part - known) <= 4 * known / max(count, 1) ** 0.5 + 0.02, "%s: %s has its part" % (text, site),
              (part, known, count))
    other = sum(value for site, (value, _) in sums.items() if site not in tally)
    check(other <= 0.1 * got, "%s: nearly all is known by its site" % text, sums)


def one(name, path=None, before=()):
    """Longer where that was too short to tell: a sum that cannot be wrong is not looked at."""
    for seconds in (SECONDS, max(SECONDS, LONG)):
        program = Program(name, seconds, before=before, path=path)
        agent = start_agent([program], "%s_%d" % (name, seconds))
        program.go()
        tally = {site: value for site, value in program.tally().items() if site.startswith("by_")}
        sums, counters = read(agent, program.path)
        note("%s, %d s: %s" % (name, seconds, counters))
        count = sum(count for site, (_, count) in sums.items() if site)
        windows = Windows(agent.text(), counters)
        if windows.off(count) <= CLEAR:
            break
    used_s = int(counters.get("used_us", 0)) / 1e6
    check(used_s < 2 or count >= max(100, 20 * windows.count), "%s: samples" % name, (sums, used_s, windows.count))
    if windows.off(count) > CLEAR:
        return skip("%s got %.1f s of CPU, %d samples of %d windows, which differ by %.0f %%: too busy a machine to tell" % (
            name, used_s, count, windows.count, 100 * windows.spread))
    compare(name, sums, tally, windows)
    return counters


def test_c():
    one("takes")


def test_static():
    one("takes_static")


def test_cpp():
    one("takes_cc")


def test_rust():
    if not shutil.which("rustc"):
        skip("there is no Rust compiler")
        return
    build_programs("takes_rs")
    one("takes_rs")


def library(*names):
    for name in names:
        for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"):
            path = os.path.join(folder, name)
            if os.path.exists(path):
                return path
    return None


def other_allocator(name, path):
    if not path:
        skip("%s is not installed" % name)
        return
    one("takes_cc", before=("env", "LD_PRELOAD=" + path))


def test_jemalloc():
    other_allocator("libjemalloc", library("libjemalloc.so.2"))


def test_tcmalloc():
    other_allocator("libtcmalloc", library("libtcmalloc_minimal.so.4", "libtcmalloc.so.4"))


def test_budget():
    """What probes cost is within the budget, which pays for one window before the next is opened; who takes too often is cut
    off, and that is said."""
    program, hot = Program("takes"), Program("takes", rounds="0")
    agent = start_agent([program, hot], "budget", budget="1%")
    program.go()
    hot.go()
    program.tally()
    hot.tally()
    sums, counters = read(agent, program.path)
    note("budget: %s" % counters)
    text = agent.text()
    check("pid=%d " % hot.process.pid in "".join(line for line in text.splitlines() if "cut off" in line) or
          text.count("debug window pid=%d " % hot.process.pid) <= 1 or float(counters["cost_percent"]) <= 3,
          "the one that takes without a pause is cut off, or costs what it may", counters)
    check("pid=%d hits" % program.process.pid not in "".join(line for line in text.splitlines() if "cut off" in line),
          "the other is not", text)


def many(seconds):
    """→ (bytes that samples stand for, those taken, by how much the sum may be off)"""
    programs = [Program("takes", seconds=seconds, rounds=str(20000 + 10000 * (i % 3))) for i in range(24)]
    agent = start_agent(programs, "many_%d" % seconds, budget="100%")
    for program in programs:
        program.go()
    tallies = [program.tally() for program in programs]
    sums, counters = read(agent, programs[0].path)
    total = sum(value for tally in tallies for site, value in tally.items() if site.startswith("by_"))
    got = sum(value for site, (value, _) in sums.items() if site)
    seen, unseen = int(counters["used_us"]), int(counters["unseen_us"])
    check(seen + unseen >= 0.7 * sum(tally["cpu_ns"] for tally in tallies) / 1000, "24 at once: all of their time is accounted",
          (seen, unseen))
    total *= seen / max(seen + unseen, 1)
    does = {program.process.pid: i % 3 for i, program in enumerate(programs)}
    windows = Windows(agent.text(), counters, does.get)
    allowed = windows.off(sum(count for site, (_, count) in sums.items() if site), COLD_PRICE)
    note("24 at once: %s; %+.1f %%; %d windows, which differ by %.1f %%: may be off by %.0f %%" % (
        counters, (got / total - 1) * 100, windows.count, 100 * windows.spread, 100 * allowed))
    return got, total, allowed


def test_many():
    """24 at once, each by its own rate."""
    for seconds in (10, LONG):
        got, total, allowed = many(seconds)
        if allowed <= COLD_PRICE + CLEAR - 0.1:
            break
    if allowed >= 0.8:
        return skip("24 at once: too busy a machine to tell")
    check(abs(got - total) <= allowed * total, "24 at once: the sum of those that windows were for", (got, total, allowed))


def test_left_out():
    """Who tells by itself is not counted twice."""
    program = Program("takes", seconds=5, before=("env", "LD_PRELOAD=" + os.path.join(BUILD, "libfarflame-malloc.so")))
    agent = start_agent([program], "told", budget="100%")
    program.go()
    program.tally()
    _, counters = read(agent, program.path)
    check(counters.get("windows") == "0", "no windows where the library tells", counters)


if __name__ == "__main__":
    need_bpf()
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    build_programs("takes", "takes_static", "takes_cc")
    tests = [test_c, test_static, test_cpp, test_rust, test_jemalloc, test_tcmalloc, test_budget, test_many, test_left_out]
    if not IS_HARD:
        tests.remove(test_static)
        tests.remove(test_jemalloc)
    run(*tests)
