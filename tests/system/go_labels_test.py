#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Labels that Go programs give their goroutines for profiles come with samples of every type, from programs of each
Go compiler here, static, stripped, with C. The truth is what the program did under which label, its own tally, and
the profile of the same run that its runtime wrote, as go tool pprof reads it. GO_LABELS_REQUESTS=1000 for more."""
import bisect
import collections
import functools
import glob
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, "tests/tools")
import harness
import otlp  # noqa: E402
from harness import (BUILD, Agent, Server, check, context_places, end, equal, need_bpf, note, run, skip_all,
                     wait_for)

REQUESTS = int(os.environ.get("GO_LABELS_REQUESTS", "90"))
ENDPOINTS = {"main.serveA": "/a", "main.serveB": "/b", "main.serveC": "/c", "main.waitHere": "/wait",
             "main.takeHere": "/take", "main.touchHere": "/touch",
             "main.serveNobody": None}
UNITS = 40  # of a request: some milliseconds


def compilers():
    found = sorted(glob.glob("/usr/lib/go-*/bin/go")) + glob.glob("/usr/local/go/bin/go")
    return found or ([shutil.which("go")] if shutil.which("go") else [])


@functools.lru_cache(maxsize=None)
def built(go, options, cgo):
    path = os.path.join(harness.WORK, "build_%d" % len(os.listdir(harness.WORK)))
    environment = dict(os.environ, GOTOOLCHAIN="local", GOFLAGS="", GO111MODULE="off", CGO_ENABLED=str(int(cgo)))
    environment.setdefault("GOCACHE", os.path.join(os.path.expanduser("~"), ".cache", "go-build"))
    subprocess.run([go, "build", *options, "-o", path, "."], check=True, env=environment,
                   cwd="tests/programs/go_labels", stdout=sys.stderr)
    return path


def build(go, name, *options, cgo=False):
    path = os.path.join(harness.WORK, name)
    shutil.copy2(built(go, options, cgo), path)
    return path


class Program:
    """One that runs, and does what it is told by a line."""

    def __init__(self, go, name, *options, cgo=False, symbols=None):
        self.go, self.name = go, name
        self.path = build(go, name, *options, cgo=cgo)
        self.symbols = symbols.path if symbols else self.path  # the same code, with names
        self.mark = os.path.join(harness.WORK, name + ".prof")
        self.process = subprocess.Popen([self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        harness._started.append(self.process)
        self.process.stdout.readline()

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def hear(self):
        """Its tally: {function: units}."""
        words = self.process.stdout.readline().split()
        return {"main." + words[i]: int(words[i + 1]) for i in range(0, len(words), 2)}


def tell_all(programs, command):
    for program in programs:
        program.tell(command.replace("FILE", program.mark))
    return {program.name: program.hear() for program in programs}


class Functions:
    """address → function of a program, by its symbol table"""

    def __init__(self, program):
        text = subprocess.run(["nm", "-n", "--defined-only", program], capture_output=True, text=True, check=True).stdout
        rows = [row.split(None, 2) for row in text.splitlines()]
        rows = [row for row in rows if row[1] in "tT"]
        self.starts = [int(row[0], 16) for row in rows]
        self.names = [row[2] for row in rows]

    def of(self, address):
        at = bisect.bisect_right(self.starts, address)
        return self.names[at - 1] if at else None


Row = collections.namedtuple("Row", "kind function labels trace span count")


def rows_of(path, programs):
    """{program: its samples, by the function of ours nearest to the leaf}; the agent's counters"""
    reader = otlp.Reader(otlp.read(BUILD, path))
    functions = {program.name[:15]: (program, Functions(program.symbols)) for program in programs}
    rows = collections.defaultdict(list)
    for resource in reader.request.resource_profiles:
        program, of = functions.get(reader.resource(resource).get("farflame.process"), (None, None))
        if not program:
            continue
        for scope in resource.scope_profiles:
            for profile in scope.profiles:
                kind = reader.strings[profile.sample_type.type_strindex]
                for sample in profile.samples:
                    rows[program.name].append(row_of(reader, kind, sample, of, program.name))
    return rows, reader.counters()


def row_of(reader, kind, sample, functions, module):
    frames = [reader.frame(i) for i in reader.dictionary.stack_table[sample.stack_index].location_indices]
    names = [functions.of(frame.address) for frame in frames if frame.module.endswith(module)]
    labels = {key: value for key, value in reader.attributes(sample.attribute_indices).items()
              if not key.startswith(("thread.", "farflame.", "page.", "process."))}
    link = reader.dictionary.link_table[sample.link_index]
    return Row(kind, next((name for name in names if name in ENDPOINTS), None), labels, link.trace_id, link.span_id,
               sample.values[0])


def start_agent(programs, name, *options, server=None):
    """An agent that profiles the programs, and knows where their labels are."""
    out = os.path.join(harness.WORK, name + ".otlp")
    agent = Agent("--pid", ",".join(str(program.process.pid) for program in programs), "--log-level", "debug",
                  "--frequency", "499", *(() if server else ("--output", out)), *options, server=server,
                  log=name + ".log")
    agent.out = out

    def are_located():
        tell_all(programs, "nobody 100")
        return set(context_places(agent.process.pid)) >= {program.process.pid for program in programs}

    check(wait_for(are_located, 40), name + ": where the labels are is found", agent.text())
    return agent


def pprof_tags(program):
    """{endpoint: share of all that have one} as Go's own tool has it."""
    text = subprocess.run([program.go, "tool", "pprof", "-tags", program.path, program.mark], capture_output=True,
                          text=True, check=True).stdout
    found, key = {}, None
    for line in text.splitlines():
        begins = re.match(r"\s*(\S+): Total", line)
        row = re.match(r"\s*([0-9.]+)(m?s) \(\s*[0-9.]+%\): (\S+)", line)
        key = begins.group(1) if begins else key
        if row and key == "endpoint":
            found[row.group(3)] = float(row.group(1)) / (1000 if row.group(2) == "ms" else 1)
    return found


def shares(counts):
    return {key: value / max(1, sum(counts.values())) for key, value in counts.items()}


def by_endpoint(rows):
    counts = collections.Counter()
    for row in rows:
        if row.kind == "on-cpu" and row.labels.get("endpoint") in ("/a", "/b", "/c") and not row.trace:
            counts[row.labels["endpoint"]] += row.count
    return counts


def near(got, want, off):
    return set(want) == set(got) and all(abs(got[key] - want[key]) <= off for key in want)


def check_labels(name, kind, rows, wanted):
    """Whatever ran, ran under its own label; what ran under none has none."""
    rows = [row for row in rows if row.kind == kind and row.function]
    wrong = [row for row in rows if row.labels.get("endpoint") != ENDPOINTS[row.function]]
    missing = sum(row.count for row in wrong if not row.labels)
    samples = sum(row.count for row in rows)
    note("%s %s: %d samples, %d without a label" % (name, kind, samples, missing))
    equal([row for row in wrong if row.labels][:3], [], "%s, %s: no sample has another function's label" % (name, kind))
    check(missing <= samples * 0.005, "%s, %s: what worked under a label has it" % (name, kind),
          "%d of %d have not: %s" % (missing, samples, [row for row in wrong if not row.labels][:3]))
    check(samples >= wanted, "%s, %s: there are samples" % (name, kind), samples)


def deviation(*samples):
    """Four standard errors of the difference between two shares, at most."""
    return 4 * (0.25 * sum(1 / max(1, count) for count in samples)) ** 0.5


def number_of(row):
    number = int.from_bytes(row.trace, "big")
    return number if row.span == number.to_bytes(8, "big") else None


def check_requests(name, rows):
    rows = [row for row in rows if row.trace]
    functions = ("main.serveA", "main.serveB", "main.serveC")
    wrong = [row for row in rows if number_of(row) is None or row.function not in (None, functions[number_of(row) % 3]) or
             "trace_id" in row.labels or "span_id" in row.labels]
    found = {number_of(row) for row in rows}
    equal(wrong[:3], [], name + ": a request's ids are its samples' link, and nobody else's")
    note("%s: %d of %d requests found" % (name, len(found), REQUESTS))
    check(len(found) >= REQUESTS * 0.9, name + ": requests are found by the ids in their labels", len(found))


def check_many(name, rows):
    got = [row.labels for row in rows if len(row.labels) >= 3]
    want = {chr(ord("a") + i) + "k" * 59: chr(ord("A") + i) * 120 for i in range(10)}
    check(got and all(labels == want for labels in got), name + ": ten labels of 60 and 120 bytes come whole", got[:1])
    cut = [row.labels["cut"] for row in rows if "cut" in row.labels]
    check(cut and set(cut) == {"v" * 128}, name + ": a longer value is cut", cut[:1])


def some_programs():
    programs, last = [], compilers()[-1]
    for go in compilers():
        version = "_" + os.path.basename(os.path.dirname(os.path.dirname(go))).replace("go-", "")
        programs.append(Program(go, "static" + version))
        whole = programs[-1]
        if shutil.which("gcc"):
            programs.append(Program(go, "cgo" + version, "-ldflags=-linkmode=external", cgo=True))
    programs.append(Program(last, "stripped", "-ldflags=-s -w -buildid=", symbols=whole))
    return programs


def test_programs():
    programs = some_programs()
    agent = start_agent(programs, "programs", "--profile", "on-cpu,off-cpu,page-fault", "--off-cpu-budget", "100%",
                        "--page-fault-budget", "100%")
    tell_all(programs, "work 1500")
    tell_all(programs, "waits 10 25")
    tell_all(programs, "touches 16")
    tell_all(programs, "requests %d %d" % (REQUESTS, UNITS))
    tell_all(programs, "many 600")
    end(agent.process)
    found, counters = rows_of(agent.out, programs)
    for program in programs:
        name = program.name
        many = [row for row in found[name] if len(row.labels) >= 3 or "cut" in row.labels]
        work = [row for row in found[name] if row not in many]
        check_labels(name, "on-cpu", work, 100)
        check_labels(name, "off-cpu", [row for row in work if row.function in ("main.waitHere", None)], 5)
        check_labels(name, "page-fault", work, 10)
        check_requests(name, found[name])
        check_many(name, many)
    check(counters.get("farflame.contexts.cut", 0) > 0, "what is cut is counted", counters)


def check_shares(program, rows, tally):
    """Beside what the program did, and beside go tool pprof."""
    counts = by_endpoint(rows)
    got, samples = shares(counts), sum(counts.values())
    want = shares({ENDPOINTS[function]: units for function, units in tally.items() if ENDPOINTS[function]})
    tags = pprof_tags(program)
    ticks = sum(tags.values()) * 100
    note("%d samples, shares %s; the program's %s; pprof's %s of %d" % (samples, got, want, shares(tags), ticks))
    check(near(got, want, deviation(samples) + 0.02), "shares of labels are what the program did", (got, want))
    check(near(got, shares(tags), deviation(samples, ticks) + 0.02), "and go tool pprof's", (got, tags))


def test_shares():
    programs = [Program(go, "shares_%d" % i) for i, go in enumerate(compilers())]
    last = programs[-1]
    agent = start_agent(programs, "shares", "--profile", "on-cpu,off-cpu,mem-alloc", "--mem-budget", "100%",
                        "--off-cpu-budget", "0.001%")
    check(wait_for(lambda: "program probed" in agent.text(), 30), "their memory is looked at", agent.text())
    tally = tell_all([last], "work 2500 FILE")[last.name]
    for _ in range(5):
        tell_all(programs, "takes 1000")
    tell_all(programs, "waits 200 1")  # the budget is spent
    tell_all(programs, "waits 10 150")  # and stacks are taken of threads that wait already, from outside
    end(agent.process)
    swept = re.search(r"sweep_stacks=(\d+)", agent.text())
    check(swept and int(swept.group(1)) > 10, "stacks are taken of threads that wait", agent.text()[-1000:])
    found = rows_of(agent.out, programs)[0]
    check_shares(last, found[last.name], tally)
    for program in programs:
        rows = [row for row in found[program.name] if row.function in ("main.takeHere", "main.waitHere")]
        check_labels(program.name, "mem-alloc", rows, 1000)
        check_labels(program.name, "off-cpu", rows, 5)


def test_server():
    server = Server()
    program = Program(compilers()[-1], "served")
    agent = start_agent([program], "served", "--report-interval", "1s", server=server)
    tell_all([program], "work 1500")
    tell_all([program], "requests 20 %d" % UNITS)
    end(agent.process)
    rows = server.wait_for_names(lambda rows: any("main.serveA" in frames for frames, _ in rows))
    for function in ("main.serveA", "main.serveB", "main.serveC"):
        endpoint = ENDPOINTS[function]
        found = collections.Counter()
        for frames, value in server.folded(match='{attr.endpoint="%s"}' % endpoint):
            for name in set(frames) & set(ENDPOINTS) or {"none"}:
                found[name] += value
        others = {name: value for name, value in found.items() if name not in (function, "none")}
        check(found[function] > 20 and not others and found["none"] <= sum(found.values()) * 0.05,
              'match={attr.endpoint="%s"} is that endpoint\'s function' % endpoint, found)
    groups = collections.defaultdict(collections.Counter)
    for frames, value in server.folded(group_by="attr.endpoint"):
        for name in set(frames) & set(ENDPOINTS):
            groups[frames[0]][name] += value
    equal({group: sorted(names) for group, names in groups.items() if group.startswith("/")},
          {"/a": ["main.serveA"], "/b": ["main.serveB"], "/c": ["main.serveC"]}, "group_by=attr.endpoint")
    right = 0
    for number in range(1, 21):
        names = {name for frames, _ in server.folded(match='{trace_id="%032x",span_id="%016x"}' % (number, number))
                 for name in set(frames) & set(ENDPOINTS)}
        right += names == {("main.serveA", "main.serveB", "main.serveC")[number % 3]}
    check(right >= 18, "a request is found by the ids in its labels", right)
    server.stop()


if __name__ == "__main__":
    need_bpf()
    if not compilers():
        skip_all("no Go compiler")
    run(test_programs, test_shares, test_server)
