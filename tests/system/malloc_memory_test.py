#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mem-alloc and mem-inuse of programs with libfarflame-malloc.so loaded, by call site, against the exact tally
that each keeps itself."""
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, "tests/tools")
import harness
import otlp  # noqa: E402
from harness import (BUILD, PROGRAMS, Agent, build_programs, check, end, equal, need_bpf, note, run, skip,
                     wait_for)

LIBRARY = os.path.join(BUILD, "libfarflame-malloc.so")
PATH = os.path.join(PROGRAMS, "allocs")
RATE = 2048


class Program:
    def __init__(self, *arguments, path=PATH, before=("env",), library=LIBRARY, rate=RATE):
        settings = ["LD_PRELOAD=" + library, *(["FARFLAME_MALLOC_RATE=%d" % rate] if rate else [])]
        self.process = subprocess.Popen([*before, *settings, path, *arguments], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        harness._started.append(self.process)
        self.process.stdout.readline()

    def tell(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def tally(self):
        """{site: (taken, in use)}, once all is taken"""
        lines = iter(self.process.stdout.readline, "kept\n")
        return {line.split()[0]: tuple(map(int, line.split()[1:3])) for line in lines if line}


def start_agent(programs, name, budget="100%", first=None):
    """FIRST runs before the others: by its stacks the agent learns the code, however long that takes on a busy machine."""
    programs = [*programs, *([first] if first else [])]
    out = os.path.join(harness.WORK, name + ".otlp")
    agent = Agent("--profile", "mem-alloc,mem-inuse", "--output", out, "--report-interval", "120s", "--log-level", "debug",
                  "--mem-budget", budget, "--pid", ",".join(str(program.process.pid) for program in programs), log=name + ".log")
    agent.out = out
    check(wait_for(lambda: "program probed" in agent.text(), 60), "the library is found and probed", agent.text())
    if first:
        first.tell()
        agent.tally = first.tally()
        time.sleep(1)
    return agent


def together(*tallies):
    return {site: tuple(sum(tally.get(site, (0, 0))[which] for tally in tallies) for which in (0, 1))
            for site in {site for tally in tallies for site in tally}}


def functions(path):
    rows = [line.split() for line in subprocess.run(["nm", "-nC", path], capture_output=True, text=True,
                                                    check=True).stdout.splitlines()]
    rows = [(int(words[0], 16), words[2].partition("(")[0]) for words in rows if len(words) > 2 and words[1] in "tT"]
    return [(start, stop, name) for (start, name), (stop, _) in zip(rows, rows[1:]) if name.startswith("site_")]


def is_incomplete(reader, sample):
    return any(reader.strings[reader.dictionary.attribute_table[index].key_strindex] == "farflame.incomplete"
               for index in sample.attribute_indices)


def read(path, program=PATH):
    """{type: {site, "" of stacks that say they are incomplete, or None: (bytes, samples)}}; leaves of mem-alloc; the
    agent's counters"""
    of, sums, leaves = functions(program), {}, {}
    reader = otlp.Reader(otlp.read(BUILD, path))
    tables = reader.dictionary

    def file_of(place):
        return os.path.basename(reader.strings[tables.mapping_table[place.mapping_index].filename_strindex])

    for resource in reader.request.resource_profiles:
        for scope in resource.scope_profiles:
            for profile in scope.profiles:
                kind = reader.strings[profile.sample_type.type_strindex]
                if reader.strings[profile.sample_type.unit_strindex] != "bytes":
                    continue
                for sample in profile.samples:
                    places = [tables.location_table[index]
                              for index in tables.stack_table[sample.stack_index].location_indices]
                    site = next((name for place in places if file_of(place) == os.path.basename(program)
                                 for start, stop, name in of if start <= place.address < stop),
                                "" if is_incomplete(reader, sample) else None)
                    sites = sums.setdefault(kind, {})
                    value, count = sites.get(site, (0, 0))
                    sites[site] = (value + sample.values[-1], count + sample.values[0])
                    if kind == "mem-alloc" and places:
                        leaves.setdefault(file_of(places[0]), set()).add(places[0].address)
                        if len(places) > 1:
                            leaves.setdefault("second", set()).add(file_of(places[1]))
    return sums, leaves, reader.counters()


def known(counters, sums):
    """The share of stacks that have their site: a busy machine loses some, and cuts some at code that nothing is known of
    yet; the agent says so itself of both."""
    cut = sums.get("", (0, 0))[0] / max(sum(value for value, _ in sums.values()), 1)
    lost = counters.get("farflame.mem.stacks_lost", 0) / max(counters.get("farflame.mem.stacks", 0), 1)
    return (1 - cut) * (1 - lost)


def check_sites(text, sums, tally, which, counters, share=0.13):
    """What is known is of each site alike."""
    part = known(counters, sums)
    note("%s: %.1f %% of stacks have their site" % (text, part * 100))
    check(part > 0.2, "%s: stacks are known" % text, (part, sums, counters))
    # Whose end was lost on a busy machine is in use for longer, as the agent says itself: no site has more of it than that.
    lost, ends = counters.get("farflame.mem.frees_lost", 0), counters.get("farflame.mem.frees", 0)
    unended = lost / max(lost + ends, 1) if which else 0
    check(unended < 0.7, "%s: ends are known" % text, counters)
    for site, numbers in sorted(tally.items()):
        got, want = sums.get(site, (0, 0))[0], numbers[which] * part
        more = unended * 1.25 * (numbers[0] - numbers[1]) * part
        slack = (share + (1 - part) / 4) * (want + more)
        check(-slack <= got - want <= slack + more, "%s of %s within %g %%" % (text, site, share * 100),
              "got %d, want %d: %+.1f %%, %.1f %% of ends lost" % (got, want, (got / max(want, 1) - 1) * 100, unended * 100))


def test_sites():
    program = Program("4", "12000", "10", "wait")
    agent = start_agent([program], "sites", first=Program("1", "1000", "10", "wait"))
    program.tell()
    tally = together(agent.tally, program.tally())
    end(agent.process)
    sums, leaves, counters = read(agent.out)
    note("%s" % {name: value for name, value in counters.items() if "mem." in name})
    taken, used = sums.get("mem-alloc", {}), sums.get("mem-inuse", {})
    check(sum(count for _, count in taken.values()) >= 5000, "5000 samples and more", taken)
    check_sites("mem-alloc", taken, tally, 0, counters)
    check_sites("mem-inuse", used, tally, 1, counters)
    check(len(leaves.get("libfarflame-malloc.so", ())) <= 20 and "libfarflame-malloc.so" not in leaves.get("second", ()),
          "a stack begins with the function that was called to take memory", leaves)
    agent = start_agent([program], "later")
    program.tell()
    equal(program.process.stdout.readline(), "freed\n", "all is given back")
    end(agent.process)
    sums, _, counters = read(agent.out)
    check("mem-inuse" not in sums, "of what was taken before the agent came nothing is known", sums)


def test_nothing_left():
    program = Program("2", "12000", "10", "wait")
    agent = start_agent([program], "freed")
    program.tell()
    program.tally()
    program.tell()
    equal(program.process.stdout.readline(), "freed\n", "all is given back")
    end(agent.process)
    sums, _, _ = read(agent.out)
    left = sum(value for site, (value, _) in sums.get("mem-inuse", {}).items() if site)
    taken = sum(value for site, (value, _) in sums.get("mem-alloc", {}).items() if site)
    check(taken > 1000 * RATE and left == 0, "nothing of it is in use any more", (taken, left))


def test_operator_new():
    path = os.path.join(PROGRAMS, "allocs_cc")
    program = Program(path=path)
    agent = start_agent([program], "cc", first=Program(path=path))
    program.tell()
    tally = together(agent.tally, program.tally())
    end(agent.process)
    sums, _, counters = read(agent.out, path)
    check_sites("C++: mem-alloc", sums.get("mem-alloc", {}), tally, 0, counters)
    check_sites("C++: mem-inuse", sums.get("mem-inuse", {}), tally, 1, counters)


def test_rust():
    if not shutil.which("rustc"):
        skip("no Rust compiler")
        return
    build_programs("allocs_rs")
    path = os.path.join(PROGRAMS, "allocs_rs")
    program = Program(path=path)
    agent = start_agent([program], "rs", first=Program(path=path))
    program.tell()
    tally = together(agent.tally, program.tally())
    end(agent.process)
    sums, _, counters = read(agent.out, path)
    note("%s" % {name: value for name, value in counters.items() if "mem." in name})
    check(sum(count for site, (_, count) in sums.get("mem-alloc", {}).items() if site) >= 5000, "5000 samples and more", sums)
    check_sites("Rust: mem-alloc", sums.get("mem-alloc", {}), tally, 0, counters)
    check_sites("Rust: mem-inuse", sums.get("mem-inuse", {}), tally, 1, counters)


def test_many_processes():
    programs = [Program("1", "6000", "10", "wait") for _ in range(24)]
    agent = start_agent(programs, "many", first=Program("1", "1000", "10", "wait"))
    for program in programs:
        program.tell()
    tally = together(agent.tally, *(program.tally() for program in programs))
    end(agent.process)
    sums, _, counters = read(agent.out)
    note("%s" % {name: value for name, value in counters.items() if "mem." in name})
    check_sites("24 processes: mem-alloc", sums.get("mem-alloc", {}), tally, 0, counters, 0.12)
    check_sites("24 processes: mem-inuse", sums.get("mem-inuse", {}), tally, 1, counters, 0.12)


def sums_of(name, path):
    """{type: (bytes or nanoseconds, samples)} of the processes so called; the agent's counters"""
    reader, sums = otlp.Reader(otlp.read(BUILD, path)), {}
    for resource in reader.request.resource_profiles:
        if name not in str([value.value.string_value for value in resource.resource.attributes]):
            continue
        for scope in resource.scope_profiles:
            for profile in scope.profiles:
                kind = reader.strings[profile.sample_type.type_strindex]
                if reader.strings[profile.sample_type.unit_strindex] != "count":
                    value, count = sums.get(kind, (0, 0))
                    sums[kind] = (value + sum(sample.values[-1] for sample in profile.samples),
                                  count + sum(sample.values[0] for sample in profile.samples))
    return sums, reader.counters()


def run_load(million, profile, **more):
    """10 million blocks a second, of 143.5 bytes on average; what is told of them."""
    path, out = os.path.join(harness.WORK, "malloc_load"), harness.WORK + "/load.otlp"
    subprocess.run(["cc", "-O2", "-fno-builtin", "tests/bench/malloc_load.c", "-o", path], check=True)
    keeper = Program("1", "1", "1", "wait")
    settings = ["%s=%s" % pair for pair in {"LD_PRELOAD": LIBRARY, **more}.items()]
    loads = [subprocess.Popen(["sh", "-c", 'read go; exec env "$@"', "sh", *settings, path, str(million)],
                              stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) for _ in range(2)]
    harness._started.extend(loads)
    agent = Agent("--profile", profile, "--output", out, "--report-interval", "120s", "--log-level", "debug",
                  "--pid", ",".join(str(process.pid) for process in [keeper.process, *loads]), log="load.log")
    check(wait_for(lambda: 'program probed program="libfarflame' in agent.text(), 60), "the library is probed", agent.text())
    for load in loads:
        load.communicate("\n")
    end(agent.process)
    keeper.process.kill()
    keeper.process.wait()
    sums, counters = sums_of("malloc_load", out)
    return sums, counters, 2 * million * 1e6 * 143.5


def check_sum(sums, want):
    got, samples = sums.get("mem-alloc", (0, 0))
    note("%d samples, %+.1f %%" % (samples, (got / want - 1) * 100))
    check(samples > 30 and abs(got / want - 1) < 6 / samples ** 0.5 + 0.12, "what they stand for is all that was taken",
          "%d of %d, %d samples" % (got, want, samples))
    return samples


def check_in_all(sums, tally):
    """What chance makes of so many samples, four times."""
    want, got = sum(numbers[1] for numbers in tally.values()), sum(value for value, _ in sums["mem-inuse"].values())
    samples = sum(sums["mem-alloc"].get(site, (0, 0))[1] for site in tally if site.startswith("site_held"))
    note("mem-inuse: %+.1f %%, %d samples of what is held" % ((got / want - 1) * 100, samples))
    check(samples > 1500 and abs(got / want - 1) < max(0.05, 4 / samples ** 0.5), "in use in all", (got, want, samples))


def check_each(kind, sums, tally, which, least, share):
    """Those who have much: within the share, or four times what chance makes of that many samples if that is more."""
    many = sorted(site for site in tally if tally[site][which] >= least)
    check(len(many) >= 10, "there are places with much of " + kind, tally)
    for site in many:
        want, got = tally[site][which], sums.get(kind, {}).get(site, (0, 0))[0]
        samples = sums["mem-alloc"].get(site, (0, 0))[1]
        allowed = max(share, 4 / max(samples, 50) ** 0.5)
        check(abs(got / want - 1) < allowed, "%s of %s within %.0f %%" % (kind, site, allowed * 100),
              "got %d, want %d: %+.1f %%, %d samples" % (got, want, (got / want - 1) * 100, samples))
    errors = [sums[kind].get(site, (0, 0))[0] / tally[site][which] - 1 for site in many]
    note("%s of %d places: %.1f %% on average, %+.1f %% at worst" % (
        kind, len(many), (sum(error ** 2 for error in errors) / len(errors)) ** 0.5 * 100, max(errors, key=abs) * 100))


def test_what_is_held_beside_churn():
    """Twenty places hold ninety megabytes, forty churn through a gigabyte a second: each has its own figure."""
    build_programs("held_sites")
    path = os.path.join(PROGRAMS, "held_sites")
    program = Program("30", path=path, rate=None)
    agent = start_agent([program], "held", budget="1%")
    program.tell()
    tally = program.tally()
    end(agent.process)
    sums, _, counters = read(agent.out, path)
    note("%s" % {name: value for name, value in counters.items() if "mem." in name})
    check(counters.get("farflame.mem.stacks", 0) < 40000, "few are told of a million samples", counters)
    check_each("mem-alloc", sums, tally, 0, 0.01 * sum(numbers[0] for numbers in tally.values()), 0.15)
    check_each("mem-inuse", sums, tally, 1, 5e6, 0.2)
    check_in_all(sums, tally)


def test_cost_is_bounded():
    sums, _, want = run_load(30, "mem-alloc,mem-inuse")
    # One in 512 KiB without a bound; the least that the bound leaves is a matter of the machine.
    check(check_sum(sums, want) < 0.8 * want / 524288, "fewer samples are taken than without a bound", sums)


def test_flood():
    """A program that wants a sample of every kilobyte: the budget is kept, and others' samples come through."""
    sums, counters, want = run_load(4, "on-cpu,mem-alloc", FARFLAME_MALLOC_RATE="1024")
    note("%s" % {name: value for name, value in counters.items() if "mem." in name or "lost" in name})
    check(check_sum(sums, want) < want / 1024 / 4, "within the budget", sums)
    check(counters.get("farflame.mem.stacks_thinned", 0) > want / 1024 / 2, "the others are counted", counters)
    equal(counters.get("farflame.mem.frees", 0), 0, "nobody asks what is given back")
    equal(counters.get("farflame.lost.ring_full", 0), 0, "no other sample is lost")


def test_containers_of_an_image():
    image, root = os.path.join(harness.WORK, "image"), os.path.join(harness.WORK, "root")
    for path in (image, root, image + ".none"):
        os.makedirs(path, exist_ok=True)
    shutil.copy(LIBRARY, image)
    mount = "mount -t overlay none -o ro,lowerdir=%s:%s.none %s" % (image, image, root)
    container = ("unshare", "-m", "--propagation", "private", "sh", "-c", mount + ' && exec env "$@"', "sh")
    if subprocess.run([*container, "true"], capture_output=True).returncode:
        skip("no overlay file systems here")
        return
    programs = [Program("1", "12000", "10", "wait", before=container,
                        library=os.path.join(root, os.path.basename(LIBRARY))) for _ in range(3)]
    agent = start_agent(programs, "containers")
    programs[0].tell()
    tally = programs[0].tally()
    end(agent.process)
    sums, _, counters = read(agent.out)
    check_sites("of three containers' one: mem-alloc", sums.get("mem-alloc", {}), tally, 0, counters, 0.2)


if __name__ == "__main__":
    need_bpf()
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    build_programs("allocs", "allocs_cc")
    run(test_sites, test_nothing_left, test_operator_new, test_rust, test_many_processes, test_what_is_held_beside_churn, test_cost_is_bounded, test_flood,
        test_containers_of_an_image)
