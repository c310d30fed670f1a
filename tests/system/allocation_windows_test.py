#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mem-alloc of programs that know nothing of it: by call site, against the exact tally that each keeps itself, and what
it costs them. ALLOCATION_WINDOWS_SECONDS: how long; 180 is the hard form, with 5000 samples and 15 percent."""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, "tests/tools")
import harness
import otlp  # noqa: E402
from harness import BUILD, PROGRAMS, Agent, build_programs, check, end, need_bpf, note, run, skip, wait_for

SECONDS = int(os.environ.get("ALLOCATION_WINDOWS_SECONDS", "7"))
IS_HARD = SECONDS >= 120
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


def compare(text, sums, tally):
    """Chance, the machine's noise in CPU time, and no more."""
    share = 0.15 if IS_HARD else 0.55  # of a machine with others on it; what is exact is each site's part
    total = sum(tally.values())
    got = sum(value for site, (value, _) in sums.items() if site in tally)
    note("%s: %s, all %+.1f %%" % (text, ", ".join("%s %+.1f %% of %d" % (
        site, (sums.get(site, (0, 0))[0] / want - 1) * 100, sums.get(site, (0, 0))[1]) for site, want in tally.items()),
        (got / total - 1) * 100))
    check(abs(got - total) <= (0.15 if IS_HARD else 0.5) * total, "%s: the sum" % text, (got, total))
    for site, want in tally.items():
        value, count = sums.get(site, (0, 0))
        part, known = value / max(got, 1), want / total
        allowed = share if IS_HARD else share + 5 / max(count, 1) ** 0.5  # and its samples' chance
        check(abs(value - want) <= allowed * want, "%s: %s within %d %%" % (text, site, allowed * 100), (value, want))
        check(abs(part - known) <= 5 * (known / max(count, 1)) ** 0.5 * known ** 0.5 + 0.02, "%s: %s has its part" % (text, site),
              (part, known, count))
    other = sum(value for site, (value, _) in sums.items() if site not in tally)
    check(other <= 0.1 * got, "%s: nearly all is known by its site" % text, sums)


def one(name, path=None, before=()):
    program = Program(name, before=before, path=path)
    agent = start_agent([program], name)
    program.go()
    tally = {site: value for site, value in program.tally().items() if site.startswith("by_")}
    sums, counters = read(agent, program.path)
    note("%s: %s" % (name, counters))
    count = sum(count for site, (_, count) in sums.items() if site)
    check(count >= (5000 if IS_HARD else 200), "%s: samples" % name, sums)
    compare(name, sums, tally)
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
    """What probes cost is within the budget; who takes too often is cut off, and that is said."""
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
          float(counters["cost_percent"]) <= 3, "the one that takes without a pause is cut off, or costs what it may", counters)
    check("pid=%d hits" % program.process.pid not in "".join(line for line in text.splitlines() if "cut off" in line),
          "the other is not", text)


def test_many():
    """24 at once, each by its own rate."""
    programs = [Program("takes", seconds=10, rounds=str(20000 + 10000 * (i % 3))) for i in range(24)]
    agent = start_agent(programs, "many", budget="100%")
    for program in programs:
        program.go()
    tallies = [program.tally() for program in programs]
    sums, counters = read(agent, programs[0].path)
    total = sum(value for tally in tallies for site, value in tally.items() if site.startswith("by_"))
    got = sum(value for site, (value, _) in sums.items() if site)
    seen, unseen = int(counters["used_us"]), int(counters["unseen_us"])
    note("24 at once: %s; %+.1f %%" % (counters, (got / total - 1) * 100))
    check(seen + unseen >= 0.7 * sum(tally["cpu_ns"] for tally in tallies) / 1000, "24 at once: all of their time is accounted",
          (seen, unseen))
    total *= seen / max(seen + unseen, 1)
    check(abs(got - total) <= 0.5 * total, "24 at once: the sum of those that windows were for", (got, total))


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
