# SPDX-License-Identifier: Apache-2.0
"""A made-up fleet against a receiver of OTLP profiles, open loop: each agent on its own connection, a report of 200
stacks each 10 s, latency from the time it was due. The generator shares the processors; its own CPU is shown."""
import bisect
import json
import os
import subprocess
import time

from cost import FoldWatch, cpu_ns, resident_kib, written
from harness import WORK, end, fleet_tool, start

WARMUP_S = 60


def world_arguments(agents):
    """Applications of a hundred hosts; the first report of every agent has a fifth of new stacks, later ones 0.1 %."""
    return ["--agents", str(agents), "--samples", "200", "--apps", str(max(1, agents // 100)), "--stacks", "4000",
            "--templates", "40", "--processes", "4", "--fresh", "20"]


def services(agents):
    """The names of its services."""
    return [name % app for app in range(max(1, agents // 100)) for name in ("gateway%d", "service%d")]


class Run:
    """One run: pids, the first being the receiver, are measured after the warm-up."""

    def __init__(self, agents, seconds, url, *pids, more=()):
        self.agents, self.seconds, self.pids = agents, seconds, pids
        self.warmup = min(WARMUP_S, seconds // 3)
        self.latencies = os.path.join(WORK, "latencies")
        self.process = start([fleet_tool(), "--server", url, "--warmup", "%ds" % self.warmup, "--interval", "10s",
                              "--duration", "%ds" % seconds, "--settle", "30s", "--latencies", self.latencies,
                              *world_arguments(agents), *more], "fleet.log", stdout=subprocess.PIPE)
        self.wait_for_connections()
        time.sleep(self.warmup)
        self.folds = FoldWatch(pids[0])
        self.begin, self.before = time.monotonic(), self.snapshot()

    def wait_for_connections(self):
        begin = time.monotonic()
        while not has_connections(self.pids[0]) and time.monotonic() - begin < 120:
            time.sleep(0.1)

    def snapshot(self):
        return [(cpu_ns(pid), written(pid)) for pid in self.pids]

    def rest_s(self):
        """How much of the measured time is left."""
        return max(0, self.begin + self.seconds - self.warmup - 1 - time.monotonic())

    def costs(self):
        """Until now; once, or again later for the whole of it."""
        self.elapsed = time.monotonic() - self.begin
        self.spent = [(cpu - cpu0, wrote - wrote0) for (cpu, wrote), (cpu0, wrote0) in zip(self.snapshot(), self.before)]

    def close(self):
        """What the fleet said, and per report: cpu_ms and background_ms of the receiver, other_ms of other processes,
        wrote bytes; peak_kib."""
        if not hasattr(self, "spent"):
            self.costs()
        said = json.loads(self.process.stdout.read() or "{}")
        end(self.process, 60)
        self.folds.close()
        if not said.get("latencies"):
            raise RuntimeError("the fleet ended early; see fleet.log")
        reports = said["latencies"] / (said["seconds"] - self.warmup) * self.elapsed
        background = self.folds.cpu_s(self.begin, self.begin + self.elapsed)
        with open(self.latencies) as lines:
            self.answers = [(int(due) / 1e6, int(us) / 1e3) for due, us in map(str.split, lines)]
        os.unlink(self.latencies)
        return dict(said, cpu_ms=self.spent[0][0] / 1e6 / reports, background_ms=background * 1e3 / reports,
                    other_ms=sum(cpu for cpu, _ in self.spent[1:]) / 1e6 / reports,
                    wrote=sum(wrote for _, wrote in self.spent) / reports,
                    peak_kib=sum(resident_kib(pid) for pid in self.pids),
                    resident_kib=sum(resident_kib(pid, "VmRSS") for pid in self.pids),
                    generator_ms=said["cpu_s"] * 1e3 / max(1, said["acknowledged"]))

    def during(self, spans):
        """(latencies of answers that were waited for in one of these spans of time, of the others), each sorted."""
        spans = sorted(spans)
        begins = [begin for begin, _ in spans]
        inside, outside = [], []
        for due, ms in self.answers:
            at = bisect.bisect_right(begins, due + ms / 1e3) - 1
            (inside if at >= 0 and spans[at][1] >= due else outside).append(ms)
        return sorted(inside), sorted(outside)


def p99(latencies):
    return latencies[int(len(latencies) * 0.99)] if latencies else float("nan")


def has_connections(pid):
    try:
        return sum(os.readlink("/proc/%d/fd/%s" % (pid, fd)).startswith("socket:")
                   for fd in os.listdir("/proc/%d/fd" % pid)) > 1
    except OSError:
        return False
