# SPDX-License-Identifier: Apache-2.0
"""What a program and its children cost: memory, CPU time, bytes of disk, BPF maps and BPF run time."""
import os
import re
import subprocess
import threading
import time

PERF_EVENT = "7"  # BPF_PROG_TYPE_PERF_EVENT: the program that takes samples


def family(pid):
    """It and all below it, whichever thread started them."""
    pids = [pid]
    for member in pids:
        try:
            for task in os.listdir("/proc/%d/task" % member):
                pids += [int(p) for p in open("/proc/%d/task/%s/children" % (member, task)).read().split()]
        except OSError:
            pass
    return pids


def field(path, name):
    """A number of KiB in a file of proc; 0 when the process is gone."""
    try:
        return int(re.search(r"^%s:\s+(\d+)" % name, open(path).read(), re.M).group(1))
    except (OSError, AttributeError):
        return 0


def pss_kib(pid):
    return sum(field("/proc/%d/smaps_rollup" % member, "Pss") for member in family(pid))


def cpu_ns(pid):
    """User and system time of all its processes, children that ended included (10 ms steps for those)."""
    total = 0
    tick = 10**9 // os.sysconf("SC_CLK_TCK")
    for member in family(pid):
        try:
            for task in os.listdir("/proc/%d/task" % member):
                total += int(open("/proc/%d/task/%s/schedstat" % (member, task)).read().split()[0])
            fields = open("/proc/%d/stat" % member).read().rsplit(") ", 1)[1].split()
            total += (int(fields[13]) + int(fields[14])) * tick
        except OSError:
            pass
    return total


def written(pid):
    """Bytes that the process caused to be written to the disk."""
    with open("/proc/%d/io" % pid) as lines:
        return int(dict(line.split(": ") for line in lines)["write_bytes"])


def read_calls(pid):
    """Bytes that the process read by system calls, from the page cache or not."""
    with open("/proc/%d/io" % pid) as lines:
        return int(dict(line.split(": ") for line in lines)["rchar"])


def resident_kib(pid, name="VmHWM"):
    """The peak, or with VmRSS what it is now."""
    return field("/proc/%d/status" % pid, name)


def forget_peak(pid):
    """VmHWM begins anew."""
    with open("/proc/%d/clear_refs" % pid, "w") as out:
        out.write("5")


def disk_bytes(*paths):
    """Disk that files or directories take; 0 for what is not there."""
    found = subprocess.run(["du", "-s", "-c", "-B1", *paths], capture_output=True, text=True, check=False).stdout
    return int(found.split()[-2]) if found else 0


def background_ns(pid):
    """CPU time of the threads that are nicer than the process: folds and roll-ups of a farflame-server."""
    total = 0
    try:
        own = nice("/proc/%d/stat" % pid)
        for task in os.listdir("/proc/%d/task" % pid):
            path = "/proc/%d/task/%s/" % (pid, task)
            if nice(path + "stat") > own:
                total += int(open(path + "schedstat").read().split()[0])
    except OSError:
        pass
    return total


def nice(path):
    return int(open(path).read().rsplit(") ", 1)[1].split()[16])


class FoldWatch(threading.Thread):
    """When a server's background threads worked: half-second steps in which they used more than 2 %."""

    STEP_S = 0.5

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.steps, self.over = pid, [], False
        self.start()

    def run(self):
        at, used = time.monotonic(), background_ns(self.pid)
        while not self.over:
            time.sleep(self.STEP_S)
            now, total = time.monotonic(), background_ns(self.pid)
            self.steps.append((at, now, total - used))
            at, used = now, total

    def close(self):
        self.over = True
        self.join()
        return self

    def busy(self):
        return [(begin, end) for begin, end, used in self.steps if used > 0.02e9 * (end - begin)]

    def cpu_s(self, begin, end):
        return sum(used for since, until, used in self.steps if since >= begin and until <= end) / 1e9


class Bpf:
    """The maps and programs that a family holds descriptors of, as of now."""

    def __init__(self, pid):
        maps, programs = {}, {}
        for member in family(pid):
            for info in descriptors(member):
                if "map_id" in info:
                    maps[info["map_id"]] = int(info["memlock"])
                if "prog_id" in info and "run_cnt" in info:
                    programs[info["prog_id"]] = (info.get("prog_type"), int(info["run_time_ns"]), int(info["run_cnt"]))
        self.map_bytes = sum(maps.values())
        self.run_ns = sum(ns for _, ns, _ in programs.values())
        self.sampling_ns = sum(ns for kind, ns, _ in programs.values() if kind == PERF_EVENT)
        self.sampling_runs = sum(runs for kind, _, runs in programs.values() if kind == PERF_EVENT)


def descriptors(pid):
    """What the kernel says of each, as {name: value}."""
    try:
        names = os.listdir("/proc/%d/fdinfo" % pid)
    except OSError:
        return
    for name in names:
        try:
            yield dict(re.findall(r"^(\w+):\s+(\w+)", open("/proc/%d/fdinfo/%s" % (pid, name)).read(), re.M))
        except OSError:
            pass


class Window:
    """Costs between start and now."""

    def __init__(self, pid):
        self.pid = pid
        self.cpu, self.bpf, self.begin = cpu_ns(pid), Bpf(pid), time.monotonic()

    def close(self):
        bpf = Bpf(self.pid)
        self.elapsed = time.monotonic() - self.begin
        self.user_ns = cpu_ns(self.pid) - self.cpu
        self.kernel_ns = bpf.run_ns - self.bpf.run_ns
        self.sampling_ns = bpf.sampling_ns - self.bpf.sampling_ns
        self.runs = bpf.sampling_runs - self.bpf.sampling_runs
        self.map_bytes = bpf.map_bytes
        return self

    def shares(self):
        """Percent of the machine: its processes, BPF."""
        machine = self.elapsed * os.cpu_count() * 1e9
        return 100 * self.user_ns / machine, 100 * self.kernel_ns / machine

    def us_per_sample(self):
        return self.sampling_ns / max(self.runs, 1) / 1e3


class PeakWatch(threading.Thread):
    """The highest PSS of a family seen, every 50 ms; take() begins anew."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.peak, self.over = pid, 0, False
        self.start()

    def run(self):
        while not self.over:
            self.peak = max(self.peak, pss_kib(self.pid))
            time.sleep(0.05)

    def take(self):
        peak, self.peak = self.peak, 0
        return peak
