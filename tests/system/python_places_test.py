# SPDX-License-Identifier: Apache-2.0
"""Where the agent says that the threads of CPython's processes have their states, against what each thread says of
itself in gdb; embedded, loaded, forked and several interpreters; how soon after exec; and what processes cost that
only look like one. The table is the kernel's own, read by bpf(2)."""
import collections
import ctypes
import glob
import json
import os
import re
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import otlp  # pylint: disable=wrong-import-position
from harness import (  # pylint: disable=wrong-import-position
    BUILD, PROGRAMS, WORK, build_programs, check, end, need_bpf, note, program_copy, run, skip, start, wait_for)

TOOLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools")
PYENV = os.path.expanduser("~/.pyenv/versions")
# Three threads that wait, one that runs; each says which one it is, and what its state is.
BUSY = """
import ctypes, threading
state = ctypes.pythonapi.PyGILState_GetThisThreadState
state.restype = ctypes.c_void_p
def say(): print(ctypes.CDLL(None).syscall(%d), state(), flush=True)
said, go = threading.Semaphore(0), threading.Event()
def wait():
    say()
    said.release()
    go.wait()
for i in range(3):
    threading.Thread(target=wait, daemon=True).start()
    said.acquire()
say()
print("ready", flush=True)
while True: pass
""" % (186 if os.uname().machine == "x86_64" else 178)


def compiled(header, *numbers):
    """As the compiler has them."""
    program = os.path.join(WORK, "compiled")
    subprocess.run(["cc", "-x", "c", "-I.", "-o", program, "-"], check=True, text=True, input="""
#include <linux/types.h>
#include "%s"
#include <stdio.h>
int main(void) { %s return 0; }
""" % (header, " ".join('printf("%%lu ", (unsigned long)(%s));' % number for number in numbers)))
    return [int(n) for n in subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()]


def place_bytes(header, name):
    """The table is found by it."""
    return compiled(header, "sizeof(%s)" % name)[0]


os.makedirs(WORK, exist_ok=True)
PLACE_BYTES, PIDS_BYTES, PIDS_GROUP, PIDS_GROUPS, PLACES = compiled(
    "bpf/runtime_frames.h", "sizeof(struct runtime_place)", "sizeof(struct runtime_pids)", "RUNTIME_PIDS_GROUP",
    "RUNTIME_PIDS_GROUPS", "RUNTIME_TABLE")
Place = collections.namedtuple("Place", "start exec_id language current thread_at other_at thread_in other_in")


# --- the kernel's table ---

def bpf(command, attributes):
    room = ctypes.create_string_buffer(attributes, 128)
    return ctypes.CDLL(None, use_errno=True).syscall(321 if os.uname().machine == "x86_64" else 280, command, room,
                                                     ctypes.c_uint(len(attributes)))


class Table:
    """The agent's only map of values of that size (and so many); made with the first."""
    def __init__(self, agent, count, entries=None):
        self.agent, self.fd, self.count, self.entries = agent, -1, count, entries

    def find(self):
        folder = "/proc/%d/fdinfo" % self.agent.pid
        for name in os.listdir(folder) if self.fd < 0 else []:
            try:
                lines = dict(line.split(":", 1) for line in open(os.path.join(folder, name)) if ":" in line)
            except OSError:
                continue
            if [lines.get(key, "").strip() for key in ("key_size", "value_size")] == ["4", str(self.count)] and (
                    self.entries is None or int(lines["max_entries"]) == self.entries):
                self.fd = bpf(14, struct.pack("<III", int(lines["map_id"]), 0, 0))
                break
        return self.fd >= 0

    def read(self, key):
        key, value = ctypes.c_uint32(key), ctypes.create_string_buffer(self.count)
        if not self.find() or bpf(1, struct.pack("<IIQQQ", self.fd, 0, ctypes.addressof(key), ctypes.addressof(value),
                                                 0)):
            return None
        return value.raw


class Places:
    """Of the first of the agent's tables of places, and which process has which."""
    def __init__(self, agent):
        self.pids, self.places = Table(agent, PIDS_BYTES, PIDS_GROUPS), Table(agent, PLACE_BYTES, PLACES)

    def get(self, pid):
        group = self.pids.read((pid * 0x9e3779b1 % 2**32 >> 16) * PIDS_GROUPS >> 16)  # runtime_pids_of()
        group = struct.unpack_from("<%dI%dH" % (PIDS_GROUP, PIDS_GROUP), group) if group else []
        if pid not in group[:PIDS_GROUP]:
            return None
        value = self.places.read(group[PIDS_GROUP + group.index(pid)])
        return value and Place(*struct.unpack("<QIIQqqii", value[:48]))


def agent(*more):
    """(process, table, path of its log)"""
    log = os.path.join(WORK, "agent.log")
    if os.path.exists(log):
        os.unlink(log)
    started = start([os.path.join(BUILD, "farflame-agent"), "--output", os.path.join(WORK, "out.pb"), "--log-level",
                     "debug", *more], "agent.log")
    wait_for(lambda: "profiling" in open(log).read(), 30)
    return started, Places(started), log


def ready(arguments, **more):
    """A program that has said so; its states by thread."""
    process = start(arguments, stdout=subprocess.PIPE, text=True, **more)
    process.states = {}
    for line in process.stdout:
        if line == "ready\n":
            return process
        tid, state = line.split()
        process.states[int(tid)] = int(state)
    raise RuntimeError("%s has ended" % arguments)


# --- threads ---

def ask_threads(pid, place):
    out = os.path.join(WORK, "threads")
    places = [(place.thread_at, place.thread_in)] + ([(place.other_at, place.other_in)] if place.other_at else [])
    environment = {**os.environ, "OUT": out, "CURRENT": str(place.current),
                   "PLACES": " ".join("%d,%d" % one for one in places)}
    done = subprocess.run(["gdb", "-nx", "-q", "-batch", "-ex", "set auto-solib-add on", "-p", str(pid), "-x",
                           os.path.join(TOOLS, "python_threads_gdb.py")], env=environment, capture_output=True,
                          text=True, timeout=120, check=False)
    try:
        return [json.loads(line) for line in open(out)]
    except OSError:
        raise RuntimeError(done.stdout + done.stderr) from None


def check_threads(process, place, text, pid=None):
    *threads, last = ask_threads(pid or process.pid, place)
    found = {thread["tid"]: thread["places"][0] for thread in threads}
    check(found == process.states, "%s: %d threads have their states where the place says" % (
        text, len(process.states)), (place, threads, process.states))
    check(last["current"] in [0, *process.states.values()], "%s: the one that runs is one of them" % text,
          (last, process.states))


def pythons():
    found = {"Debian's " + os.path.basename(path): path for path in glob.glob("/usr/bin/python3.[0-9]*[0-9]")}
    for path in sorted(glob.glob(PYENV + "/3.*/bin/python3")):
        found["pyenv's " + path.split("/")[-3]] = path
    return found


def versions():
    started, table, _ = agent()
    for name, path in pythons().items():
        process = ready([path, "-c", BUSY])
        place = wait_for(lambda: table.get(process.pid), 20, 0.02)
        if check(place, "%s: its process has a place" % name):
            check(place.language == 1 and (place.thread_at or place.current), "%s: is CPython" % name, place)
            check_threads(process, place, name)
            identified = wait_for(lambda: table.get(process.pid).start, 20, 0.05)
            check(identified, "%s: and once it is sampled it is told apart from another of its number" % name)
        end(process, how=signal.SIGKILL)
        gone = wait_for(lambda: not table.get(process.pid), 10, 0.05)
        check(gone, "%s: with its end the place is gone" % name)
    end(started)


# --- embedded, several, forked ---

def libraries():
    return sorted(glob.glob("/usr/lib/*-linux-gnu/libpython3.*.so.1.0"))


def embedded():
    """Loaded by a program that is none, the key behind others: in glibc the first 32 have other places."""
    found = libraries()
    if not found:
        skip("no libpython of Debian's")
        return
    started, table, _ = agent()
    for keys in (0, 40):
        process = ready([os.path.join(PROGRAMS, "embeds_python"), str(keys), BUSY, found[0]])
        place = wait_for(lambda: table.get(process.pid), 20, 0.02)
        if check(place, "an interpreter that is loaded, behind %d keys, has a place" % keys):
            check_threads(process, place, "behind %d keys" % keys)
            check((place.thread_in >= 0) == (keys >= 32), "behind %d keys: in a block of its own or not" % keys, place)
        end(process, how=signal.SIGKILL)
    end(started)


def attached():
    """gdb has an interpreter, and an agent that comes later finds it by its samples."""
    if "libpython" not in subprocess.run(["ldd", "/usr/bin/gdb"], capture_output=True, text=True, check=False).stdout:
        skip("this gdb has no interpreter")
        return
    process = start(["gdb", "-nx", "-q", "-batch", "-ex", "python\nwhile True: pass"])
    time.sleep(1)
    started, table, _ = agent()
    place = wait_for(lambda: table.get(process.pid), 20, 0.05)
    check(place and place.start, "a program with an interpreter that ran before the agent has a place", place)
    end(process, how=signal.SIGKILL)
    end(started)


def summary(log):
    lines = re.findall(r"interpreters.*", open(log).read())
    return {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", lines[-1])} if lines else {}


def several():
    others = sorted(glob.glob(PYENV + "/3.12.*/lib/libpython3.12.so.1.0"))
    if not libraries() or not others:
        skip("not two libraries of Python here")
        return
    started, table, log = agent()
    process = ready([os.path.join(PROGRAMS, "embeds_python"), "0", BUSY, libraries()[0], others[0]])
    place = wait_for(lambda: table.get(process.pid), 20, 0.02)
    check(place, "of two interpreters the one that runs has a place")
    if place:
        check_threads(process, place, "of two interpreters")
    # The place may be one that was expected, before all of the process' files are looked at.
    time.sleep(2)
    end(started)
    check(summary(log).get("others") == 1, "and that there is another is said", summary(log))


# The child says what its only thread is, then the parent.
FORKS = """
import ctypes, os
state = ctypes.pythonapi.PyGILState_GetThisThreadState
state.restype = ctypes.c_void_p
go, went = os.pipe()
pid = os.fork()
if pid: os.read(go, 1)
print(os.getpid(), state(), flush=True)
if pid: print("ready", flush=True)
else: os.write(went, b"x")
while True: pass
"""


def forked():
    started, table, _ = agent()
    process = ready(["/usr/bin/python3", "-c", FORKS])
    child = next(pid for pid in process.states if pid != process.pid)
    states = dict(process.states)
    for pid, name in ((process.pid, "a process that forks"), (child, "its child")):
        place = wait_for(lambda: table.get(pid), 20, 0.02)
        if check(place, "%s has a place" % name):
            process.states = {pid: states[pid]}
            check_threads(process, place, name, pid)
    os.kill(child, signal.SIGKILL)
    end(process, how=signal.SIGKILL)
    end(started)


def c_libraries():
    """Where other C libraries have what their threads have set, as a program with CPython's names for it: of musl's,
    static, it has no dynamic symbols either."""
    started, table, _ = agent()
    for name in ("looks_like_python", "looks_like_python_musl"):
        if name.endswith("_musl"):
            if not shutil.which("musl-gcc"):
                skip("no musl-gcc")
                continue
            build_programs(name)
        process = ready([os.path.join(PROGRAMS, name), "threads"])
        place = wait_for(lambda: table.get(process.pid), 20, 0.02)
        if check(place, "%s has a place" % name):
            check_threads(process, place, name)
            check((place.thread_in >= 0) == name.endswith("_musl"), "%s: in a block of its own or not" % name, place)
        end(process, how=signal.SIGKILL)
    end(started)


# --- how soon, and what it costs ---

def soon():
    """From exec on, told by the agent, beside what the interpreter takes for its own start."""
    started, table, log = agent()
    own = []
    for i in range(12):
        begin = time.monotonic()
        subprocess.run(["/usr/bin/python3", "-S", "-c", "pass"], check=True)
        own.append((time.monotonic() - begin) * 1000)
        time.sleep(1.2)  # lines of a kind are written once a second
        process = ready(["/usr/bin/python3", "-c", BUSY])
        wait_for(lambda: table.get(process.pid), 20, 0.05)
        time.sleep(1.2)
        end(process, how=signal.SIGKILL)
    end(started)
    told = {}
    for pid, after in re.findall(r"Python (?:located|expected) pid=(\d+).* after_us=(\d+)", open(log).read()):
        told.setdefault(pid, int(after) / 1000)
    took = sorted(took for took in told.values() if took < 1000)  # without what is looked at again
    note("after exec: median %.1f ms, most %.1f ms of %d; python3 -c pass takes %.1f ms" % (
        statistics.median(took), took[-1], len(took), statistics.median(own)))
    check(len(took) >= 6, "starts are told of", told)
    check(statistics.median(took) <= max(50, 2 * statistics.median(own)),
          "half of them are known within 50 ms of their exec, or twice what their own start takes", (took, own))


def others():
    """Programs without an interpreter: files are asked about once, processes are not looked at."""
    started, _, log = agent()
    with open(os.path.join(WORK, "true.sh"), "w") as script:
        script.write("for i in $(seq 2000); do /bin/true; done; exec /bin/sleep 0.1\n")
    subprocess.run(["/usr/bin/python3", "-c", "import time; time.sleep(0.3)"], check=True)
    subprocess.run(["sh", os.path.join(WORK, "true.sh")], check=True)
    time.sleep(0.5)
    end(started)
    looks = summary(log).get("looks", 0)
    note("%d looks at processes for 2000 programs without an interpreter, and whatever else began here" % looks)
    check(0 < looks < 1000, "2000 starts of a program without an interpreter are not looked at", summary(log))


def cpu_ms(pid):
    """With its children."""
    total = 0
    for task in [pid] + [int(child) for child in
                         open("/proc/%d/task/%d/children" % (pid, pid)).read().split()]:
        fields = open("/proc/%d/stat" % task).read().rsplit(")", 1)[1].split()
        total += (int(fields[11]) + int(fields[12])) * 1000 // os.sysconf("SC_CLK_TCK")
    return total


def hostile():
    """What looks like one and is none costs a bounded time, and is said."""
    started, table, log = agent()
    real = ready(["/usr/bin/python3", "-c", BUSY])
    check(wait_for(lambda: table.get(real.pid), 20, 0.02), "a real one is known before")
    before, begin = cpu_ms(started.pid), time.monotonic()
    time.sleep(6)
    calm = (cpu_ms(started.pid) - before) / (time.monotonic() - begin)
    ways = ("many", "circle", "interpreters", "nowhere")
    processes = [ready([os.path.join(PROGRAMS, "looks_like_python"), how]) for how in ways * 2]
    before, begin = cpu_ms(started.pid), time.monotonic()
    time.sleep(10)
    busy = (cpu_ms(started.pid) - before) / (time.monotonic() - begin)
    note("the agent's CPU time with 8 of them: %.1f ms a second, without: %.1f" % (busy, calm))
    check(busy < calm + 60, "8 processes of somebody hostile cost less than 6 % of a CPU", (calm, busy))
    check(not any(table.get(process.pid) for process in processes), "none of them has a place")
    late = ready(["/usr/bin/python3", "-c", BUSY])
    check(wait_for(lambda: table.get(late.pid), 20, 0.02), "a real one that comes later is known")
    for process in processes + [real, late]:
        end(process, how=signal.SIGKILL)
    end(started)
    said = summary(log)
    check(said.get("not_located", 0) >= 4, "what they are is counted", said)
    check("Python's frames are not read" in open(log).read(), "and said")


# --- what has no list ---

EARLY = "the interpreter was found only after this sample"


def other_version(name):
    """A program that says to be a CPython of a version that there is none of, as a file of its own."""
    path = program_copy("looks_like_python", name)
    data = bytearray(open(path, "rb").read())
    version = data.index(struct.pack("<Q", 0x030b02f0))
    data[version:version + 8] = struct.pack("<Q", 0x035a00f0)
    build_id = data.index(struct.pack("<III", 4, 20, 3) + b"GNU\0") + 16
    data[build_id:build_id + 20] = bytes(20)
    with open(path, "wb") as file:
        file.write(data)
    return path


def declared():
    """No sample of an interpreter's is without its frames or a reason, from the agent's first one on."""
    processes = [ready([program_copy("looks_like_python", "py_nowhere"), "nowhere"]),
                 ready([other_version("py_other"), "circle"]), ready(["/usr/bin/python3", "-c", BUSY])]
    started, _, _ = agent("--frequency", "197", "--pid", ",".join(str(process.pid) for process in processes))
    time.sleep(4)
    end(started)
    why = collections.defaultdict(collections.Counter)
    reader = otlp.Reader(otlp.read(BUILD, os.path.join(WORK, "out.pb")))
    for sample in reader.samples():
        has_language = any(frame.kind == "cpython" for frame in sample.frames)
        why[sample.process]["joined" if has_language else sample.incomplete] += sample.count
    note(str({process: dict(counts) for process, counts in why.items()}))
    check(len(why) == 3, "three programs are sampled", dict(why))
    check(not sum(counts[""] for counts in why.values()), "no sample is without a reason", dict(why))
    for process, reason in (("py_nowhere", "where the interpreter has its frames was not found"),
                            ("py_other", "the interpreter is newer than the agent knows: a newer agent reads its frames")):
        counts = why[process]
        check(counts[reason] > counts[EARLY] and not counts["joined"], "%s says why" % process, dict(counts))
    told = sum(counts[reason] for counts in why.values() for reason in counts if "the interpreter" in reason)
    counted = {name: value for name, value in reader.counters().items() if name.startswith("farflame.runtimes.")}
    check(counted.get("farflame.runtimes.no_list") == told, "so many are counted", (told, counted))


def build():
    build_programs("embeds_python", "looks_like_python")


if __name__ == "__main__":
    need_bpf()
    run(build, versions, embedded, attached, several, forked, c_libraries, declared, soon, others, hostile)
