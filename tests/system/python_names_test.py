# SPDX-License-Identifier: Apache-2.0
"""Stacks of Python programs as the agent sends them, against the chains of calls that the program says it has: function,
file and line of each frame, native frames around them in their true order, the interpreter's own ones marked."""
import bisect
import collections
import inspect
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import otlp  # pylint: disable=wrong-import-position
from harness import PROGRAMS as BUILT  # pylint: disable=wrong-import-position
from harness import BUILD, WORK, build_programs, check, end, need_bpf, note, pythons, run, skip, start  # pylint: disable=wrong-import-position

PROGRAMS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "programs")  # as imports say it
PROGRAM = os.path.join(PROGRAMS, "python_names.py")
GREENLETS = os.path.join(PROGRAMS, "python_greenlets.py")
OWN = (PROGRAM, os.path.join(PROGRAMS, "python_awaits.py"), GREENLETS)  # their files
SHARES = os.path.join(PROGRAMS, "python_shares.py")
PYTHONS = pythons("debian 3.6 3.8 3.10 3.12 3.13")
MIX = "python_mix.so"
SECONDS = int(os.environ.get("PYTHON_SECONDS", "6"))
RATE = "197"

NEWER = "the interpreter is newer than the agent knows: a newer agent reads its frames"

# What a stack through CPython's own JIT may lack: its native frames, and no others. PYTHON_JIT=1, of builds that have it.
NATIVE_LACKS = {"native frames behind code that was made at run time are not known", "code without frame pointers",
                "a return address does not lie in an executable mapping"} if os.environ.get("PYTHON_JIT") else set()

Frame = collections.namedtuple("Frame", "function file line module is_runtime")  # line: of native ones the address


def lines_by_function():
    """Which lines each function of the program has, by the last part of its name."""
    found = collections.defaultdict(set)

    def add(code):
        found[code.co_name] |= {line for _, _, line in code.co_lines() if line}
        if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
            found[code.co_name].add(0)  # how it ends has no line, in some versions
        for constant in code.co_consts:
            if hasattr(constant, "co_code"):
                add(constant)
    for name in OWN:
        with open(name) as file:
            add(compile(file.read(), name, "exec"))
    return found


def frame_of(reader, index):
    location = reader.dictionary.location_table[index]
    attributes = reader.attributes(location.attribute_indices)
    if attributes.get("profile.frame.type") == "cpython":
        line = location.lines[0]
        function = reader.dictionary.function_table[line.function_index]
        return Frame(reader.strings[function.name_strindex], reader.strings[function.filename_strindex], line.line, "", False)
    mapping = reader.dictionary.mapping_table[location.mapping_index]
    return Frame("", "", location.address, reader.strings[mapping.filename_strindex] or "?", attributes.get("farflame.runtime", False))


def stacks_of(path):
    """(incomplete, frames leaf first, count) of each stack of the program."""
    reader = otlp.Reader(otlp.read(BUILD, path))
    for resource_profiles in reader.request.resource_profiles:
        for scope in resource_profiles.scope_profiles:
            for profile in scope.profiles:
                for sample in profile.samples:
                    stack = reader.dictionary.stack_table[sample.stack_index]
                    frames = [frame_of(reader, i) for i in stack.location_indices]
                    attributes = reader.attributes(sample.attribute_indices)
                    yield attributes.get("farflame.incomplete", ""), frames, sample.values[0]
    note("counters: %s" % {name: value for name, value in reader.counters().items() if "runtimes" in name})


LIBRARY = re.compile(r"/asyncio/|^<frozen |/(selectors|socket|types|abc|_?weakref(set)?|contextvars|heapq|concurrent/futures/\w+)\.py$")
NAMELESS = "[no name]"


def is_prefix(chain, truth, lines):
    """chain: root first. The lines of all but the last one are where the calls are."""
    if len(chain) > len(truth):
        return False
    for at, (frame, (function, file, line)) in enumerate(zip(chain, truth)):
        if frame.function != function or frame.file != file:
            return False
        if at + 1 < len(chain) and frame.line != line:
            return False
    last = chain[-1]
    return last.file not in OWN or last.line in lines[last.function.split(".")[-1]]


def without_ends(chain, lines):
    """Without what asyncio does in functions that call none of the program's, and what has not begun, as coroutines
    that are just being made, or is over, and iterators that give themselves: none of these says where it is."""
    while LIBRARY.search(chain[-1].file) or (
            chain[-1].function.endswith("iter__") or chain[-1].file in OWN and chain[-1].line in (0, min(lines[chain[-1].function.split(".")[-1]] - {0}))):
        chain = chain[:-1]
    return chain


def marks_are_right(frames):
    """The interpreter's file is libpython where there is one."""
    own = re.compile(r"libpython3" if any(frame.module.startswith("libpython3") for frame in frames) else r"python")
    has_language = False
    for frame in frames:
        has_language |= bool(frame.function)
        if not frame.function and frame.is_runtime != (has_language and bool(own.match(frame.module))):
            return False
    return True


def record(python, version, program=PROGRAM, path=""):
    output = os.path.join(WORK, version + ".otlp")
    target = start([python, program, "120"], "target.log", stdout=subprocess.PIPE,
                   env={**os.environ, "PYTHONIOENCODING": "utf-8", "PYTHONPATH": path})
    chains = json.loads(target.stdout.readline().decode())
    agent = subprocess.run([os.path.join(BUILD, "farflame-agent"), "--pid", str(target.pid), "--output", output,
                            "--duration", "%ds" % SECONDS, "--frequency", RATE], capture_output=True, text=True)
    end(target)
    check(agent.returncode == 0, version + ": the agent ends well", agent.stderr[-2000:])
    return chains, list(stacks_of(output))


def judge(version, chains, stacks, lines):
    counts, why, seen, wrong, marked, nameless = collections.Counter(), collections.Counter(), set(), [], [], 0
    for incomplete, frames, count in stacks:
        chain = [frame for frame in reversed(frames) if frame.function]
        incomplete = "" if chain and incomplete in NATIVE_LACKS else incomplete
        kind = "declared" if incomplete else "joined" if chain else "alone"
        counts[kind] += count
        why[incomplete] += count
        if incomplete or not chain:
            continue
        if any(frame.function == NAMELESS for frame in chain):
            nameless += count
            continue
        chain = without_ends(chain, lines)
        truths = [i for i, truth in enumerate(chains) if is_prefix(chain, truth, lines)]
        seen |= {i for i in truths if len(chains[i]) == len(chain)}
        if not truths:
            wrong.append([(frame.function, frame.line) for frame in chain])
        if not marks_are_right(frames):
            marked.append([frame.function or frame.module + ("!" if frame.is_runtime else "") for frame in frames])
    total = sum(counts.values())
    note("%s: %s, %d of %d chains seen, %d without a name" % (version, dict(counts), len(seen), len(chains), nameless))
    note("declared: %s" % {sentence: count for sentence, count in why.items() if sentence})
    check(total > 100, version + ": samples", total)
    check(not wrong, version + ": each chain is one of the program's", "%d: %s" % (len(wrong), wrong[:3]))
    check(not marked, version + ": the interpreter's own frames are marked, and no others", marked[:2])
    # A sample tells of three objects that are new, and some are gone before the next one.
    check(nameless <= 5 + total // 100, version + ": code that exec() has made and left has its names", nameless)
    check(counts["joined"] >= 0.9 * total, version + ": stacks have Python's frames", dict(counts))
    check(len(seen) > 10, version + ": of many places", len(seen))


def test_versions():
    lines = lines_by_function()
    for version, python in PYTHONS.items():
        if not python:
            skip("there is no CPython %s" % version)
            continue
        judge(version, *record(python, version), lines)


def greenlets_of(python, version):
    """Where that interpreter finds them: as it is installed, or in a folder of that version. None: nowhere."""
    for path in ("", os.path.join(os.environ.get("PYTHON_GREENLETS", ""), version)):
        if not subprocess.run([python, "-c", "import greenlet"], env={**os.environ, "PYTHONPATH": path},
                              capture_output=True, check=False).returncode:
            return path
    return None


def test_greenlets():
    """The frames of the greenlet that runs, and of no other one. PYTHON_GREENLETS: a folder with one of each version's."""
    lines = lines_by_function()
    for version, python in PYTHONS.items() if "PYTHON_GREENLETS" in os.environ else pythons("debian").items():
        path = greenlets_of(python, version) if python else None
        if path is None:
            skip("there is no CPython %s with greenlet (PyPI, or Debian's python3-greenlet)" % version)
            continue
        name = version + " with greenlets"
        chains, stacks = record(python, name, GREENLETS, path)
        judge(name, chains, stacks, lines)
        for function in ("shallow", "deep", "key", "generators", "short", "down"):
            check(any(frame.function == function and not incomplete for incomplete, frames, _ in stacks for frame in frames),
                  "%s: that of %s is seen" % (name, function))


def address_of(path, name):
    """Where a symbol's value is in the file."""
    symbols = subprocess.run(["nm", "-D", path], capture_output=True, text=True, check=True).stdout
    address = int(next(line.split()[0] for line in symbols.splitlines() if line.endswith(" " + name)), 16)
    headers = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=True).stdout
    for fields in map(str.split, headers.splitlines()):
        if fields[:1] == ["LOAD"] and 0 <= address - int(fields[2], 16) < int(fields[4], 16):
            return address - int(fields[2], 16) + int(fields[1], 16)
    raise RuntimeError("no segment has " + name)


def test_newer():
    """One that says of itself that it is a later version: nothing is guessed, and the samples and the log say so."""
    python = os.path.join(WORK, "python3.77")
    shutil.copy2(os.path.realpath("/usr/bin/python3"), python)
    at = address_of(python, "Py_Version")
    with open(python, "r+b") as file:
        file.seek(at)
        file.write(struct.pack("<I", 0x034d01f0))
    target = start([python, "-c", "while True: sum(range(1000))"], "target.log")
    output = os.path.join(WORK, "newer.otlp")
    agent = subprocess.run([os.path.join(BUILD, "farflame-agent"), "--pid", str(target.pid), "--output", output,
                            "--duration", "2s", "--frequency", RATE], capture_output=True, text=True, check=False)
    end(target)
    stacks = list(stacks_of(output))
    declared = sum(count for incomplete, _, count in stacks if incomplete == NEWER)
    total = sum(count for _, _, count in stacks)
    check(declared > 0.7 * total > 0, "a newer version's samples say so", (declared, total, {i for i, _, _ in stacks}))
    check(not any(frame.function for _, frames, _ in stacks for frame in frames), "and have no frames that are guessed")
    check('version=3.77.1 why="newer than this agent knows: a newer agent reads it"' in agent.stderr,
          "the agent's log says which one it is", agent.stderr[-1000:])


def test_off():
    """--interpreters off: the interpreter's own frames are all that there is, and nothing is read for more."""
    target = start(["/usr/bin/python3", "-c", "while True: sum(range(1000))"], "target.log")
    output = os.path.join(WORK, "off.otlp")
    agent = subprocess.run([os.path.join(BUILD, "farflame-agent"), "--pid", str(target.pid), "--output", output,
                            "--duration", "2s", "--frequency", RATE, "--interpreters", "off"], capture_output=True, text=True)
    end(target)
    check(agent.returncode == 0, "--interpreters off: the agent ends well", agent.stderr[-2000:])
    stacks = list(stacks_of(output))
    check(sum(count for _, _, count in stacks) > 20 and any(frame.module.startswith("python3") for _, frames, _ in stacks
                                                           for frame in frames), "stacks are the interpreter's", len(stacks))
    check(not any(frame.function or frame.is_runtime for _, frames, _ in stacks for frame in frames), "and have none of Python's")


def newest():
    """(version, path) of the last one that has what these programs need."""
    return next(((version, python) for version, python in reversed(PYTHONS.items()) if version not in ("3.6", "3.7") and python),
                (None, None))


def test_interpreters():
    """A thread's frames are those of the interpreter that it is in; that there may be more of them is said."""
    version, python = newest()
    if not python:
        skip("no interpreter that can have another one")
        return
    output = os.path.join(WORK, "interpreters.otlp")
    target = start([python, os.path.join(PROGRAMS, "python_interpreters.py"), "60"], "target.log")
    time.sleep(0.5)
    agent = subprocess.run([os.path.join(BUILD, "farflame-agent"), "--pid", str(target.pid), "--output", output,
                            "--duration", "3s", "--frequency", RATE], capture_output=True, text=True)
    end(target)
    check(agent.returncode == 0, "an interpreter within another one: the agent ends well", agent.stderr[-2000:])
    found, said = collections.Counter(), collections.Counter()
    for incomplete, frames, count in stacks_of(output):
        names = {frame.function.split(".")[-1] for frame in frames}
        where = "inner" if "inner_main" in names else "first" if "first_main" in names else None
        found[where] += count
        said[where] += count if "another interpreter" in incomplete else 0
        if where == "inner" and not {"outer", "first_main"}.isdisjoint(names):
            found["mixed"] += count
    note("an interpreter within another one (%s): %s, said %s" % (version, dict(found), dict(said)))
    check(found["inner"] > 20 and found["first"] > 20, "both interpreters' frames are there", dict(found))
    check(not found["mixed"] and said["inner"] >= 0.95 * found["inner"],  # or that something else is missing
          "that frames outside of an interpreter are missing is said", (dict(found), dict(said)))
    check(not said["first"], "and not of the first one's", dict(said))


LOOP = ["run_until_complete", "run_forever", "_run_once", "_run"]  # in front of what a task runs
KIND = re.compile(r"(?:kind|part)_(\d)$")


def test_tasks():
    """A sample of one of 1000 tasks shows which kind it is, in the event loop; shares are those that the program counts."""
    version, python = newest()
    if not python:
        skip("no interpreter that has what the tasks need")
        return
    output = os.path.join(WORK, "tasks.otlp")
    target = start([python, os.path.join(PROGRAMS, "python_tasks.py"), "7"], "target.log", stdout=subprocess.PIPE)
    time.sleep(1)
    agent = subprocess.run([os.path.join(BUILD, "farflame-agent"), "--pid", str(target.pid), "--output", output,
                            "--duration", "5s", "--frequency", "499"], capture_output=True, text=True)
    spent = json.loads(target.communicate()[0].decode())
    check(agent.returncode == 0, "tasks: the agent ends well", agent.stderr[-2000:])
    counts, astray = collections.Counter(), []
    for incomplete, frames, count in stacks_of(output):
        chain = [frame.function.split(".")[-1] for frame in reversed(frames) if frame.function]
        if incomplete or "measured" not in chain:
            continue
        kinds = [(at, KIND.match(name).group(1)) for at, name in enumerate(chain) if KIND.match(name)]
        if len(kinds) != 1 or chain[:kinds[0][0]][-len(LOOP):] != LOOP or chain[kinds[0][0] + 1] != "measured":
            astray.append(chain)
        else:
            counts["kind_" + kinds[0][1]] += count
    total, all_ns = sum(counts.values()), sum(spent.values())
    shares = {kind: (counts[kind] / max(total, 1), ns / all_ns) for kind, ns in spent.items()}
    wrong = [kind for kind, (got, want) in shares.items() if abs(got - want) > 4 * (want / max(total, 1)) ** 0.5 + 0.02]
    note("tasks (%s): %d samples, shares %s" % (version, total, {kind: "%.3f of %.3f" % pair for kind, pair in shares.items()}))
    check(total > 50, "samples of tasks", total)
    check(not astray, "each in a task of its own, in the event loop", astray[:2])
    check(len(shares) == 5 and not wrong, "shares of 1000 tasks are what the program counts", (total, shares))


def differs(seen, truth):
    """What is further from its share of the CPU time than chance puts it."""
    total, whole = sum(seen.values()), sum(truth.values())
    found = []
    for key, seconds in truth.items():
        share = seconds / whole
        if abs(seen[key] - total * share) > 5 * (total * share * (1 - share)) ** 0.5 + 0.005 * total:
            found.append("%s: %.1f %%, %.1f %% of the time" % (key, 100 * seen[key] / total, 100 * share))
    return found


def check_shares(version, python):
    output = os.path.join(WORK, version + ".shares.otlp")
    target = subprocess.Popen([python, SHARES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        subprocess.run([os.path.join(BUILD, "farflame-agent"), "--pid", str(target.pid), "--output", output, "--duration",
                        "%ds" % SECONDS, "--frequency", "497"], check=True, capture_output=True)
        truth = json.loads(target.communicate("\n", 20)[0])
    finally:
        target.kill()
    functions, lines, wrong, own = collections.Counter(), collections.Counter(), 0, ("one", "two", "three", "four", "five", "six")
    for incomplete, frames, count in stacks_of(output):
        chain = [frame for frame in reversed(frames) if frame.function in own]
        if incomplete or not chain:
            continue
        wrong += count * (tuple(frame.function for frame in chain) != own[:len(chain)])
        functions[chain[-1].function] += count
        if len(chain) == len(own):
            lines[str(chain[-1].line)] += count
    total = sum(functions.values())
    stray = sum(count for line, count in lines.items() if line not in truth["lines"])
    note("%s: %d samples, %d in the innermost one, %d at other lines of it" % (version, total, functions["six"], stray))
    check(total > 150, version + ": samples of six functions", total)
    check(not wrong, version + ": … each in the one before", wrong)
    check(not differs(functions, truth["functions"]), version + ": … by their shares", differs(functions, truth["functions"]))
    check(not differs(lines, truth["lines"]), version + ": ten lines by their shares", differs(lines, truth["lines"]))
    check(stray <= 2 + total // 1000, version + ": … and at no other line", dict(lines))


def test_shares():
    for version, python in pythons("debian").items():
        if python:
            check_shares(version, python)


def functions_of(library):
    """[(address, name)] in order."""
    answer = subprocess.run(["nm", "-C", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    return sorted((int(line.split()[0], 16), line.split()[2].split("(")[0].split("::")[-1]) for line in answer.splitlines()
                  if line.split()[1] in "Tt")


def merged_chain(frames, functions):
    """Root first: functions of Python's, and of the library's between them."""
    chain = []
    for frame in reversed(frames):
        if frame.function:
            chain.append(frame.function)
        elif frame.module == MIX:
            chain.append(functions[bisect.bisect(functions, (frame.line, "~")) - 1][1])
    return chain


def check_mix(version, python):
    library = os.path.join(BUILT, MIX)
    functions, output = functions_of(library), os.path.join(WORK, version + ".mix.otlp")
    target = start([python, os.path.join(os.path.dirname(PROGRAM), "python_mix.py"), library], "mix.log",
                   stdout=subprocess.PIPE)
    truths = [["<module>"] + chain for chain in json.loads(target.stdout.readline().decode())]
    subprocess.run([os.path.join(BUILD, "farflame-agent"), "--pid", str(target.pid), "--output", output, "--duration", "4s",
                    "--frequency", "197"], check=True, capture_output=True)
    end(target)
    seen, wrong, declared = collections.Counter(), [], 0
    for incomplete, frames, count in stacks_of(output):
        chain = merged_chain(frames, functions)
        # Before it goes on in a handler's frame, the unwinder overwrites what its own frames have saved.
        is_between = any(frame.module.startswith("libgcc_s") for frame in frames)
        if incomplete or is_between or not any(frame.function for frame in frames):
            declared += count
            continue
        fits = [i for i, truth in enumerate(truths) if chain == truth[:len(chain)]]
        seen.update({i: count for i in fits if chain == truths[i]})
        if not fits:
            wrong.append(chain)
    note("%s: %s, %d alone, declared or in the unwinder" % (version, dict(seen), declared))
    check(not wrong, version + ": Python in C++ in Python, also by an exception, in the true order", wrong[:3])
    check(len(seen) == len(truths), version + ": … while one is in flight, too", dict(seen))


def test_mix():
    build_programs(MIX)
    for version, python in pythons("debian").items():
        if python:
            check_mix(version, python)


need_bpf()
run(test_versions, test_greenlets, test_newer, test_off, test_interpreters, test_tasks, test_shares, test_mix)
