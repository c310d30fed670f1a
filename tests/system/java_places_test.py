# SPDX-License-Identifier: Apache-2.0
"""Where the agent says that Java's machines have their code, against what each says of itself (jcmd); how soon after the
code cache is there; of those that ran before the agent, and until they end; what threads of its own are there for."""
import collections
import os
import re
import signal
import statistics
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import python_places_test as places  # pylint: disable=wrong-import-position
import otlp  # pylint: disable=wrong-import-position,wrong-import-order
from harness import (  # pylint: disable=wrong-import-position
    BUILD, PROGRAMS, WORK, build_java, check, end, java_major, jdks, need_bpf, note, run, skip, skip_all, start, wait_for)

PLACE_BYTES = places.place_bytes("bpf/hotspot_frames.h", "struct hotspot_place")
HEAPS = places.place_bytes("bpf/hotspot_frames.h", "char[__builtin_offsetof(struct hotspot_place, heaps)]")
Place = collections.namedtuple("Place", "start exec_id count low high heaps")
Heap = collections.namedtuple("Heap", "low high map log2 header")
SOON_MS, STARTS = 50, 5


class Table(places.Table):
    def get(self, pid):
        value = self.read(pid)
        if not value:
            return None
        head = struct.unpack("<QIIQQ", value[:32])
        return Place(*head, [Heap(*struct.unpack_from("<QQQII", value, HEAPS + 32 * i)) for i in range(head[2])])


def agent(*more):
    started, _, log = places.agent(*more)
    return started, Table(started, PLACE_BYTES), log


def spin(java, seconds="60", *options):
    return start([java, "-Xmx64m", "-XX:+UseSerialGC", *options, "-cp", os.path.join(PROGRAMS, "java-8"), "Six", seconds])


def told(java, pid):
    """{(low, high)}: what is reserved for each code heap, as the machine says it."""
    jcmd = os.path.join(os.path.dirname(java), "jcmd")
    text = subprocess.run([jcmd if os.path.exists(jcmd) else "jcmd", str(pid), "Compiler.codecache"], capture_output=True, text=True, timeout=60, check=False)
    return {(int(low, 16), int(high, 16))
            for low, high in re.findall(r"bounds \[(0x[0-9a-f]+), 0x[0-9a-f]+, (0x[0-9a-f]+)\]", text.stdout)}


def check_place(java, pid, place, what):
    if java_major(java) < 9:
        skip("%s: its jcmd does not say where its code is" % what)
        return
    heaps = wait_for(lambda: told(java, pid), 20, 0.5)
    check(heaps and {(heap.low, heap.high) for heap in place.heaps} == heaps, "%s: each code heap is where jcmd has it" % what,
          (place, heaps))
    check(place.low == min(heap.low for heap in place.heaps) and place.high == max(heap.high for heap in place.heaps),
          "%s: and they are all of it" % what)


def versions():
    """Each Java that is here, with the agent there before it."""
    started, table, log = agent()
    for name, java in jdks("17").items():
        if not java:
            skip("no Java %s here" % name)
            continue
        process = spin(java)
        place = wait_for(lambda: table.get(process.pid), 20, 0.005)
        check(place, "%s: it is known" % name)
        if place:
            check_place(java, process.pid, place, name)
            place = wait_for(lambda: table.get(process.pid).start and table.get(process.pid), 10, 0.05)
            check(place, "%s: its samples tell who it is" % name)
        end(process, how=signal.SIGKILL)
        check(wait_for(lambda: not table.get(process.pid), 10, 0.05), "%s: its place ends with it" % name)
    end(started)
    check(places.summary(log).get("jvms", 0) > 0 and not places.summary(log).get("jvms_unknown"), "they are counted",
          places.summary(log))


def has_code(pid):
    """Its code cache: memory that can be written and run."""
    try:
        with open("/proc/%d/maps" % pid) as maps:
            return any(" rwxp 00000000 00:00 0" in line for line in maps)
    except OSError:
        return False


def soon():
    """From the second start on, when the file has been read."""
    java = next((path for path in jdks("17").values() if path), None)
    if not java:
        skip("no Java here")
        return
    started, table, _ = agent()
    after = []
    for _ in range(STARTS + 1):
        process = spin(java, "5")
        wait_for(lambda: has_code(process.pid), 20, 0.001)
        begin = time.monotonic()
        place = wait_for(lambda: table.get(process.pid), 20, 0.001)
        after.append(1000 * (time.monotonic() - begin) if place else 20000)
        end(process, how=signal.SIGKILL)
        time.sleep(0.2)
    end(started)
    note("after the code cache: %s ms" % ", ".join("%.0f" % one for one in after))
    check(min(after[1:]) <= SOON_MS and statistics.median(after[1:]) <= 4 * SOON_MS,
          "it is known %d ms after its code cache is there" % SOON_MS, after)


def attached():
    """One that ran before the agent did is found by its samples."""
    java = next((path for path in jdks("17").values() if path and java_major(path) >= 11), None)
    if not java:
        skip("no Java here")
        return
    process = spin(java)
    wait_for(lambda: has_code(process.pid), 20, 0.01)
    time.sleep(0.5)
    started, table, _ = agent()
    place = wait_for(lambda: table.get(process.pid), 20, 0.05)
    check(place and place.start, "one that ran before the agent has a place", place)
    if place:
        check_place(java, process.pid, place, "one that ran before")
    end(process, how=signal.SIGKILL)
    end(started)


# A program of Python's that has a machine made in it, later.
EMBEDS = """
import ctypes, sys, time
class Arguments(ctypes.Structure):
    _fields_ = [("version", ctypes.c_int32), ("count", ctypes.c_int32), ("options", ctypes.c_void_p), ("ignore", ctypes.c_bool)]
until = time.monotonic() + 2
while time.monotonic() < until: pass
library = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
machine, environment, arguments = ctypes.c_void_p(), ctypes.c_void_p(), Arguments(0x10008, 0, None, True)
print(library.JNI_CreateJavaVM(ctypes.byref(machine), ctypes.byref(environment), ctypes.byref(arguments)), flush=True)
while True: pass
"""


def embedded():
    """A machine in a program that has another interpreter, whose place is known by then."""
    java = next((path for path in jdks("17").values() if path and java_major(path) >= 11), None)
    library = java and os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(java))), "lib/server/libjvm.so")
    if not library or not os.path.exists(library):
        skip("no Java to be embedded")
        return
    started, table, _ = agent()
    process = start(["/usr/bin/python3", "-c", EMBEDS, library], "embeds.log")
    place = wait_for(lambda: table.get(process.pid), 30, 0.02)
    check(place, "a machine in a program of Python's has a place", open(os.path.join(WORK, "embeds.log")).read())
    if place:
        check_place(java, process.pid, place, "embedded")
    end(process, how=signal.SIGKILL)
    end(started)


def groups():
    """Threads of the machine's own have what they are there for as their outermost frame, and Java's have not."""
    java = next((path for path in jdks("17").values() if path), None)
    build_java("Churn")
    started, table, _ = agent("--frequency", "199")
    process = start([java, "-Xmx32m", "-XX:+UseParallelGC", "-cp", os.path.join(PROGRAMS, "java-8"), "Churn", "4", "6000",
                     os.path.join(WORK, "churned")])
    wait_for(lambda: table.get(process.pid), 20, 0.01)
    process.wait(60)
    end(started)
    roots = collections.defaultdict(collections.Counter)
    reader = otlp.Reader(otlp.read(BUILD, os.path.join(WORK, "out.pb")))
    for sample in reader.samples():
        if sample.frames and sample.process == "java":
            roots[sample.thread][sample.frames[-1].name] += sample.count
    note(str({thread: dict(counts) for thread, counts in roots.items()}))
    wanted = {"GC Thread#": "[GC]", "C1 Comp": "[JIT]", "C2 Comp": "[JIT]", "VM ": "[VM]"}
    right = collections.Counter()
    for thread, counts in roots.items():
        for begin, group in wanted.items():
            right[group] += counts[group] if thread.startswith(begin) else 0
    total = sum(sum(counts.values()) for thread, counts in roots.items() if thread.startswith(tuple(wanted)))
    # What was sampled before the machine was known has none.
    check(right["[JIT]"] and sum(right.values()) > 0.7 * total, "collector, compilers and the machine's thread have theirs",
          (dict(right), total))
    check("C2 CompilerThread0" in roots, "a name that the kernel has cut is whole", sorted(roots))
    check(not any(name in roots["java"] for name in ("[GC]", "[JIT]", "[VM]")), "the program's own thread is of none",
          dict(roots["java"]))


if __name__ == "__main__":
    need_bpf()
    if not any(jdks("17").values()):
        skip_all("no Java here")
    os.makedirs(WORK, exist_ok=True)
    build_java("Six")
    run(versions, soon, attached, embedded, groups)
