#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mem-alloc and mem-inuse of Go programs: what their runtimes have sampled, by stack. The truth is each program's
own tally by call site, and the profile that its runtime writes of the same run as go tool pprof reads it."""
import glob
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, "tests/tools")
import harness
import otlp  # noqa: E402
from harness import (BUILD, Agent, check, end, equal, need_bpf, note, run, skip_all, wait_for)

SITES = ("small", "large", "array")
RATE = 4096  # bytes for a sample
ROUNDS = 600


def compilers():
    found = sorted(glob.glob("/usr/lib/go-*/bin/go")) + glob.glob("/usr/local/go/bin/go")
    return found or ([shutil.which("go")] if shutil.which("go") else [])


def build(go, program, name, *options):
    path = os.path.join(harness.WORK, name)
    environment = dict(os.environ, GOTOOLCHAIN="local", GOFLAGS="", GO111MODULE="off", CGO_ENABLED="0")
    environment.setdefault("GOCACHE", os.path.join(os.path.expanduser("~"), ".cache", "go-build"))
    subprocess.run([go, "build", *options, "-o", path, "main.go"], check=True, env=environment,
                   cwd="tests/programs/" + program, stdout=sys.stderr)
    return path


class Program:
    """One that runs, and does what it is told by a line."""

    def __init__(self, path, *arguments):
        self.path = path
        self.process = subprocess.Popen([path, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        harness._started.append(self.process)
        self.process.stdout.readline()

    def tell(self, command):
        """Its tally: {site: (taken, in use)}."""
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        words = self.process.stdout.readline().split()
        return {words[i]: (int(words[i + 1]), int(words[i + 2])) for i in range(0, len(words), 3)}


def start_agent(program, name, *options):
    """An agent that profiles the program, which it has already found."""
    out = os.path.join(harness.WORK, name + ".otlp")
    agent = Agent("--profile", "mem-alloc,mem-inuse", "--output", out, "--pid", str(program.process.pid),
                  "--log-level", "debug", *options, log=name + ".log")
    agent.out = out
    wait_for(lambda: "program probed" in agent.text(), 30)
    return agent


def warm_up(program):
    """The first stacks are cut: the rows to walk them by come with them."""
    for _ in range(10):
        program.tell("1")
        time.sleep(0.1)


def functions(path):
    """[(start, end, site)] of the program's own allocating functions."""
    rows = []
    for line in subprocess.run(["nm", "-n", path], capture_output=True, text=True, check=True).stdout.splitlines():
        words = line.split()
        if len(words) == 3 and words[1] in "tT":
            rows.append((int(words[0], 16), words[2]))
    found = []
    for (start, name), (end, _) in zip(rows, rows[1:]):
        if name.startswith("main.take") and name != "main.takeSome":
            found.append((start, end, name[len("main.take"):].lower()))
    return found


def read(path, program, name=None):
    """{type: {site or None: (value, count)}}; how many stacks are incomplete, and of how many."""
    of = functions(program) if program else ()
    reader = otlp.Reader(otlp.read(BUILD, path))
    sums, incomplete, samples = {}, 0, 0
    for resource in reader.request.resource_profiles:
        if name and reader.resource(resource).get("farflame.process") != name:
            continue
        for scope in resource.scope_profiles:
            for profile in scope.profiles:
                kind = reader.strings[profile.sample_type.type_strindex]
                unit = reader.strings[profile.sample_type.unit_strindex]
                for sample in profile.samples:
                    add(reader, sums.setdefault((kind, unit), {}), sample, of)
                    why = reader.attributes(sample.attribute_indices).get("farflame.incomplete")
                    if kind == "mem-alloc" and unit == "bytes":
                        samples += sample.values[0]
                        incomplete += sample.values[0] if why else 0
    return sums, incomplete, samples, reader


def add(reader, sums, sample, of):
    site = None
    for index in reader.dictionary.stack_table[sample.stack_index].location_indices:
        address = reader.dictionary.location_table[index].address
        site = site or next((name for start, end, name in of if start <= address < end), None)
    value, count = sums.get(site, (0, 0))
    sums[site] = (value + sample.values[-1], count + sample.values[0])


def pprof(go, program, profile, index):
    """{site: bytes} as Go's own tool has it."""
    text = subprocess.run([go, "tool", "pprof", "-top", "-unit=B", "-nodecount=100000", "-sample_index=" + index,
                           program, profile], capture_output=True, text=True, check=True).stdout
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 6 and words[5].startswith("main.take"):
            found[words[5][len("main.take"):].lower()] = float(words[3].rstrip("B"))
    return found


def near(got, want, share):
    return abs(got - want) <= share * max(want, 1)


def check_sites(text, sums, want, share):
    for site in SITES:
        got = sums.get(site, (0, 0))[0]
        check(near(got, want[site], share), "%s of %s within %g %%" % (text, site, share * 100),
              "got %d, want %d" % (got, want[site]))


def lost(counters):
    """What a busy machine lost, of pieces and of their ends, as the agent says itself: each end that is lost, or whose
    piece is, changes what is in use by one."""
    shares = [counters.get("farflame.mem.%s_lost" % name, 0) / max(counters.get("farflame.mem." + name, 0), 1)
              for name in ("stacks", "frees")]
    return shares[0], 5 * sum(shares)  # a fifth of all is in use


def check_compiler(go, options, name):
    program = Program(build(go, "go_memory", name, *options), str(RATE), os.path.join(harness.WORK, name + ".pb.gz"))
    symbols = program.path
    if "-ldflags=-s -w" in options:
        note("%s: %s is stripped" % (go, name))
        symbols = None
    agent = start_agent(program, name, "--mem-budget", "100%")
    warm_up(program)
    tally = program.tell(str(ROUNDS))
    program.tell("profile")
    end(agent.process)
    if symbols is None:
        sums, incomplete, samples, _ = read(agent.out, None)
        check(samples > 5000, "%s: a stripped program's samples come" % name, samples)
        return
    sums, incomplete, samples, reader = read(agent.out, symbols)
    note("%s: %d samples, %d incomplete; %s" % (name, samples, incomplete, sums))
    taken, used = sums.get(("mem-alloc", "bytes"), {}), sums.get(("mem-inuse", "bytes"), {})
    check(sum(taken.get(site, (0, 0))[1] for site in SITES) >= 5000, "%s: 5000 samples and more" % name, taken)
    check(incomplete <= samples / 50, "%s: stacks are whole but for the first ones" % name,
          "%d of %d" % (incomplete, samples))
    lost_taken, lost_used = lost(reader.counters())
    note("%s: lost %.3f, %.3f" % (name, lost_taken, lost_used))
    check_sites(name + ": mem-alloc", taken, {site: tally[site][0] for site in SITES}, 0.1 + lost_taken)
    check_sites(name + ": mem-inuse", used, {site: tally[site][1] for site in SITES}, 0.1 + lost_used)
    profile = os.path.join(harness.WORK, name + ".pb.gz")
    check_sites(name + ": mem-alloc beside pprof", taken, pprof(go, program.path, profile, "alloc_space"),
                0.04 + lost_taken)
    check_sites(name + ": mem-inuse beside pprof", used, pprof(go, program.path, profile, "inuse_space"),
                0.04 + lost_used)
    end(program.process)


def test_sites():
    for go in compilers():
        version = os.path.basename(os.path.dirname(os.path.dirname(go)))
        check_compiler(go, (), version + "_static")
    check_compiler(compilers()[-1], ("-ldflags=-s -w",), "stripped")


def test_nothing_left():
    program = Program(build(compilers()[0], "go_memory", "freed"), str(RATE), os.devnull)
    agent = start_agent(program, "freed", "--mem-budget", "100%")
    program.tell("200")
    program.tell("free")
    end(agent.process)
    sums, _, samples, _ = read(agent.out, program.path)
    taken = sums.get(("mem-alloc", "bytes"), {})
    used = {site: value for site, (value, _) in sums.get(("mem-inuse", "bytes"), {}).items()  # a lock's waiter stays
            if site and value > taken[site][0] / 100}
    check(samples > 1000 and not used, "what was given back is in use no more", "%d samples; %s" % (samples, sums))
    agent = start_agent(program, "ended", "--mem-budget", "100%")
    program.tell("200")
    end(program.process, how=signal.SIGKILL)
    wait_for(lambda: not os.path.exists("/proc/%d" % program.process.pid), 10)
    end(agent.process)
    sums, _, samples, _ = read(agent.out, program.path)
    check(samples > 1000 and ("mem-inuse", "bytes") not in sums, "nothing is in use of a program that ended", sums)


def test_lost_ends():
    """An agent that does not get to run loses ends; the runtime's own counts tell them."""
    program = Program(build(compilers()[0], "go_memory", "lost"), str(RATE), os.devnull)
    agent = start_agent(program, "lost", "--mem-budget", "100%")
    for _ in range(4):
        program.tell("100")
    agent.process.send_signal(signal.SIGSTOP)
    program.tell("100")
    program.tell("free")
    agent.process.send_signal(signal.SIGCONT)
    time.sleep(4)
    tally = program.tell("20")
    time.sleep(1)
    end(agent.process)
    sums, _, samples, reader = read(agent.out, program.path)
    counters = reader.counters()
    note("%s" % {name: value for name, value in counters.items() if ".mem." in name})
    check(counters.get("farflame.mem.frees_lost", 0) > 100, "ends were lost", counters)
    used = sum(value for site, (value, _) in sums.get(("mem-inuse", "bytes"), {}).items() if site)
    want = sum(tally[site][1] for site in SITES)
    check(abs(used - want) < 0.35 * want, "what is in use is right all the same", "got %d, want %d" % (used, want))


def test_no_profile():
    path = build(compilers()[-1], "go_plain", "plain")
    process = subprocess.Popen([path], stdin=subprocess.PIPE)
    harness._started.append(process)
    agent = Agent("--profile", "mem-alloc", "--output", os.path.join(harness.WORK, "plain.otlp"),
                  "--pid", str(process.pid), log="plain.log")
    said = wait_for(lambda: "keeps no memory profile" in agent.text(), 20)
    check(said, "a program without a profile is said to have none", agent.text())
    end(agent.process)
    reader = otlp.Reader(otlp.read(BUILD, os.path.join(harness.WORK, "plain.otlp")))
    equal(reader.counters().get("farflame.mem.without_profile"), 1, "and counted")


def test_cut_off():
    program = Program(build(compilers()[0], "go_memory", "every_piece"), "1", os.devnull)
    agent = start_agent(program, "every_piece")
    program.tell("1500")
    said = wait_for(lambda: "cut off" in agent.text(), 20)
    check(said, "a program that samples each piece is cut off", agent.text())
    end(agent.process)
    sums, _, _, reader = read(agent.out, program.path)
    equal(reader.counters().get("farflame.mem.cut_off"), 1, "and counted")
    check(("mem-inuse", "bytes") not in sums, "what it has in use is not known any more", sums)


if __name__ == "__main__":
    need_bpf()
    if not compilers():
        skip_all("no Go compiler")
    run(test_sites, test_nothing_left, test_lost_ends, test_no_profile, test_cut_off)
