# SPDX-License-Identifier: Apache-2.0
"""Java's stacks of a stopped process as the Serviceability Agent of its own JDK has them (JavaJudge.java), and the agent's
samples of the same moments beside them: class, method, line of every frame, inlined ones too.

    /usr/bin/python3 tests/tools/java_judge.py BUILD STOPS JAVA [ARGUMENT…]

as root; JAVA: the java of a JDK with jhsdb or sa-jdi.jar, ARGUMENTs: what it is to run. The agent stops the process at
each of its samples (--debug-stop), the judge reads it while it stands. Prints a row, and the first stacks that differ; the
status says whether there are any. RATE: samples a second (97); DIFFER: how many to show (5).

How exact the agent of the JDK is, x86-64, 8 to 25: callers of a whole frame and what is inlined at a return address are
exact. Its own search for the newest frame is not: it takes the first stack pointer from which it gets to the end, and
leaves out frames in silence in prologues, epilogues, stubs, the interpreter's entries and returns, and in libraries that
Java code calls without a transition. So none of that is asked of it: a thread that stands there takes single steps until it
does no more (ptrace), which leaves all but the innermost frame as it was, and is read then ("torn" says where it stood).
Of the innermost frame that is left out: the line of a prologue, and whether a frame is there at all that is just being
torn down. Where code is compiled, an address between two of those that HotSpot has noted counts as the next one, as HotSpot
itself says: whether that is the line at work, only shares over time can tell."""
import collections
import ctypes
import json
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time

import otlp

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = ("", ".code", ".debugger", ".interpreter", ".oops", ".runtime", ".types")
ROUNDS, STEPS = 12, 30000
SEIZE, STEP, DETACH, INTERRUPT, GETREGSET = 0x4206, 9, 17, 0x4207, 0x4204
WALL, TRAP, EVENT_STOP, REGISTERS, RIP, RSP = 0x40000000, 5, 128, 27, 16, 19  # of struct user_regs_struct, eight bytes each

Frame = collections.namedtuple("Frame", "name line kind at bci address pc")  # at: number of the machine's frame it is in
Thread = collections.namedtuple("Thread", "tid pc name frames torn owner")  # frames: leaf first; None: not known
Stop = collections.namedtuple("Stop", "time_ns threads")
Taken = collections.namedtuple("Taken", "time_ns tid incomplete frames")  # frames of Java's: (name, line), leaf first


# --- the stopped process ---

def state_of(pid, tid):
    return open("/proc/%d/task/%s/stat" % (pid, tid)).read().rsplit(")", 1)[1].split()[0]


def is_stopped(pid):
    try:
        return all(state_of(pid, tid) in "tT" for tid in os.listdir("/proc/%d/task" % pid))
    except OSError:  # one has just ended
        return False


def wait_stopped(pid, seconds):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if is_stopped(pid):
            return True
        time.sleep(0.001)
    return False


class Stepper:
    """One thread of a stopped process, on its way to the next place that can be read."""
    def __init__(self, tid):
        self.libc, self.tid = ctypes.CDLL(None, use_errno=True), tid
        self.libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
        self.ask(SEIZE)
        self.ask(INTERRUPT)
        os.waitpid(tid, WALL)

    def ask(self, request, address=None, data=None):
        if self.libc.ptrace(request, self.tid, address, data) < 0:
            raise OSError(ctypes.get_errno(), "ptrace %d" % request)

    def place(self):
        """(pc, sp)"""
        registers = ctypes.create_string_buffer(8 * REGISTERS)
        vector = (ctypes.c_ulong * 2)(ctypes.addressof(registers), len(registers))
        self.ask(GETREGSET, 1, ctypes.addressof(vector))
        words = struct.unpack("%dQ" % REGISTERS, registers.raw)
        return words[RIP], words[RSP]

    def step_until(self, is_there):
        """False: it never was, or something else happened to it."""
        for _ in range(STEPS):
            self.ask(STEP)
            status = os.waitpid(self.tid, WALL)[1]
            if not os.WIFSTOPPED(status):
                return False
            if status >> 16 == EVENT_STOP or os.WSTOPSIG(status) == signal.SIGSTOP:
                continue  # the whole process stands, this thread need not
            if os.WSTOPSIG(status) != TRAP:
                return False
            if is_there(*self.place()):
                return True
        return False

    def end(self):
        self.ask(DETACH)


class Judge:
    """A process of its own that asks the Serviceability Agent. ValueError: this JDK has none."""
    def __init__(self, java, folder):
        home = os.path.dirname(os.path.dirname(os.path.realpath(java)))
        old = next((path for path in (home + "/lib/sa-jdi.jar", home + "/../lib/sa-jdi.jar") if os.path.exists(path)), None)
        javac = os.path.join(home if os.path.exists(home + "/bin/javac") else home + "/..", "bin/javac")
        if not os.path.exists(javac) or not old and not os.path.exists(home + "/bin/jhsdb"):
            raise ValueError("%s has no Serviceability Agent" % home)
        options = ["-cp", old + ":" + folder] if old else ["--add-modules", "jdk.hotspot.agent"]
        for package in () if old else PACKAGES:
            options += ["--add-exports", "jdk.hotspot.agent/sun.jvm.hotspot%s=ALL-UNNAMED" % package]
        subprocess.run([javac, *options, "-nowarn", "-d", folder, HERE + "/JavaJudge.java"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if not old:
            options += ["-cp", folder]
            for package in (".debugger", ".runtime.x86", ".runtime.amd64"):
                options += ["--add-opens", "jdk.hotspot.agent/sun.jvm.hotspot%s=ALL-UNNAMED" % package]
        self.process = subprocess.Popen([java, *options, "-XX:+UseSerialGC", "-Xshare:auto", "JavaJudge"], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=open(folder + "/judge.log", "w"))

    def ask(self, pid, tids=()):
        self.process.stdin.write(" ".join(str(number) for number in (pid, *tids)) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise OSError("the judge has ended")
        return {thread["tid"]: thread for thread in json.loads(line)["threads"]}

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def step_out(tid, thread):
    """True: it has got to a place that is another; there the thread may be torn as well."""
    low, high, end = thread.get("low", 0), thread.get("high", 0), thread.get("end", 0)
    start = thread["sp"]
    if thread["torn"] == "library":
        low, high = thread["code"]
        is_there = lambda pc, sp: low <= pc < high  # noqa: E731
    elif thread["torn"] == "prologue":
        is_there = lambda pc, sp: high <= pc < end or not low <= pc < end and sp > start  # noqa: E731
    elif thread["torn"] in ("epilogue", "stub of the method"):
        is_there = lambda pc, sp: not low <= pc < high and sp > start  # noqa: E731
    else:
        is_there = lambda pc, sp: not low <= pc < high  # noqa: E731
    stepper = Stepper(tid)
    try:
        return is_there(*stepper.place()) or stepper.step_until(is_there)
    finally:
        stepper.end()


def frames_of(thread):
    return [Frame(frame["class"] + "." + frame["method"], frame["line"], frame["kind"], frame["at"], frame["bci"],
                  frame["address"], frame["pc"]) for frame in thread["frames"]]


def is_in_call(pid, tid):
    return not open("/proc/%d/task/%d/syscall" % (pid, tid)).read().startswith("-1 ")


def read_thread(judge, pid, thread):
    """As it stood, with the frames that it has at the next place where they can be told."""
    tid, first = thread["tid"], thread
    rounds = 0 if "torn" not in thread or is_in_call(pid, tid) else ROUNDS
    while rounds and "torn" in thread and "error" not in thread and step_out(tid, thread) and wait_stopped(pid, 5):
        thread = judge.ask(pid, [tid])[tid]
        rounds -= 1
    known = "torn" not in thread and "error" not in thread
    return Thread(tid, first["pc"], first["name"], frames_of(thread) if known else None,
                  first.get("torn") or first.get("error", ""), first.get("owner", ""))


def read_stop(judge, pid):
    time_ns = time.monotonic_ns()
    return Stop(time_ns, [read_thread(judge, pid, thread) for thread in judge.ask(pid).values()])


def take_stops(judge, pid, count, seconds):
    stops, deadline = [], time.monotonic() + seconds
    while len(stops) < count and time.monotonic() < deadline and os.path.exists("/proc/%d" % pid):
        if wait_stopped(pid, 5):
            stops.append(read_stop(judge, pid))
            os.kill(pid, signal.SIGCONT)
    return stops


# --- the agent ---

def leaves(path):
    """{tid: [(time in ns, address of the leaf)…]} of the samples that --debug-stacks wrote."""
    found, key = collections.defaultdict(list), None
    for line in open(path):
        fields = line.split()
        if line.startswith("sample "):
            key = (int(fields[fields.index("tid") + 1]), int(fields[1]))
        elif fields and key and re.match(r"[0-9a-f]+$", fields[0]):
            found[key[0]].append((key[1], int(fields[0], 16)))
            key = None
    return found


def frames_at(reader, index):
    """Of a location: (name, line) of each of Java's, inlined ones first."""
    location = reader.dictionary.location_table[index]
    if reader.attributes(location.attribute_indices).get("profile.frame.type") != "jvm":
        return []
    return [(reader.strings[reader.dictionary.function_table[line.function_index].name_strindex], line.line)
            for line in location.lines]


def samples_of(build, path):
    reader = otlp.Reader(otlp.read(build, path))
    for resource in reader.request.resource_profiles:
        for scope in resource.scope_profiles:
            for profile in scope.profiles:
                for sample in profile.samples:
                    attributes = reader.attributes(sample.attribute_indices)
                    stack = reader.dictionary.stack_table[sample.stack_index]
                    frames = [frame for i in stack.location_indices for frame in frames_at(reader, i)]
                    for time_ns in sample.timestamps_unix_nano:
                        yield Taken(time_ns, int(attributes.get("thread.id") or 0), attributes.get("farflame.incomplete", ""),
                                    frames)


# --- both ---

GENERATED = re.compile(r"(\$\$Lambda|\$Proxy|GeneratedMethodAccessor|GeneratedConstructorAccessor|LambdaForm\$\w+?)[$/.\w]*?(?=\.)")


def plain(name):
    """Without what differs between two starts: numbers of generated classes, and addresses of hidden ones."""
    return re.sub(r"[/+]0x[0-9a-f]+|\$\$?\d+(?=[/.]|$)|(?<=\$Proxy)\d+|(?<=Accessor)\d+|(?<=\$\$Lambda)\$\d+(/\d+)?", "", name)


def same(ours, theirs, with_lines=True):
    """Two lists of frames: equal?"""
    return len(ours) == len(theirs) and all(
        plain(a[0]) == plain(b.name) and (not with_lines or a[1] == b.line or b.bci < 0) for a, b in zip(ours, theirs))


def difference(ours, thread):
    """None: there is none."""
    theirs = thread.frames
    if not thread.torn or thread.torn == "library":
        return None if same(ours, theirs, not thread.torn) else "differs"
    inner = [frame for frame in theirs if not frame.at]
    if thread.torn == "prologue":
        callers = theirs[len(inner):]
        leaf = ours[:len(ours) - len(callers)]
        good = same(ours[len(leaf):], callers) and leaf and plain(leaf[-1][0]) == plain(inner[-1].name)
    elif thread.torn.startswith("interpreter") and "entry" in thread.torn:
        good = same(ours, theirs, False) or same(ours, theirs[1:], False)
    elif thread.torn.startswith("stub:"):
        good = same(ours, theirs, False) or thread.torn.endswith("I2C/C2I adapters") and same(ours, theirs[len(inner):], False)
    else:  # the frame is left
        leaf = ours[:max(len(ours) - len(theirs), 0)]
        good = same(ours[len(leaf):], theirs, False) and (
            not leaf or not thread.owner or plain(leaf[-1][0]) == plain(thread.owner))
    return None if good else "differs (%s)" % thread.torn


class Result:
    def __init__(self):
        self.stops = self.moved = self.equal = self.frames = self.inlined = self.unjudged = self.not_java = 0
        self.torn, self.declared, self.why_unjudged = collections.Counter(), collections.Counter(), collections.Counter()
        self.wrong = []

    def add(self, taken, thread):
        if thread.frames == taken.frames == []:
            self.not_java += 1
            return
        self.stops += 1
        if thread.frames is None:
            self.unjudged += 1
            self.why_unjudged[thread.torn] += 1
            return
        if taken.incomplete:
            self.declared[taken.incomplete] += 1
            return
        self.torn[re.sub(r":.*", "", thread.torn) or "whole"] += 1
        self.frames += len(thread.frames)
        self.inlined += sum(a.at == b.at for a, b in zip(thread.frames, thread.frames[1:]))
        why = difference(taken.frames, thread)
        self.equal += not why
        if why:
            self.wrong.append((why, taken, thread))


def compare(stops, by_leaf, taken):
    """Each stop with the last sample of a thread that stood at the sample's own instruction."""
    result = Result()
    known_ns = min((one.time_ns for one in taken if one.frames), default=0)  # before that the machine was not known
    ahead_ns = time.time_ns() - time.monotonic_ns()
    previous_ns = 0
    for stop in stops:
        matched = 0
        for thread in stop.threads:
            before = [one for one in by_leaf[thread.tid] if previous_ns < one[0] < stop.time_ns]
            if not before or thread.pc - max(before)[1] not in (0, 2):
                continue
            near = [one for one in taken if one.tid == thread.tid and abs(one.time_ns - ahead_ns - max(before)[0]) < 2000000]
            if len(near) == 1 and near[0].time_ns >= known_ns:
                matched += 1
                result.add(near[0], thread)
        result.moved += not matched
        previous_ns = stop.time_ns
    return result


def record(build, java, arguments, count, folder, agent_options=()):
    """What came of one program; it is started and ended here. ValueError: the JDK has no judge."""
    judge = Judge(java, folder)
    log = open(folder + "/target.log", "w")
    target = subprocess.Popen([java, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    agent = None
    try:
        time.sleep(3)
        agent = subprocess.Popen([os.path.join(build, "farflame-agent"), "--pid", str(target.pid), "--timestamps", "--debug-stop",
                                  "--frequency", os.environ.get("RATE", "97"), "--debug-stacks", folder + "/stacks",
                                  "--output", folder + "/otlp", *agent_options], stdout=log, stderr=log)
        stops = take_stops(judge, target.pid, count, 60 + count)
        agent.send_signal(signal.SIGTERM)
        agent.wait(30)
    finally:
        for process in (target, agent):
            if process and process.poll() is None:
                process.kill()
                process.wait()
        judge.end()
    result = compare(stops, leaves(folder + "/stacks"), list(samples_of(build, folder + "/otlp")))
    result.all_stops = stops
    return result


def show(result):
    print("stops %d, equal %d, declared %d, wrong %d, unjudged %d, moved on %d, not in Java %d, frames %d, of them inlined %d" % (
        result.stops, result.equal, sum(result.declared.values()), len(result.wrong), result.unjudged, result.moved,
        result.not_java, result.frames, result.inlined))
    for what, counted in (("where", result.torn), ("declared", result.declared), ("unjudged", result.why_unjudged)):
        for why, number in counted.most_common(12):
            print("#   %s %6d  %s" % (what, number, why))
    for why, taken, thread in result.wrong[:int(os.environ.get("DIFFER", "5"))]:
        print("# %s: tid %d pc %x torn %r\n#   agent %s\n#   judge %s" % (
            why, thread.tid, thread.pc, thread.torn, taken.frames[:12], [(f.name, f.line, f.kind) for f in thread.frames[:12]]))


def main():
    build, count, java = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    with tempfile.TemporaryDirectory() as folder:
        result = record(build, java, sys.argv[4:], count, folder)
    show(result)
    sys.exit(bool(result.wrong))


if __name__ == "__main__":
    main()
