# SPDX-License-Identifier: Apache-2.0
"""mem-alloc of Python programs that know nothing of it: by Python function, against the bytes that each says it took, small
pieces (of which the C library knows nothing) and large ones, lists that grow, tuples, strings, dicts. mem-alloc and mem-inuse
of programs with libfarflame-malloc.so loaded, by function and line, against their own tally and tracemalloc's.
mem-alloc of numpy's arrays, with and without that library, where an interpreter has numpy (NUMPY_PYTHONS: which, as VENV/bin/python).
PYTHONS: which; PYTHON_MEMORY_SECONDS, PYTHON_MEMORY_ROUNDS: how long."""
import glob
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import harness  # pylint: disable=wrong-import-position
import otlp  # pylint: disable=wrong-import-position
from harness import BUILD, PROGRAMS, Agent, build_programs, check, end, equal, need_bpf, note, run, skip, wait_for  # pylint: disable=wrong-import-position

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs", "python_takes.py")
VERSIONS = os.environ.get("PYTHONS", "debian 3.6 3.9 3.12").split()
SECONDS = int(os.environ.get("PYTHON_MEMORY_SECONDS", "8"))
ROUNDS = "10000"  # between two functions, which a moment sees several of
NUMPY_TAKES = os.path.join(os.path.dirname(PROGRAM), "numpy_takes.py")
HOLDS = os.path.join(os.path.dirname(PROGRAM), "python_holds.py")
HOLDS_ROUNDS = int(os.environ.get("PYTHON_MEMORY_ROUNDS", "1500"))
RUNS = "import sys; sys.argv = ['', '%d']; __file__ = '%s'; exec(compile(open(__file__).read(), __file__, 'exec'))" % (
    HOLDS_ROUNDS, HOLDS)
LIBRARY, RATE = os.path.join(BUILD, "libfarflame-malloc.so"), 4096
NAMELESS = "[no name]"
FEW, WINDOWS = 60, 4  # samples and windows, of which fewer say nothing


def interpreter(version):
    if version == "debian":
        return "/usr/bin/python3"
    found = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/%s.*/bin/python%s" % (version, version))))
    return found[-1] if found else None


def keeps_arenas(path):
    """Before 3.9 an arena that gets empty is given back at once, also where the next piece needs it again: of a loop that makes
    and drops one number that may be all that there is to see (bpo-37257)."""
    return path and not subprocess.run([path, "-c", "import sys; sys.exit(sys.version_info < (3, 9))"], check=False).returncode


class Program:
    def __init__(self, path, *more, program=(PROGRAM, str(SECONDS), ROUNDS), **settings):
        self.process = subprocess.Popen([path, *program, *more], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **settings})
        harness._started.append(self.process)
        self.process.stdout.readline()

    def go(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def tally(self, count=7):
        rows = [self.process.stdout.readline().split() for _ in range(count)]
        return {name: int(value) for name, value in rows}


def function_of(reader, sample):
    """The innermost function of Python's that is one of those that take; comprehensions are their function's. "": the stack says
    what it lacks."""
    tables = reader.dictionary
    for index in tables.stack_table[sample.stack_index].location_indices:
        for line in tables.location_table[index].lines:
            name = reader.strings[tables.function_table[line.function_index].name_strindex]
            if name.startswith("by_") or name == NAMELESS:
                return name.split(".")[0]
    return "" if "farflame.incomplete" in reader.attributes(sample.attribute_indices) else None


def sums_of(path):
    """{pid: {function, NAMELESS, "" or None: (bytes, samples, the sum of the squares of what each stands for)}}, the agent's
    counters"""
    reader, sums = otlp.Reader(otlp.read(BUILD, path)), {}
    for resource in reader.request.resource_profiles:
        for scope in resource.scope_profiles:
            for profile in scope.profiles:
                if (reader.strings[profile.sample_type.type_strindex] != "mem-alloc" or
                        reader.strings[profile.sample_type.unit_strindex] != "bytes"):
                    continue
                for sample in profile.samples:
                    life = reader.attributes(sample.attribute_indices).get("farflame.lifetime", "0")
                    of = sums.setdefault(int(life.split(".")[0]), {})
                    name = function_of(reader, sample)
                    value, count, squares = of.get(name, (0, 0, 0))
                    of[name] = (value + sample.values[-1], count + sample.values[0],
                                squares + sample.values[-1] ** 2 / sample.values[0])
    return sums, reader.counters()


def compare(version, sums, tally, windows=WINDOWS):
    got, total, said = sum(row[0] for row in sums.values()), sum(tally.values()), sums.pop("", (0, 0, 0))[0]
    known = got - said
    # That one stands for more than another tells less: so many equal ones would tell as much.
    samples = known ** 2 / max(sum(row[2] for row in sums.values()), 1)
    if samples < FEW or windows < WINDOWS or said > 0.3 * got:
        return skip("%s: %d samples, %.1f windows: too busy a machine to tell" % (version, samples, windows))
    note("%s: %s, all %+.0f %% of %d samples, %.1f %% in none, %.1f %% say that" % (
        version, ", ".join("%s %.1f %% is %.1f" % (name, 100 * want / total, 100 * sums.get(name, (0, 0))[0] / known)
                           for name, want in tally.items()), (got / total - 1) * 100, samples,
        100 * sums.get(None, (0, 0))[0] / got, 100 * said / got))
    check(0.5 * total <= got <= 1.6 * total, "%s: the sum, but for the machine's noise in CPU time" % version, (got, total))
    for name, want in tally.items():
        part, value = want / total, sums.get(name, (0, 0))[0]
        off = 4 * (part * (1 - part) / samples) ** 0.5 * 1.5 + 0.02
        check(abs(value / known - part) <= off, "%s: %s has its part" % (version, name), (value / known, part, off))
    nameless = sums.get(NAMELESS, (0, 0))[0]
    check(nameless <= 0.03 * got, "%s: code objects have their names" % version, (nameless, got))
    check(sums.get(None, (0, 0))[0] <= 0.1 * known, "%s: most is known by its function" % version, sums)


def test_shares():
    programs = {version: Program(interpreter(version)) for version in VERSIONS if interpreter(version)}
    ending = next(iter(programs))
    programs[ending + ", which ends"] = Program(interpreter(ending), "at-once")
    out = os.path.join(harness.WORK, "takes.otlp")
    agent = Agent("--profile", "mem-alloc", "--output", out, "--report-interval", "600s", "--log-level", "debug", "--mem-budget",
                  "100%", "--pid", ",".join(str(program.process.pid) for program in programs.values()), log="takes.log")
    check(wait_for(lambda: "profiling" in agent.text(), 60), "the agent profiles", agent.text())
    for program in programs.values():
        program.go()
    tallies = {version: program.tally() for version, program in programs.items()}
    end(agent.process)
    sums, counters = sums_of(out)
    check("cut off" not in agent.text(), "none costs too much", agent.text())
    for version, program in programs.items():
        compare(version, sums.get(program.process.pid, {}), tallies[version], counters["farflame.mem.windows"] / len(programs))


def sites_of(path):
    """{type: {pid: {(function, line) of the innermost one in HOLDS, "" of stacks that say what they lack, or None:
    (bytes, samples)}}}, the agent's counters"""
    reader, sums = otlp.Reader(otlp.read(BUILD, path)), {}
    tables = reader.dictionary

    def site_of(sample):
        for index in tables.stack_table[sample.stack_index].location_indices:
            for line in tables.location_table[index].lines:
                function = tables.function_table[line.function_index]
                if reader.strings[function.filename_strindex].endswith(os.path.basename(HOLDS)):
                    return reader.strings[function.name_strindex], line.line
        return "" if "farflame.incomplete" in reader.attributes(sample.attribute_indices) else None

    for resource in reader.request.resource_profiles:
        for profile in (profile for scope in resource.scope_profiles for profile in scope.profiles):
            if reader.strings[profile.sample_type.unit_strindex] != "bytes":
                continue
            kind = sums.setdefault(reader.strings[profile.sample_type.type_strindex], {})
            for sample in profile.samples:
                life = reader.attributes(sample.attribute_indices).get("farflame.lifetime", "0")
                of = kind.setdefault(int(life.split(".")[0]), {})
                site = site_of(sample)
                value, count = of.get(site, (0, 0))
                of[site] = (value + sample.values[-1], count + sample.values[0])
    return sums, reader.counters()


def check_sites(text, sums, sites, which, lost):
    """A site has what it took, but for sampling and what was lost on the way, as stacks that were cut."""
    got, said = sum(value for value, _ in sums.values()), sums.get("", (0, 0))[0]
    known = said + sum(sums.get((row[0], row[1]), (0, 0))[0] for row in sites)
    note("%s: %.1f %% of no known site, %.1f %% say that" % (text, (1 - known / got) * 100, said / got * 100))
    check(known >= 0.92 * got, "%s: what is not known by its function and line says why" % text, sums)
    lost += said / got
    if lost > 0.2:
        return skip("%s: too busy a machine to tell" % text)
    for name, line, *numbers in sites[:None if which and "dlopen" not in text else -1]:  # small ones that come and go take no arena
        got, want = sums.get((name, line), (0, 0))[0], numbers[which]
        # of small ones whole arenas, of up to a MiB
        slack = want * (0.03 + lost) + 5 * (want * RATE) ** 0.5 + (4 << 20 if name == "holds_small" else 0)
        note("%s: %s %d is %d (%+.1f %%)" % (text, name, want, got, (got / want - 1) * 100))
        check(abs(got - want) <= slack, "%s: %s" % (text, name), (got, want, slack))


def check_tally(path, text):
    rows = [line.split() for line in subprocess.run([path, HOLDS, "tracemalloc"], capture_output=True, text=True,
                                                    check=True).stdout.splitlines()]
    check(len(rows) == 7 and all(abs(int(told) - int(own)) <= 0.03 * int(own) for _, _, told, own in rows),
          "%s: tracemalloc says of each line what the program does" % text, rows)


def test_library():
    """Each sample is told by itself, with Python's frames; arenas are blocks, too."""
    programs = {version: Program(interpreter(version), program=(HOLDS, str(HOLDS_ROUNDS)), LD_PRELOAD=LIBRARY,
                                 FARFLAME_MALLOC_RATE=str(RATE)) for version in VERSIONS if keeps_arenas(interpreter(version))}
    loaded = sorted(glob.glob("/usr/lib/*-linux-gnu/libpython3.*.so.1.0"))
    if loaded:
        programs["by dlopen()"] = Program(os.path.join(PROGRAMS, "embeds_python"), program=("0", RUNS, loaded[0]),
                                          LD_PRELOAD=LIBRARY, FARFLAME_MALLOC_RATE=str(RATE))
    else:
        skip("no libpython of Debian's")
    out = os.path.join(harness.WORK, "holds.otlp")
    agent = Agent("--profile", "mem-alloc,mem-inuse", "--output", out, "--report-interval", "600s", "--log-level", "debug",
                  "--mem-budget", "100%", "--pid", ",".join(str(program.process.pid) for program in programs.values()),
                  log="holds.log")
    check(wait_for(lambda: "program probed" in agent.text(), 60), "the library is probed", agent.text())
    for program in programs.values():
        program.go()
    rows = {version: [program.process.stdout.readline().split() for _ in range(7)] for version, program in programs.items()}
    end(agent.process)
    sums, counters = sites_of(out)
    lost = counters.get("farflame.mem.stacks_lost", 0) / max(counters.get("farflame.mem.stacks", 0), 1)
    note("%d stacks, %.1f %% lost, %d batches" % (counters["farflame.mem.stacks"], lost * 100, counters["farflame.mem.batches"]))
    equal(counters["farflame.mem.batches"], 0, "no sample waits in a program that runs Python")
    for version, program in programs.items():
        if version in VERSIONS:
            check_tally(interpreter(version), version)
        sites = [(name, *map(int, numbers)) for name, *numbers in rows[version]]
        check_sites(version + " mem-alloc", sums["mem-alloc"].get(program.process.pid, {}), sites, 0, lost)
        check_sites(version + " mem-inuse", sums["mem-inuse"].get(program.process.pid, {}), sites, 1, lost)


def has_numpy(path):
    return path and not subprocess.run([path, "-c", "import numpy"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       check=False).returncode


def test_numpy():
    paths = [path for path in os.environ.get("NUMPY_PYTHONS", "").split() or map(interpreter, VERSIONS) if has_numpy(path)]
    if not paths:
        return skip("no interpreter has numpy: NUMPY_PYTHONS=VENV/bin/python")
    settings = {"": {}, ", with the library": {"LD_PRELOAD": LIBRARY, "FARFLAME_MALLOC_RATE": "65536"}}
    programs = {path + which: Program(path, program=(NUMPY_TAKES, str(SECONDS), ROUNDS), **settings[which])
                for path in paths for which in settings if not which or keeps_arenas(path)}
    out = os.path.join(harness.WORK, "numpy.otlp")
    agent = Agent("--profile", "mem-alloc,mem-inuse", "--output", out, "--report-interval", "600s", "--log-level", "debug",
                  "--mem-budget", "100%", "--pid", ",".join(str(program.process.pid) for program in programs.values()),
                  log="numpy.log")
    check(wait_for(lambda: "program probed" in agent.text(), 60), "the library is probed", agent.text())
    for program in programs.values():
        program.go()
    tallies = {name: program.tally(10) for name, program in programs.items()}
    end(agent.process)
    sums, counters = sums_of(out)
    windows = counters["farflame.mem.windows"] / sum("library" not in name for name in programs)
    for name, program in programs.items():
        compare("numpy, " + name, sums.get(program.process.pid, {}), tallies[name], WINDOWS if "library" in name else windows)


if __name__ == "__main__":
    need_bpf()
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    build_programs("embeds_python")
    run(test_shares, test_library, test_numpy)
