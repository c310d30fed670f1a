# SPDX-License-Identifier: Apache-2.0
"""Stacks of real Python programs as the agent sends them, against py-spy's (PyPI) of the same process at the same moment:
function, file and line of each frame. Not a part of the tests, since its programs come from PyPI.

    /usr/bin/python3 tests/tools/python_spy.py BUILD STOPS PYTHON [LOAD…]

as root; PYTHON: an interpreter, best a venv's, with py-spy beside it. The agent stops a thread at each of its samples
(--debug-stop); py-spy reads the process while it stands, which goes on then. LOAD: of tests/programs/python_loads.py.
Prints a row for each load; the status says whether all frames are equal.

Where py-spy itself is mistaken it is put right: it shows the frame that 3.12 and newer have before an __init__(), which
tracebacks do not, and reads 3.10's table of lines as if it were of another version; there the interpreter is asked."""
import collections
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import otlp

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "..", "programs", "python_loads.py")
Frame = collections.namedtuple("Frame", "function file line")
Stop = collections.namedtuple("Stop", "time_ns threads")  # threads: {tid: (pc, stacks of py-spy's, root first)}: it may be any of them
NO_NAME = "[no name]"
Taken = collections.namedtuple("Taken", "time_ns tid incomplete frames")


# --- the stopped process ---

def threads_of(pid):
    return [int(tid) for tid in os.listdir("/proc/%d/task" % pid)]


def state_of(pid, tid):
    return open("/proc/%d/task/%d/stat" % (pid, tid)).read().rsplit(")", 1)[1].split()[0]


def wait_stopped(pid, seconds):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if all(state_of(pid, tid) == "T" for tid in threads_of(pid)):
            return True
        time.sleep(0.001)
    return False


def pc_of(pid, tid):
    fields = open("/proc/%d/task/%d/syscall" % (pid, tid)).read().split()
    return int(fields[-1], 16)


def is_shim(frame):
    return frame["name"] == frame["filename"] == "__init__" and not frame["line"]


def spy(python, pid):
    answer = subprocess.run([os.path.join(os.path.dirname(python), "py-spy"), "dump", "--json", "--nonblocking", "--pid",
                             str(pid)], capture_output=True, text=True, check=False)
    if answer.returncode:
        return {}
    threads = {thread["os_thread_id"] or -i: [Frame(frame["name"], frame["filename"], frame["line"])
                                              for frame in reversed(thread["frames"]) if not is_shim(frame)]
               for i, thread in enumerate(json.loads(answer.stdout), 1)}
    if len(threads) == 1 and -1 in threads:  # before 3.11 it does not know which thread it is
        threads = {pid: threads[-1]}
    return threads


def take_stops(python, pid, count, seconds):
    stops, deadline = [], time.monotonic() + seconds
    while len(stops) < count and time.monotonic() < deadline:
        if not wait_stopped(pid, 5):
            continue
        time_ns = time.monotonic_ns()
        places = {tid: pc_of(pid, tid) for tid in threads_of(pid)}
        frames = spy(python, pid)
        unknown = [frames[tid] for tid in frames if tid < 0]
        stops.append(Stop(time_ns, {tid: (places[tid], [frames[tid]] if tid in frames else unknown) for tid in places
                                    if tid in frames or unknown}))
        os.kill(pid, signal.SIGCONT)
    return stops


# --- the agent ---

def leaves(path):
    """{(tid, time in ns): (address of the leaf, positions of Python's frames, root first)} of each sample that
    --debug-stacks wrote."""
    found, key = {}, None
    for line in open(path):
        fields = line.split()
        if line.startswith("sample "):
            key = (int(fields[fields.index("tid") + 1]), int(fields[1]))
            found[key] = (0, [])
        elif fields and fields[0] == "interpreter" and fields[1] != "end":
            found[key][1].insert(0, int(fields[1].split("+")[1], 16))
        elif fields and not found[key][0]:
            found[key] = (int(fields[0], 16), [])
    return found


def frame_of(reader, index):
    location = reader.dictionary.location_table[index]
    if reader.attributes(location.attribute_indices).get("profile.frame.type") != "cpython":
        return None
    line = location.lines[0]
    function = reader.dictionary.function_table[line.function_index]
    return Frame(reader.strings[function.name_strindex], reader.strings[function.filename_strindex], line.line)


def samples_of(build, path):
    reader = otlp.Reader(otlp.read(build, path))
    for resource in reader.request.resource_profiles:
        for scope in resource.scope_profiles:
            for profile in scope.profiles:
                for sample in profile.samples:
                    attributes = reader.attributes(sample.attribute_indices)
                    stack = reader.dictionary.stack_table[sample.stack_index]
                    frames = [frame_of(reader, i) for i in reversed(stack.location_indices)]
                    for time_ns in sample.timestamps_unix_nano:
                        yield Taken(time_ns, int(attributes.get("thread.id") or 0), attributes.get("farflame.incomplete", ""),
                                    [frame for frame in frames if frame])


# --- both ---

def same_name(ours, theirs):
    """py-spy has qualified names since 3.11, or none."""
    return ours == theirs or ours.split(".")[-1] == theirs.split(".")[-1]


def same_line(ours, theirs):
    """Instructions that the compiler has added stand in no line; py-spy has the one before then."""
    return ours in (0, theirs)


TABLES = """
import json, sys
found = {}
def add(code):
    found.setdefault(code.co_name, []).extend(code.co_lines())
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            add(constant)
add(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"))
print(json.dumps(found))
"""


@functools.lru_cache(maxsize=None)
def tables(python, file):
    """{function: [[position, position behind, line]…]} as the interpreter itself has them."""
    answer = subprocess.run([python, "-c", TABLES, file], capture_output=True, text=True, check=False)
    return json.loads(answer.stdout) if answer.returncode == 0 else {}


def put_right(python, taken, positions, stack):
    """Of 3.10: py-spy's stack with the lines that stand in the interpreter's table."""
    if len(taken.frames) != len(stack) or len(positions) != len(stack):
        return stack
    fixed = []
    for frame, at in zip(stack, positions):
        lines = {line for begin, end, line in tables(python, frame.file).get(frame.function, []) if begin <= at < end}
        ours = taken.frames[len(fixed)].line
        fixed.append(frame._replace(line=ours) if ours in lines and frame.line not in lines else frame)
    return fixed


def difference(taken, frames):
    if len(taken.frames) != len(frames):
        return "%d frames, %d of py-spy's" % (len(taken.frames), len(frames))
    for ours, theirs in zip(taken.frames, frames):
        if ours.function != NO_NAME and not (same_name(ours.function, theirs.function) and ours.file == theirs.file and
                                             same_line(ours.line, theirs.line)):
            return "%s is %s" % (tuple(ours), tuple(theirs))
    return None


class Result:
    def __init__(self):
        self.stops = self.moved = self.equal = self.frames = self.no_line = self.no_name = 0
        self.declared, self.wrong = collections.Counter(), []

    def add(self, taken, stacks):
        frames = next((stack for stack in stacks if not difference(taken, stack)), stacks[0])
        self.stops += 1
        if taken.incomplete:
            self.declared[taken.incomplete] += 1
            return
        self.frames += len(frames)
        self.no_line += sum(not frame.line for frame in taken.frames)
        self.no_name += sum(frame.function == NO_NAME for frame in taken.frames)
        if os.environ.get("SHOW_NO_LINE"):
            print([pair for pair in zip(taken.frames, frames) if not pair[0].line])
        why = difference(taken, frames)
        self.equal += not why
        if why:
            self.wrong.append((why, [tuple(frame) for frame in taken.frames[-3:]], [tuple(frame) for frame in frames[-3:]]))


def compare(python, stops, by_leaf, taken):
    """Each stop with the last sample of a thread that stands at the sample's own instruction."""
    result = Result()
    known_ns = min((one.time_ns for one in taken if one.frames), default=0)  # before that the interpreter was not known
    ahead_ns = time.time_ns() - time.monotonic_ns()
    by_thread = collections.defaultdict(list)
    for (tid, time_ns), (leaf, positions) in by_leaf.items():
        by_thread[tid].append((time_ns, leaf, positions))
    previous_ns = 0
    for stop in stops:
        matched = 0
        for tid, (pc, stacks) in stop.threads.items():
            before = [one for one in by_thread[tid] if previous_ns < one[0] < stop.time_ns]
            if not before or pc - max(before)[1] not in (0, 2):
                continue
            near = [one for one in taken if one.tid == tid and abs(one.time_ns - ahead_ns - max(before)[0]) < 2000000]
            if len(near) == 1 and near[0].time_ns >= known_ns:
                matched += 1
                result.add(near[0], [put_right(python, near[0], max(before)[2], stack) for stack in stacks]
                           if "python3.10" in os.path.realpath(python) else stacks)
        result.moved += not matched
        previous_ns = stop.time_ns
    return result


def record(build, python, load, count, base):
    log = open(base + ".log", "w")
    target = subprocess.Popen([python, PROGRAM, load], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    agent = None
    try:
        time.sleep(3)
        agent = subprocess.Popen([os.path.join(build, "farflame-agent"), "--pid", str(target.pid), "--frequency", "97", "--timestamps",
                                  "--debug-stop", "--debug-stacks", base + ".stacks", "--output", base + ".otlp"], stdout=log, stderr=log)
        stops = take_stops(python, target.pid, count, 60 + count)
        agent.send_signal(signal.SIGTERM)
        agent.wait(30)
    finally:
        for process in (target, agent):
            if process and process.poll() is None:
                process.kill()
                process.wait()
    return compare(python, stops, leaves(base + ".stacks"), list(samples_of(build, base + ".otlp")))


ROW = "%-6s %-15s %6s %6s %8s %8s %8s %7s %9s %6s  %s"


def main():
    build, count, python = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    loads = sys.argv[4:] or subprocess.run([python, PROGRAM, "list"], capture_output=True, text=True, check=True).stdout.split()
    version = subprocess.run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True,
                             check=True).stdout.strip()
    print(ROW % ("python", "load", "stops", "equal", "frames", "no name", "no line", "moved", "declared", "wrong", ""))
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for load in loads:
            result = record(build, python, load, count, os.path.join(folder, load))
            print(ROW % (version, load, result.stops, result.equal, result.frames, result.no_name, result.no_line,
                         result.moved, sum(result.declared.values()),
                         len(result.wrong), "; ".join("%s %d" % item for item in result.declared.items())), flush=True)
            wrong += len(result.wrong)
            for why, ours, theirs in result.wrong[:3]:
                print("#   %s\n#     ours  %s\n#     py-spy %s" % (why, ours, theirs), flush=True)
    sys.exit(wrong != 0)


main()
