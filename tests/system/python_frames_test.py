# SPDX-License-Identifier: Apache-2.0
"""CPython's frames as the kernel side reads them at a sample, against what gdb reads of the thread that stopped there,
by the interpreter's own debug information: code objects, positions, entries, and that nothing is cut in silence."""
import collections
import json
import os
import signal
import subprocess
import sys
import time

from harness import BUILD, WORK, Agent, check, end, note, pythons, run, skip, skip_all, start, wait_for

PROBE = os.path.join(WORK, "capture_probe")
TOOLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools")
PROGRAM = os.path.join(TOOLS, "..", "programs", "python_stacks.py")
WAITING = os.path.join(TOOLS, "..", "programs", "python_waits.py")
PYTHONS = pythons("3.8 3.11 3.12 3.13")  # with debug information: PYTHON_DEBUG, where that is in files of its own
STOPS = int(os.environ.get("PYTHON_STOPS", "60"))
SECONDS = 120
FRAMES_MAX, SWITCH_FRAMES_MAX, END_CUT = 256, 32, 1
TICKS, WAITS, SAMPLE_SWITCH = 1, 2, 3  # enum kernel_wants, enum event_type
NONE = -1
stopped_in = collections.Counter()  # functions, of all versions


def build():
    parts = [os.path.join(BUILD, name) for name in ("tests/tools/capture_probe.o", "testable-agent.a")]
    subprocess.run(["make", "-s", "BUILD=" + BUILD, *parts], check=True, stdout=sys.stderr)
    subprocess.run(["cc", "-pie", "-pthread", *parts, "-lbpf", "-lelf", "-lz", "-o", PROBE], check=True)
    tried = subprocess.run([PROBE, "99", "1"], capture_output=True, text=True)
    if tried.returncode == 77:
        skip_all("eBPF is not permitted here: " + tried.stderr.strip())


def newest():
    return [(version, python) for version, python in PYTHONS.items() if python][-1]


def lines_of(path):
    try:
        return [json.loads(line) for line in open(path) if line.endswith("\n")]
    except OSError:
        return []


Sample = collections.namedtuple("Sample", "type tid time_ns ip is_swept frames empty end")


def read_samples(path):
    samples = []
    for line in open(path):
        fields = line.split()
        if not line.startswith("runtime ") or not line.endswith("\n"):
            continue
        named = dict(field.split("=") for field in fields[1:6])
        words = [field.split(":") for field in fields[6:]]
        frames = [(int(code, 16), int(position), int(cookie, 16), entry == "1")
                  for code, position, cookie, entry in (word for word in words if word[0] != "end")]
        runs = [frame for frame in frames if not frame[0]]  # of a loop that has no frame, as yet or any more
        frames = [frame for frame in frames if frame[0]]
        end = next((int(word[1]) for word in words if word[0] == "end"), 0)
        samples.append(Sample(int(named["type"]), int(named["tid"]), int(named["time"]), int(named["ip"], 16),
                              named["swept"] == "1", frames, len(runs), end))
    return samples


def since_known(samples):
    """The probe tells where the frames are once it has seen a sample of the process."""
    samples = sorted(samples, key=lambda sample: sample.time_ns)  # a sweep's overtake those in the ring
    return samples[next((i for i, sample in enumerate(samples) if sample.frames), 0):]


def run_gdb(pid, base, stops):
    environment = {**os.environ, "PYTHON_PID": str(pid), "PYTHON_OUT": base + ".stops", "PYTHON_STOPS": str(stops)}
    if os.path.exists(base + ".stops"):
        os.unlink(base + ".stops")
    gdb = start(["gdb", "-nx", "-q", "-batch", "-x", os.path.join(TOOLS, "python_gdb.py")], "gdb.log",
                env=environment)
    ready = (wait_for(lambda: lines_of(base + ".stops"), 90) or [{}])[0]
    if "place" not in ready:
        raise RuntimeError("gdb has not attached: %s" % ready)
    with open(base + ".place", "w") as place:
        place.writelines("%s %d\n" % item for item in ready["place"].items())
    return gdb, ready["threads"]


def record(python, version):
    """(samples, stops) of one program."""
    base = os.path.join(WORK, version)
    target = start([python, PROGRAM, str(SECONDS)], "target.log")
    time.sleep(0.5)
    gdb, _ = run_gdb(target.pid, base, STOPS)
    probe = start([PROBE, "97", str(SECONDS), "1024", str(target.pid), str(target.pid)],
                  "probe.log", env={**os.environ, "STOP": "1", "RUNTIME": base + ".place"},
                  stdout=open(base + ".samples", "w"))
    wait_for(lambda: gdb.poll() is not None, SECONDS)
    for process, how in ((probe, signal.SIGTERM), (gdb, signal.SIGKILL), (target, signal.SIGKILL)):
        end(process, how=how)
    return read_samples(base + ".samples"), [stop for stop in lines_of(base + ".stops") if "tid" in stop]


def match(samples, stops):
    """Each stop with the last sample of its thread before it, where the thread is still at that instruction."""
    pairs, moved = [], 0
    for stop in stops:
        before = [sample for sample in samples if sample.tid == stop["tid"] and sample.time_ns < stop["time_ns"]]
        if before and stop["pc"] - before[-1].ip in (0, 2):  # in a system call: the instruction that made it
            pairs.append((before[-1], stop))
        else:
            moved += 1
    return pairs, moved


def difference(sample, stop):
    """None: there is none."""
    want = [(code, NONE if position is None else position, entry) for code, position, entry, _ in stop["frames"]]
    got = [(code, position, entry) for code, position, _, entry in sample.frames]
    if len(want) > FRAMES_MAX - sample.empty:
        want = want[:FRAMES_MAX - sample.empty]
        if sample.end != END_CUT:
            return "not said to be cut"
    elif sample.end:
        return "end %d" % sample.end
    if got != want:
        at = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want)))
        return "%d frames, %d wanted; at %d %s, wanted %s in %s" % (
            len(got), len(want), at, got[at:at + 1], want[at:at + 1], [frame[3] for frame in stop["frames"][:12]])
    return None


def check_version(version, python):
    samples, stops = record(python, version)
    samples = since_known(samples)
    stops = [stop for stop in stops if samples and stop["time_ns"] > samples[0].time_ns]
    pairs, moved = match(samples, stops)
    wrong = [text for text in (difference(*pair) for pair in pairs) if text]
    frames = sum(len(sample.frames) for sample, _ in pairs)
    deep = sum(1 for sample, _ in pairs if sample.end == END_CUT)
    note("CPython %s: %d stops, %d moved on, %d frames, %d lists cut, threads %s" % (
        version, len(stops), moved, frames, deep, dict(collections.Counter(stop["tid"] for stop in stops))))
    check(len(pairs) >= STOPS // 2, "CPython %s: stops at samples" % version, "%d of %d" % (len(pairs), STOPS))
    check(not wrong, "CPython %s: frames as gdb has them" % version, "\n".join(wrong[:10]))
    check(deep, "CPython %s: more frames than are taken are said to be cut" % version)
    names = collections.Counter(frame[3] for _, stop in pairs for frame in stop["frames"])
    check(names["leaf"], "CPython %s: while it computes" % version, names)
    stopped_in.update(names)
    cookies = collections.defaultdict(set)
    for sample, stop in pairs:
        for (code, _, cookie, _), (_, _, _, name) in zip(sample.frames, stop["frames"]):
            if name != "<module>":  # eval() makes others, at the same address
                cookies[code, name].add(cookie)
    check(all(len(found) == 1 and 0 not in found for found in cookies.values()),
          "CPython %s: each code object has one mark" % version, cookies)


def record_waits(pid, base):
    probe = start([PROBE, "97", "6", "1024", str(pid), str(pid)], "probe.log",
                  env={**os.environ, "TYPES": str(TICKS | WAITS), "RUNTIME": base + ".place"},
                  stdout=open(base + ".samples", "w"))
    wait_for(lambda: probe.poll() is not None, 60)
    return since_known([sample for sample in read_samples(base + ".samples") if sample.type == SAMPLE_SWITCH])


def waiting():
    """Off the CPU, at the switch and, of a thread that has waited since before, from outside: what gdb has of the
    threads that stand there all the time."""
    version, python = newest()
    base = os.path.join(WORK, "waiting")
    target = start([python, WAITING], "target.log")
    time.sleep(1)
    gdb, threads = run_gdb(target.pid, base, 0)
    end(gdb)
    seen, wrong = collections.Counter(), []
    for _ in range(5):  # what is swept before the first sample of any has no place yet
        for sample in record_waits(target.pid, base):
            want = threads[str(sample.tid)]
            found = [frame[0] for frame in sample.frames]
            most = FRAMES_MAX if sample.is_swept else SWITCH_FRAMES_MAX
            seen[want[0][3], sample.is_swept] += 1
            if found != [frame[0] for frame in want][:most] or sample.end != (END_CUT if len(want) > most else 0):
                wrong.append("%s: %d frames, end %d, wanted %s" % (sample.tid, len(found), sample.end,
                                                                  [frame[3] for frame in want[:5]]))
        if any(is_swept for _, is_swept in seen):
            break
    end(target, how=signal.SIGKILL)
    note("CPython %s: %s" % (version, dict(seen)))
    check(not wrong, "CPython %s: threads that wait have their frames" % version, "\n".join(wrong[:10]))
    check(seen["naps", False] > 5, "… at the switch, 32 of them at most", seen)
    check(any(is_swept for _, is_swept in seen), "… and where they have waited since before", seen)


def read_printed(path):
    """(tid, code objects, whether the list is said to be cut) of each stack that --debug-stacks wrote, by their time:
    they are written once they are whole."""
    stacks, time_ns, tid, codes, is_cut = [], 0, None, [], False
    for line in open(path):
        fields = line.split()
        if line.startswith("sample "):
            time_ns, tid, codes, is_cut = int(fields[1]), int(fields[fields.index("tid") + 1]), [], False
        elif line.startswith("interpreter end "):
            is_cut = int(fields[2]) == END_CUT
        elif line.startswith("interpreter "):
            codes.append(int(fields[1].split("+")[0], 16))
        elif not fields and tid:
            stacks.append((time_ns, tid, codes, is_cut))
    return [stack[1:] for stack in sorted(stacks)]


def by_the_agent():
    """The agent finds by itself where the frames are, and hands them on with each stack."""
    version, python = newest()
    base = os.path.join(WORK, "agent")
    target = start([python, WAITING], "target.log")
    time.sleep(1)
    gdb, threads = run_gdb(target.pid, base, 0)
    end(gdb)
    agent = Agent("--profile", "off-cpu", "--pid", str(target.pid), "--off-cpu-budget", "2%", "--debug-stacks",
                  base + ".stacks", "--output", base + ".otlp", "--duration", "8s")
    agent.process.wait(60)
    end(target, how=signal.SIGKILL)
    stacks = read_printed(base + ".stacks")
    first = next((i for i, stack in enumerate(stacks) if stack[1]), len(stacks))
    wrong = []
    for tid, codes, is_cut in stacks[first:]:
        want = [frame[0] for frame in threads[str(tid)]]
        if codes != want[:len(codes)] or is_cut != (len(codes) < len(want)) or len(codes) < min(len(want), 32):
            wrong.append("%d: %d frames of %d, cut %d" % (tid, len(codes), len(want), is_cut))
    note("CPython %s: %d stacks, %d before the interpreter was found" % (version, len(stacks), first))
    check(len(stacks) - first > 20, "the agent's stacks have their interpreter's frames", len(stacks) - first)
    check(not wrong, "… as gdb has them", "\n".join(wrong[:10]))


def versions():
    for version, python in PYTHONS.items():
        if python:
            check_version(version, python)
        else:
            skip("CPython %s: none of pyenv's here" % version)
    check(stopped_in["without_lock"], "threads without the lock among them", stopped_in)


if __name__ == "__main__":
    if os.geteuid() != 0:
        skip_all("needs root")
    if not any(PYTHONS.values()):
        skip_all("no CPython of pyenv's here")
    os.makedirs(WORK, exist_ok=True)
    run(build, versions, waiting, by_the_agent)
