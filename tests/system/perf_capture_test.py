# SPDX-License-Identifier: Apache-2.0
"""Capture by perf events alone: what capture_test.py asks of BPF, registers and stacks of known programs, and
what a user without privileges gets at kernel.perf_event_paranoid 2 and 1."""
import collections
import os
import re
import shutil
import struct
import subprocess
import sys
import time

os.environ["CAPTURE"] = "perf"  # before the probe is run by what follows

sys.path.insert(0, "tests/tools")
import capture_test as shared  # noqa: E402
import otlp  # noqa: E402
from harness import (BUILD, Agent, PROGRAMS, Server, WORK, build_programs, check, end, equal, need_bpf, note, run,  # noqa: E402
                     skip, skip_all, start, wait_for)

PARANOID = "/proc/sys/kernel/perf_event_paranoid"
TICKS = os.sysconf("SC_CLK_TCK")


def samples_and_copies(program, seconds, hz=499):
    """The outcome, and (sample, copy) of those that have one."""
    directory = WORK + "/copies"
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    outcome = shared.probe(hz, seconds, shown=program.pid, environment={"COPIES": directory})
    pairs = []
    for line, sample in zip((line for line in outcome.lines if line.startswith("sample ")), outcome.samples):
        number = re.search(r" copy=(\d+)", line)
        if number:
            pairs.append((sample, shared.Copy("%s/%s.copy" % (directory, number.group(1)))))
    return outcome, pairs


def chain_of_frame_pointers(copy):
    """Return addresses along the frame pointers, out of the copied bytes."""
    found, fp = [copy.ip], copy.fp
    while copy.sp <= fp and fp - copy.sp + 16 <= len(copy.stack) and len(found) < 100:
        fp, address = struct.unpack_from("<QQ", copy.stack, fp - copy.sp)
        found.append(address)
    return found


def stacks_are_exact():
    build_programs("chain_static")
    names = shared.Names(PROGRAMS + "/chain_static")
    program = start([PROGRAMS + "/chain_static", "10"])
    outcome, pairs = samples_and_copies(program, 3)
    check(len(outcome.samples) > 50, "a busy program gets its samples", len(outcome.samples))
    in_user = [(sample, copy) for sample, copy in pairs if not int(sample["flags"]) & shared.SAMPLE_IN_KERNEL]
    check(len(pairs) == len(outcome.samples), "each with a copy of its stack", (len(pairs), len(outcome.samples)))
    good, wrong = 0, {}
    for sample, copy in in_user:
        stack = names.stack(chain_of_frame_pointers(copy))
        shown = stack[:stack.index("main") + 1] if "main" in stack else stack
        # inside a prologue the frame pointer is still the caller's, whose own caller follows
        known = shared.CHAIN[len(shared.CHAIN) - len(shown):]
        if shown == known or shown[1:] == known[1:]:
            good += 1
        else:
            wrong[tuple(stack)] = wrong.get(tuple(stack), 0) + 1
    check(good >= 0.99 * len(in_user), "at least 99 % of the copied stacks are the known chain up to main", wrong)
    stat = open("/proc/%d/stat" % program.pid).read()
    started = int(stat.rsplit(")", 1)[1].split()[19])
    near = {abs(int(s["start"]) * TICKS // 10**9 - started) <= 1 for s in outcome.samples}
    equal(near, {True}, "the start time is /proc/PID/stat's")
    equal({s["comm"] for s in outcome.samples}, {"chain_static/chain_static"}, "process and thread names")
    equal({s["result"] for s in outcome.samples}, {"not_loaded"}, "the walk is left to who has the rows")


def system_calls():
    build_programs("syscall_loop")
    program = start([PROGRAMS + "/syscall_loop", "/usr/lib", "8"])
    outcome, pairs = samples_and_copies(program, 3)
    in_kernel = [(s, c) for s, c in pairs if int(s["flags"]) & shared.SAMPLE_IN_KERNEL]
    check(len(in_kernel) > max(20, 0.5 * len(pairs)), "most of its samples are in the kernel", len(in_kernel))
    maps = open("/proc/%d/maps" % program.pid).read()
    base = min(int(line.split("-")[0], 16) for line in maps.splitlines() if line.endswith("/syscall_loop"))
    code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", PROGRAMS + "/syscall_loop"], capture_output=True,
                          text=True).stdout
    at = {int(match, 16) for match in re.findall(r"^\s*([0-9a-f]+):\s+syscall", code, re.M)}
    exact = [s for s, _ in in_kernel if s["user"][0] - base in at]
    check(len(exact) >= 0.98 * len(in_kernel), "their leaf is the instruction `syscall`",
          {hex(s["user"][0] - base) for s, _ in in_kernel})
    check(all(c.known == 0xffff & ~(1 << 0 | 1 << 2 | 1 << 11) for s, c in in_kernel if s["user"][0] - base in at),
          "what a system call uses up is not known")
    named = []
    for line in open("/proc/kallsyms"):
        address, kind, name = line.split()[:3]
        if kind in "tT" and name.startswith(("do_syscall_64", "x64_sys_call", "entry_SYSCALL")):
            named.append((int(address, 16), name))
    if not any(address for address, _ in named):
        return skip("kernel addresses are hidden")
    below = [s for s, _ in in_kernel
             if any(0 <= frame - address < 4096 for frame in s["kernel"][-3:] for address, _ in named)]
    check(len(below) >= 0.95 * len(in_kernel), "kernel frames go down to the system call's entry",
          [list(map(hex, s["kernel"])) for s, _ in in_kernel if s not in below][:3])


def threads_that_start_threads(hz=199):
    """Each thread once, whoever started it and when: samples agree with the CPU time the kernel accounts."""
    build_programs("thread_starts")
    program = start([PROGRAMS + "/thread_starts", "8"])
    time.sleep(0.3)
    before = cpu_ns(program.pid)
    outcome = shared.probe(hz, 3, only=[program.pid])
    used = cpu_ns(program.pid) - before
    totals = outcome.totals
    note("%s; the process used %d ms" % (totals, used // 10**6))
    # /proc shows the time from before the first tick to after the last
    check(0.75 * used < totals["taken"] * 10**9 // hz < 1.1 * used, "samples are worth the CPU time of all threads",
          (totals, used))
    equal(totals["delivered"], totals["taken"], "and none is lost")
    return totals


def cpu_ns(pid):
    fields = open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 10**9 // TICKS


# --- the whole agent ---

FIRST_SIGHT = "first sight of this code"
HARD = ("deep", "cold", "exceptions", "signals", "threads", "switch")


def user_stacks(server, host, process):
    """Stacks of user frames and their share; kernel frames left out. And the share of the incomplete ones, but those
    of the time before an agent that gets little CPU has read the code's tables."""
    stacks, incomplete, early = collections.Counter(), 0, 0
    for frames, value in server.folded(match='{host="%s",process="%s"}' % (host, process)):
        why = next((frame for frame in frames if frame.startswith("[incomplete")), "")
        if FIRST_SIGHT in why:
            early += value
        elif why:
            incomplete += value
        else:
            stacks[tuple(frame for frame in frames[1:] if not frame.endswith("_[k]"))] += value
    total = sum(stacks.values()) + incomplete
    if early:
        note("%s, %s: %d samples of code that was not known yet" % (process, host, early))
    return {stack: value / total for stack, value in stacks.items()} if total else {}, incomplete / max(total, 1), total


def was_served(agent):
    """Whether it could read what it sampled, and the tables of that code, in time: it says itself what it could not."""
    count = {name: int(number) for name, number in re.findall(r"\b(\w+)=(\d+)\b", agent.text())}
    return count["lost_ring_full"] <= 0.02 * count["taken"] and count["copies_expired"] <= 0.05 * count["taken"]


def same_stacks_as_by_bpf():
    need_bpf()
    build_programs("chain_pie", "syscall_loop")
    subprocess.run(["sh", "tests/programs/unwind/build.sh", PROGRAMS + "/unwind", *HARD], check=True,
                   stdout=sys.stderr, stderr=sys.stderr)
    server = Server("--symbol-dir", "/usr/lib/debug")
    programs = {name: [PROGRAMS + "/unwind/" + name] for name in HARD}
    programs.update(chain_pie=[PROGRAMS + "/chain_pie"], syscall_loop=[PROGRAMS + "/syscall_loop", "/usr/lib"])
    for attempt in range(3):
        sampled = [start([*command, "40"]) for command in programs.values()]
        agents = [Agent("--capture", way, "--host", way + str(attempt), "--frequency", "199", "--report-interval", "2s",
                        "--duration", "12s", server=server, log=way + ".log") for way in ("bpf", "perf")]
        for agent in agents:
            agent.process.wait(60)
        for process in sampled:
            end(process)
        if attempt == 2 or all(was_served(agent) for agent in agents):
            break
        note("an agent got too little of the machine: once more")
    server.wait_for_names(lambda rows: any("level_4" in frames for frames, _ in rows), match='{process="chain_pie"}')
    for name in programs:
        by = {way: user_stacks(server, way + str(attempt), name) for way in ("bpf", "perf")}
        for way, (_, incomplete, total) in by.items():
            note("%s: %s: %d samples, %.1f %% incomplete" % (name, way, total, incomplete * 100))
            check(total > 30 and incomplete < 0.05, "%s: %s gives whole stacks" % (name, way), (total, incomplete))
        missing = [(way, stack, share) for way, other in (("bpf", "perf"), ("perf", "bpf"))
                   for stack, share in by[way][0].items() if share > 0.05 and stack not in by[other][0]]
        check(not missing, "%s: the same stacks both ways" % name, "\n".join(map(str, missing)))
    totals = [re.search(r"taken=(\d+) .*sent=(\d+) lost_ring_full=(\d+)", agent.text()) for agent in agents]
    for way, found in zip(("bpf", "perf"), totals):
        taken, sent, full = map(int, found.groups())
        equal(taken, sent + full, "%s: taken = sent + lost" % way)


# --- without privileges ---

class Paranoid:
    """The sysctl at another value, as long as it takes."""

    def __init__(self, value):
        self.value = value

    def __enter__(self):
        self.before = open(PARANOID).read()
        open(PARANOID, "w").write(str(self.value))

    def __exit__(self, *_):
        open(PARANOID, "w").write(self.before)


UNPRIVILEGED = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


def copied(name, source):
    """Where another user can run it."""
    directory = subprocess.run(["mktemp", "-d", "/tmp/perf_capture_XXXXXX"], capture_output=True, text=True).stdout.strip()
    os.chmod(directory, 0o755)
    shutil.copy2(source, directory + "/" + name)
    os.chmod(directory + "/" + name, 0o755)
    return directory + "/" + name


def unprivileged():
    if not shutil.which("setpriv"):
        return skip("no setpriv")
    build_programs("thread_starts", "syscall_loop")
    probe = copied("probe", shared.PROBE)
    programs = {name: copied(name, PROGRAMS + "/" + name) for name in ("thread_starts", "syscall_loop")}
    try:
        for paranoid in (2, 1):
            with Paranoid(paranoid):
                what = "paranoid %d: " % paranoid
                own_threads(what, probe, programs["thread_starts"])
                kernel_code(what, probe, programs["syscall_loop"], paranoid == 1)
                refusals(what, probe)
    finally:
        for path in (probe, *programs.values()):
            shutil.rmtree(os.path.dirname(path))


def run_unprivileged(probe, hz, seconds, *more):
    return subprocess.run([*UNPRIVILEGED, probe, str(hz), str(seconds), "512", *map(str, more)], capture_output=True,
                          text=True, timeout=60)


def pid_of(process, name):
    """setpriv executes the program: its pid is the process' once it has that name."""
    wait_for(lambda: open("/proc/%d/comm" % process.pid).read().strip() == name, 30, 0.02)
    return process.pid


def own_threads(what, probe, program):
    hz = 199
    process = start([*UNPRIVILEGED, program, "6"])
    pid = pid_of(process, "thread_starts")
    time.sleep(0.3)
    before = cpu_ns(pid)
    done = run_unprivileged(probe, hz, 3, pid, pid)
    used = cpu_ns(pid) - before
    if not check(done.returncode == 0, what + "a user samples a process of theirs", done.stderr):
        return
    outcome = shared.Outcome(done.stdout)
    totals = outcome.totals
    note("%s%s; the process used %d ms" % (what, totals, used // 10**6))
    # A thread's timer begins when it does: its last, incomplete period is missed, which is much of 10 ms.
    ticks = (totals["ticks"] + totals["missed"]) * 10**9 // hz
    check(0.75 * used < ticks < 1.1 * used, what + "ticks are worth the CPU time of all threads, each once",
          (totals, used))
    check(totals["ticks"] > totals["perf_ticks"] // 2, what + "and most are seen", totals)
    equal(totals["ticks"], totals["taken"] + totals["idle"] + totals["filtered"], what + "every tick is accounted for")
    equal(totals["taken"], totals["delivered"] + totals["ring_full"], what + "taken = delivered + lost")
    check(len({s["tid"] for s in outcome.samples}) > 0.2 * len(outcome.samples), what + "threads that it starts are sampled too")


def kernel_code(what, probe, program, is_seen):
    process = start([*UNPRIVILEGED, program, "/usr/lib", "5"])
    pid = pid_of(process, "syscall_loop")
    done = run_unprivileged(probe, 199, 2, pid, pid)
    if not check(done.returncode == 0, what + "also one that works in the kernel", done.stderr):
        return
    outcome = shared.Outcome(done.stdout)
    kernel = sum(len(s["kernel"]) > 0 for s in outcome.samples)
    if is_seen:
        check(kernel > 0.5 * len(outcome.samples) > 0, what + "with kernel frames", outcome.totals)
    else:
        equal(kernel, 0, what + "no kernel frames")
        check(outcome.totals["filtered"] > 0.5 * outcome.totals["perf_ticks"] > 0, what + "ticks of kernel code are counted as filtered", outcome.totals)
        check("kernel code is not sampled" in done.stderr, what + "and it says so", done.stderr)


def refusals(what, probe):
    for arguments, sentence in ((["0"], "perf_event_paranoid"), (["0", "1"], "not permitted"),
                                (["0", "4194305"], "is not there")):
        done = run_unprivileged(probe, 99, 1, *arguments)
        check(done.returncode in (1, 77) and sentence in done.stderr and done.stderr.count("\n") == 1,
              what + "one sentence about what cannot be: " + sentence, (done.returncode, done.stderr))


def bounded_memory():
    """A ring that a user may not lock is made smaller, and works."""
    with Paranoid(1):
        process = start([*UNPRIVILEGED, "sh", "-c", "while :; do :; done"])
        probe = copied("probe", shared.PROBE)
        try:
            # 1000 Hz asks for rings of 8 MiB; perf_event_mlock_kb allows half a MiB and a page for each CPU.
            pid = pid_of(process, "sh")
            done = run_unprivileged(probe, 1000, 2, pid, pid)
        finally:
            shutil.rmtree(os.path.dirname(probe))
    if check(done.returncode == 0, "the limit of locked memory leaves smaller rings", done.stderr):
        totals = shared.Outcome(done.stdout).totals
        check(totals["taken"] > 0.5 * totals["perf_ticks"] > 0, "which get the samples", totals)
        equal(totals["taken"], totals["delivered"] + totals["ring_full"], "taken = delivered + lost")


def python_says_what_it_lacks(seconds=4):
    """Each stack of Python's says that the interpreter's frames are not in it, and no other one does."""
    out, counts = WORK + "/python.otlp", collections.Counter()
    build_programs("burn")
    python = start(["/usr/bin/python3", "-c", "while True: sorted(range(1000), key=lambda number: -number)"])
    other = start([PROGRAMS + "/burn", str(seconds + 60)])
    agent = Agent("--capture", "perf", "--output", out, "--frequency", "199", "--report-interval", "600s", log="python.log")
    time.sleep(seconds)
    end(agent.process)
    reader = otlp.Reader(otlp.read(BUILD, out))
    for resource in reader.request.resource_profiles:
        for sample in (sample for scope in resource.scope_profiles for profile in scope.profiles for sample in profile.samples):
            said = reader.attributes(sample.attribute_indices)
            counts[said.get("farflame.lifetime", "").partition(".")[0], said.get("farflame.incomplete", "")] += sample.values[0]
    sentence = "the interpreter's frames are read by BPF alone, not by perf events"
    of_python = {why: count for (pid, why), count in counts.items() if pid == str(python.pid)}
    of_other = {why: count for (pid, why), count in counts.items() if pid == str(other.pid)}
    check(of_python.get(sentence, 0) > 10, "stacks of Python's lack the interpreter's frames", of_python)
    check(of_python.get("", 0) == 0, "each of them says so, or what else it lacks", of_python)
    check(of_other and not any("interpret" in why for why in of_other), "no other program's does", of_other)
    check(reader.counters().get("farflame.runtimes.no_list", 0) >= of_python.get(sentence, 0), "it is counted", reader.counters())


if __name__ == "__main__":
    if os.geteuid() != 0:
        skip_all("needs root")
    os.makedirs(WORK, exist_ok=True)
    run(shared.build, stacks_are_exact, system_calls, threads_that_start_threads, unprivileged, bounded_memory, python_says_what_it_lacks,
        same_stacks_as_by_bpf, shared.counts_agree, shared.losses_are_exact, shared.process_events, shared.mappings)
