# SPDX-License-Identifier: Apache-2.0
"""The capture stage alone, through tests/tools/capture_probe.c: stacks against nm, counts against the perf
events' own, losses, process events."""
import bisect
import os
import re
import signal
import struct
import subprocess
import sys
import time

from harness import BUILD, PROGRAMS, WORK, build_programs, check, equal, note, run, skip, skip_all, start

PROBE = os.path.join(WORK, "capture_probe")


class Outcome:
    """What the probe printed."""

    def __init__(self, text):
        self.text = text
        self.lines = text.splitlines()
        line = next(line for line in self.lines if line.startswith("totals "))
        self.totals = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", line)}
        line = next(line for line in self.lines if line.startswith("events "))
        self.events = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", line)}
        self.samples = []
        for line in self.lines:
            if line.startswith("sample "):
                fields = dict(re.findall(r"(\w+)=(\S+)", line))
                frames = [int(part, 16) for part in line.split()[1:] if "=" not in part]
                fields["kernel"] = frames[:int(fields["kernel"])]
                fields["user"] = frames[len(fields["kernel"]):]
                self.samples.append(fields)


def build():
    """The probe out of the agent's own objects."""
    parts = [os.path.join(BUILD, name) for name in ("tests/tools/capture_probe.o", "testable-agent.a")]
    subprocess.run(["make", "-s", "BUILD=" + BUILD, *parts], check=True, stdout=sys.stderr)
    subprocess.run(["cc", "-pie", "-pthread", *parts, "-lbpf", "-lelf", "-lz", "-o", PROBE], check=True)
    tried = subprocess.run([PROBE, "99", "1"], capture_output=True, text=True)
    if tried.returncode == 77:
        skip_all("eBPF is not permitted here: " + tried.stderr.strip())


def probe(hz, seconds, max_frames=512, shown=0, only=(), environment=None):
    done = subprocess.run([PROBE, str(hz), str(seconds), str(max_frames), str(shown), *map(str, only)],
                          capture_output=True, text=True, timeout=60, env={**os.environ, **(environment or {})})
    if done.returncode:
        raise RuntimeError("capture_probe: %d: %s" % (done.returncode, done.stderr))
    return Outcome(done.stdout)


def spin(seconds):
    """Keeps every CPU busy; idle virtual CPUs do not tick on every hypervisor."""
    return [start(["taskset", "-c", str(cpu), "timeout", str(seconds), "sh", "-c", "while :; do :; done"])
            for cpu in sorted(os.sched_getaffinity(0))]


class Names:
    """nm of a program that is not moved when it is loaded."""

    def __init__(self, program):
        text = subprocess.run(["nm", "--defined-only", program], capture_output=True, text=True, check=True).stdout
        found = sorted((int(part[0], 16), part[2]) for part in map(str.split, text.splitlines())
                       if len(part) == 3 and part[1] in "tTwW")
        self.addresses, self.names = [a for a, _ in found], [n for _, n in found]

    def stack(self, addresses):
        """Leaf first; callers by their return address less one."""
        exact = [address - (i > 0) for i, address in enumerate(addresses)]
        return [self.names[bisect.bisect_right(self.addresses, a) - 1] for a in exact]


CHAIN = ["leaf", "level_4", "level_3", "level_2", "level_1", "chain_run", "main"]


TICKS = os.sysconf("SC_CLK_TCK")


def cpu_ticks(pid):
    fields = open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def chain_is_exact():
    build_programs("chain_static")
    names = Names(PROGRAMS + "/chain_static")
    program = start([PROGRAMS + "/chain_static", "12"])
    used = -cpu_ticks(program.pid)
    outcome = probe(499, 6, shown=program.pid)
    used += cpu_ticks(program.pid)
    good = 0
    wrong = {}
    for sample in outcome.samples:
        stack = names.stack(sample["user"])
        shown = stack[:stack.index("main") + 1] if "main" in stack else stack
        if shown and shown == CHAIN[len(CHAIN) - len(shown):]:
            good += 1
        else:
            wrong[tuple(stack)] = wrong.get(tuple(stack), 0) + 1
    check(len(outcome.samples) >= 0.7 * used * 499 / TICKS > 20, "a busy program gets its samples", (len(outcome.samples), used))
    check(good >= 0.99 * len(outcome.samples), "at least 99 % of the stacks are the known chain up to main", wrong)
    check(all(s["result"] == "no_frame_pointer" for s in outcome.samples),
          "beyond main there are no frame pointers, and it says so", {s["result"] for s in outcome.samples})
    stat = open("/proc/%d/stat" % program.pid).read()
    started = int(stat.rsplit(")", 1)[1].split()[19])
    equal({int(s["start"]) * TICKS // 10**9 for s in outcome.samples}, {started}, "the start time is /proc/PID/stat's")
    equal({s["comm"] for s in outcome.samples}, {"chain_static/chain_static"}, "process and thread names")
    limited = probe(499, 1, max_frames=3, shown=program.pid)
    equal({len(s["user"]) for s in limited.samples if s["result"] == "too_deep"}, {3}, "--max-frames cuts the root end")


def signals():
    build_programs("handler")
    names = Names(PROGRAMS + "/handler")
    program = start([PROGRAMS + "/handler", "8"])
    outcome = probe(499, 3, shown=program.pid)
    in_handler = [names.stack(s["user"]) for s in outcome.samples]
    in_handler = [stack for stack in in_handler if "on_signal" in stack]
    through = [stack for stack in in_handler
               if re.match(r"(leaf )?on_signal \S*restore\S* (time )?interrupted main", " ".join(stack))]
    # Its timer goes on while it waits for a CPU, and then has rung once.
    check(len(in_handler) > max(8, 0.05 * len(outcome.samples)), "samples fall into the signal handler",
          (len(in_handler), len(outcome.samples)))
    check(len(through) >= 0.95 * len(in_handler), "a stack goes on below a signal where it hit",
          [stack for stack in in_handler if stack not in through][:5])


def counts_agree():
    # Ticks of idle virtual CPUs do not come on every hypervisor, and a CPU that its host leaves waiting misses
    # some that the clock counts: what came of them is told apart. One calm try is enough.
    for what in ("idle", "busy"):
        spinners = spin(25) if what == "busy" else []
        for _ in range(4):
            totals = probe(499, 4).totals
            note("%s: %s" % (what, totals))
            difference = abs(totals["ticks"] - totals["perf_ticks"])
            if difference <= 0.03 * totals["perf_ticks"]:
                break
        equal(totals["ticks"], totals["taken"] + totals["idle"] + totals["filtered"],
              what + ": every tick is one of the three")
        check(difference <= 0.03 * totals["perf_ticks"],
              what + ": ticks agree with the perf events' own counts within 3 %", totals)
        check(abs(totals["ticks"] + totals["missed"] - totals["perf_ticks"]) <= 0.01 * totals["perf_ticks"],
              what + ": with the missed ones exactly", totals)
    equal(totals["delivered"], totals["taken"], "nothing is lost at 499 Hz")
    equal(totals["disordered"] > 5, False, "samples and events come in time order")
    only = probe(499, 1, only=[spinners[0].pid]).totals
    check(only["filtered"] > 0, "ticks of others are counted as filtered", only)
    equal(only["ticks"], only["taken"] + only["idle"] + only["filtered"], "and every tick is still one of the three")


def losses_are_exact():
    spin(9)
    totals = probe(1000, 5, environment={"POLL_PAUSE_MS": "2500"}).totals
    note(str(totals))
    check(totals["ring_full"] > 0, "a reader that sleeps for seconds loses samples", totals)
    equal(totals["taken"], totals["delivered"] + totals["ring_full"] + totals["no_scratch"],
          "taken = delivered + ring_full + no_scratch")


def hundred_programs(seconds):
    """What a probe sees of them, and of a shell, whose pid is known before, that becomes a program whose main thread ends
    first."""
    alone = subprocess.Popen(["sh", "-c", "read go; exec " + PROGRAMS + "/handler 3 alone"], stdin=subprocess.PIPE)
    probing = subprocess.Popen([PROBE, "199", str(seconds), "512", str(alone.pid)], stdout=subprocess.PIPE, text=True)
    probing.stdout.readline()
    alone.stdin.write(b"go\n")
    alone.stdin.flush()
    for _ in range(100):
        subprocess.run(["/bin/true"])
    outcome = Outcome(probing.communicate(timeout=60)[0])
    alone.stdin.close()
    alone.wait()
    return outcome


def process_events():
    build_programs("handler")
    # A reader that gets no CPU for long finds events lost, and says so; and a hundred programs may take their time.
    for seconds in (7, 14, 21):
        outcome = hundred_programs(seconds)
        note(str(outcome.events))
        if not outcome.totals["events_lost"] and outcome.events["exit"] >= 100:
            break
    for name in ("exec", "fork", "exit"):
        check(outcome.events[name] >= 100, "100 programs: %s events" % name, outcome.events)
    check(outcome.events["mapping"] >= 300, "100 programs: mappings of program, linker and C library", outcome.events)
    equal(outcome.totals["events_lost"], 0, "no process event is lost")
    exits = [line for line in outcome.lines if line.startswith("exit ")]
    last = max(i for i, line in enumerate(outcome.lines) if line.startswith("sample "))
    equal(len(exits), 1, "a process whose main thread ends first exits once")
    check(outcome.lines.index(exits[0]) > last - 3, "and not before its last thread", "\n".join(outcome.lines[-8:]))


def mappings():
    # One program's own mappings: the shell becomes cat, whose pid is known before.
    program = subprocess.Popen(["sh", "-c", "read go; exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    probing = subprocess.Popen([PROBE, "19", "3", "512", str(program.pid)], stdout=subprocess.PIPE, text=True)
    probing.stdout.readline()
    program.stdin.write(b"go\n")
    program.stdin.flush()
    time.sleep(0.5)
    maps = open("/proc/%d/maps" % program.pid).read()
    outcome = Outcome(probing.communicate(timeout=60)[0])
    program.stdin.close()
    program.wait()
    seen = {line.split()[1]: line for line in outcome.lines if line.startswith("mapping ")}
    for line in maps.splitlines():
        parts = line.split()
        if "x" in parts[1] and parts[-1].startswith("/"):
            found = seen.get(parts[0].lstrip("0"), "")
            check(parts[-1] in found, "the mapping of %s is reported" % parts[-1], "\n".join(seen.values()))
            described = subprocess.run(["file", "-L", parts[-1]], capture_output=True, text=True).stdout
            build_id = re.search(r"BuildID\[\w+\]=(\w+)", described)
            if build_id and " - " not in found:
                check(build_id.group(1) in found, "with its build-id", found)
    check(any(line.startswith("exec ") for line in outcome.lines), "the exec is reported")


REGISTERS = "rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15".split()
SAMPLE_IN_KERNEL = 1
# Where the kernel cannot interrupt itself (some virtual machines) the stop comes with the next tick: the thread is in
# a later system call then, which the number in r9 says (tests/programs/inline_syscall.h), or at another instruction.
MOVED_ON = "moved on before it stopped"


class Copy:
    """A struct stack_copy_event."""
    HEADER = struct.Struct("<HBBIIIiIQQQQQQ16Q")

    def __init__(self, path):
        data = open(path, "rb").read()
        fields = self.HEADER.unpack_from(data)
        self.is_interrupted, self.stack_bytes, self.gap, self.known = fields[1], fields[5], fields[6], fields[10]
        self.ip, self.sp, self.fp = fields[11:14]
        self.registers = dict(zip(REGISTERS, fields[14:]))
        self.room = len(data) - self.HEADER.size
        self.stack = data[self.HEADER.size:self.HEADER.size + self.stack_bytes]


def stack_end(pid, address):
    for line in open("/proc/%d/maps" % pid):
        start, end = (int(part, 16) for part in line.split()[0].split("-"))
        if start <= address < end:
            return end
    return 0


def first_there(pid, address):
    """From the address on, by the kernel's own table of pages: bit 63 says that one is there."""
    with open("/proc/%d/pagemap" % pid, "rb") as pages:
        for page in range(address // 4096, address // 4096 + 64):
            pages.seek(8 * page)
            if struct.unpack("<Q", pages.read(8))[0] >> 63:
                return max(address, 4096 * page)
    return 0


def there_until(pid, address, end):
    """How far memory is there without a hole: what is not costs a fault, which a timer cannot have."""
    with open("/proc/%d/pagemap" % pid, "rb") as pages:
        for page in range(address // 4096, end // 4096):
            pages.seek(8 * page)
            if not struct.unpack("<Q", pages.read(8))[0] >> 63:
                return 4096 * page
    return end


def what_is_wrong(pid, sample, copy):
    """The thread stands where it was sampled; gdb and its memory say what should be there."""
    wrong = []
    done = subprocess.run(["gdb", "-nx", "-q", "-batch", "-iex", "set auto-load off", "-iex",
                           "set debuginfod enabled off", "-p", str(pid), "-ex", "info registers"],
                          capture_output=True, text=True)
    truth = {part[0]: int(part[1], 16) for part in map(str.split, done.stdout.splitlines())
             if len(part) > 1 and part[0] in REGISTERS + ["rip"]}
    in_call = int(sample["flags"]) & SAMPLE_IN_KERNEL and copy.known != 0xffff
    if in_call and copy.registers["r9"] != truth.get("r9"):
        return [MOVED_ON]
    if not in_call and copy.ip == sample["user"][0] != truth.get("rip"):
        return [MOVED_ON]
    if copy.ip + (2 if in_call else 0) != truth.get("rip"):
        wrong.append("ip")
    if (copy.sp, copy.fp, copy.ip) != (truth.get("rsp"), truth.get("rbp"), sample["user"][0]):
        wrong.append("sp, fp or leaf")
    if not copy.is_interrupted or len(sample["user"]) != 1:
        wrong.append("where it stopped")
    wrong += [name for number, name in enumerate(REGISTERS)
              if copy.known >> number & 1 and copy.registers[name] != truth.get(name)]
    if in_call and copy.known != 0xffff & ~(1 << 0 | 1 << 2 | 1 << 11):
        wrong.append("what a system call uses up")
    red_zone = copy.sp - 128
    start = red_zone if first_there(pid, red_zone) == red_zone else first_there(pid, copy.sp)
    if start != copy.sp + copy.gap:
        wrong.append("begins %d above, not %d" % (copy.gap, start - copy.sp))
    end = stack_end(pid, start)
    left = there_until(pid, start, end) - start
    room = next(room for room in (4096, 8192, 16384, 32768, 65536) if left <= room or room == 65536)
    if start + left < end:
        note("memory that is not there from %#x of %#x to %#x" % (start + left, start, end))
        room = max(room, copy.room)
    if (copy.stack_bytes, copy.room) != (min(left, room), room):
        wrong.append("length")
        note("%d bytes in %d of %d" % (copy.stack_bytes, copy.room, left))
    with open("/proc/%d/mem" % pid, "rb") as memory:
        memory.seek(start)
        if memory.read(copy.stack_bytes) != copy.stack:
            wrong.append("stack")
    return wrong


def copies_of(target, directory, count):
    """Samples with their copies; the threads stand still for each."""
    probing = start([PROBE, "19", "300", "512", str(target.pid), str(target.pid)], stdout=subprocess.PIPE, text=True,
                    env={**os.environ, "COPIES": directory, "STOP": "1"})
    try:
        for line in probing.stdout:
            if line.startswith("sample "):
                sample = Outcome(line + "totals \nevents ").samples[0]
                yield sample, Copy("%s/%s.copy" % (directory, sample["copy"])) if "copy" in sample else None
                count -= 1
                if not count:
                    break
                os.kill(target.pid, signal.SIGCONT)
    finally:
        probing.terminate()
        probing.wait()


def copies():
    """Where the rows of all code are absent, every stack goes up as it is."""
    subprocess.run(["sh", "tests/programs/unwind/build.sh", PROGRAMS, "deep", "big_frame"], check=True,
                   stdout=sys.stderr)
    build_programs("chain_static", "syscall_loop", "room_below")
    rooms, gaps = set(), set()
    in_kernel = 0
    for program in (["chain_static", "300"], ["deep", "300"], ["big_frame", "300"], ["syscall_loop", "/tmp", "300"],
                    ["room_below", "300"]):
        target = start([PROGRAMS + "/" + program[0], *program[1:]])
        directory = os.path.join(WORK, program[0])
        os.makedirs(directory)
        time.sleep(0.3)
        wrong = {}
        right = differing = moved_on = elsewhere = 0
        for sample, copy in copies_of(target, directory, 60):
            found = what_is_wrong(target.pid, sample, copy) if copy else ["no copy"]
            if found == [MOVED_ON]:
                moved_on += 1
                continue
            for what in found:
                wrong[what] = wrong.get(what, 0) + 1
            rooms.add(copy.room if copy else 0)
            gaps.add(bool(copy and copy.gap > 0))
            in_kernel += int(sample["flags"]) & SAMPLE_IN_KERNEL
            right += not found
            differing += bool(found)
            elsewhere += len(found) > 2
            if right == 8:
                break
        if moved_on:
            note("%s: %d times the thread %s" % (program[0], moved_on, MOVED_ON))
        # The kernel may be about to move a page; and in a loop a thread comes back to the same instruction.
        allowed = max(wrong.get("length", 0) == 1, moved_on / 2)
        text = program[0] + ": copies are the threads' registers and stacks"
        # Where interrupts come late, as in some virtual machines, a thread runs on after its sample: then some copies are
        # right in all, and nearly all registers of the others are of another turn of the loop.
        is_right = right == 8 and differing <= allowed
        if not is_right and right > 1 and elsewhere == differing:
            skip(text + ", but this machine stops threads late: %s" % ((right, differing, moved_on),))
        else:
            check(is_right, text, (right, differing, moved_on, wrong))
        target.kill()
        target.wait()
    check(len(rooms) >= 2, "of more than one size", rooms)
    equal(gaps, {False, True}, "memory that is not there yet is left out")
    check(in_kernel, "system calls among them", in_kernel)


def copies_are_counted():
    spin(12)
    totals = probe(999, 8, environment={"COPIES": WORK}).totals
    note(str(totals))
    allowed = os.cpu_count() * (100 + 50 * 8.5)
    check(totals["copies_rate"] > 0, "more than 50 stacks a second are refused", totals)
    check(0.3 * allowed < totals["copies"] <= allowed, "of each CPU", totals)
    check(totals["copies"] + totals["copies_rate"] + totals["copies_ring"] <= totals["taken"],
          "refused ones are counted", totals)
    equal(totals["copies_unmatched"], 0, "every copy finds its sample")
    equal(totals["taken"], totals["delivered"] + totals["ring_full"] + totals["no_scratch"],
          "copies cost no sample")


if __name__ == "__main__":
    if os.geteuid() != 0:
        skip_all("needs root")
    os.makedirs(WORK, exist_ok=True)
    run(build, chain_is_exact, signals, counts_agree, losses_are_exact, process_events, mappings, copies,
        copies_are_counted)
