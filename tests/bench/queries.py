# SPDX-License-Identifier: Apache-2.0
"""What questions about a fleet's past cost: 2000 series of 100 services, 200 000 stacks of functions of this machine's
libraries; every answer's samples are compared with the writer's tally. The page cache is warm, as the data was just
written; what the process keeps is said: new, or warm.

query_rows() is the part "query" of bench.py: a day, 144 buckets of ten minutes, 19 M (stack, count) pairs, asked alone
and while BENCH_QUERY_AGENTS (1000; 0: not) agents report. month_rows() is "month": BENCH_MONTH_DAYS (30) days of an
hourly report of BENCH_MONTH_PAIRS (150) stacks of each series."""
import json
import os
import random
import re
import shutil
import subprocess
import time

from cost import background_ns, cpu_ns, disk_bytes, forget_peak, pss_kib, resident_kib
from fleet_load import world_arguments
from harness import BUILD, WORK, Server, end, fleet_tool, start, wait_for

LIBRARIES = os.environ.get("BENCH_LIBRARIES", "libLLVM-14.so.1 libstdc++.so.6 libc.so.6 libcrypto.so.3 libsqlite3.so.0").split()
FOLDER = "/usr/lib/x86_64-linux-gnu/"
DAY_MS = 86400000
AGENTS = int(os.environ.get("BENCH_QUERY_AGENTS", "1000"))
MONTH_DAYS = int(os.environ.get("BENCH_MONTH_DAYS", "30"))
HEAT_SERIES = os.environ.get("BENCH_HEAT_SERIES", "200")
MONTH_PAIRS = os.environ.get("BENCH_MONTH_PAIRS", "150")


def list_functions(directory, path):
    """Copies the libraries there are, lists their functions as query_load wants them."""
    with open(path, "w") as out:
        for name in filter(lambda name: os.path.exists(FOLDER + name), LIBRARIES):
            shutil.copy(FOLDER + name, directory)
            notes = subprocess.run(["readelf", "-n", FOLDER + name], capture_output=True, text=True, check=True).stdout
            symbols = subprocess.run(["nm", "-D", "-S", "--defined-only", FOLDER + name], capture_output=True, text=True,
                                     check=True).stdout
            build_id = re.search("Build ID: ([0-9a-f]+)", notes).group(1)
            functions = [line.split() for line in symbols.splitlines()]
            for parts in [p for p in functions if len(p) == 4 and p[2] in "tTwW" and int(p[1], 16) > 16][:15000]:
                out.write("%s %s %s %s\n" % (build_id, name, parts[0], parts[1]))


class Past:
    """Data below WORK/name that begins so many days ago, and what its writer counted."""

    def __init__(self, name, days=1, series="2000", stacks="200000", buckets="144", pairs="75", times="0"):
        self.name, self.directory, self.libraries = name, WORK + "/" + name, WORK + "/libraries"
        self.days, self.begin_ms = days, (int(time.time() * 1000) // DAY_MS - days) * DAY_MS
        if not os.path.exists(self.libraries):
            os.makedirs(self.libraries)
            list_functions(self.libraries, WORK + "/functions")
        os.makedirs(self.directory)
        lines = subprocess.run([BUILD + "/tests/bench/query_load", self.directory, WORK + "/functions", str(self.begin_ms), series,
                                stacks, buckets, pairs, str(days), times], capture_output=True, text=True, check=True).stdout
        self.tally = {line.split()[0]: int(line.split()[1]) for line in lines.splitlines()}
        self.services = sorted(name for name in self.tally if name != "*")
        random.Random(1).shuffle(self.services)

    def serve(self, *more):
        self.server = Server("--symbol-dir", self.libraries, *more, data=self.name)
        return self.server

    def wait_for_names(self):
        wait_for(lambda: all(m["state"] in ("symbols", "ready", "missing", "failed")
                             for m in self.server.json("/api/v1/modules")["modules"]), 120, 1)

    def wait_for_rollups(self, seconds=600):
        """Until the background threads have done nothing for four seconds."""
        used = [-1]

        def is_still():
            used.append(background_ns(self.server.process.pid))
            return len(used) > 3 and used[-1] - used[-3] < 5e6

        wait_for(is_still, seconds, 2)

    def get(self, path, **parameters):
        """(ms, CPU ms, answer)"""
        pid = self.server.process.pid
        used, begin = cpu_ns(pid), time.monotonic()
        status, _, body = self.server.get(path, timeout=300, **parameters)
        took = (time.monotonic() - begin) * 1e3
        if status != 200:
            raise RuntimeError("%s: %d %s" % (path, status, body[:300]))
        return took, (cpu_ns(pid) - used) / 1e6, json.loads(body)

    def ask(self, service=None, group_by="process"):
        """(ms, CPU ms) of a flame graph of all of it; wrong samples are an error."""
        took, used, answer = self.get("/api/v1/flamegraph", type="on-cpu", from_=str(self.begin_ms),
                                      until=str(self.begin_ms + self.days * DAY_MS),
                                      match='{service="%s"}' % service if service else "{}", group_by=group_by)
        samples = answer["accounting"]["samples"]
        if samples != self.tally[service or "*"]:
            raise RuntimeError("%s: %d samples instead of %d" % (service, samples, self.tally[service or "*"]))
        return took, used


def median(pairs):
    return tuple(sorted(values)[len(pairs) // 2] for values in zip(*pairs))


def service_row(row, past, what, budget="p95 50 ms"):
    """A hundred different questions."""
    seen = [past.ask(service) for service in past.services]
    ms, cpu = (sorted(values) for values in zip(*seen))
    row("  one service, %d different: median, p95, worst (CPU), %s" % (len(ms), what), "%.0f, %.0f, %.0f (%.0f, %.0f) ms" % (
        ms[len(ms) // 2], ms[int(len(ms) * 0.95)], ms[-1], cpu[len(cpu) // 2], cpu[int(len(cpu) * 0.95)]), budget)


def fleet_row(row, past, group_by, what, budget):
    row("  the fleet by %s, median of 5, %s" % (group_by or "nothing", what), "%.0f ms, CPU %.0f ms" % median(
        [past.ask(group_by=group_by) for _ in range(5)]), budget)


def diff_row(row, past, what):
    """The second half beside the first."""
    half = past.days * DAY_MS // 2
    seen = [past.get("/api/v1/diff", type="on-cpu", from_=str(past.begin_ms + half), until=str(past.begin_ms + 2 * half),
                     match="{}" if not service else '{service="%s"}' % service, group_by="service")[:2]
            for service in (None, None, None, past.services[0], past.services[1], past.services[2])]
    row("  /diff of two halves: the fleet, one service, %s" % what, "%.0f, %.0f ms (CPU %.0f, %.0f)" % tuple(
        [median(seen[:3])[0], median(seen[3:])[0], median(seen[:3])[1], median(seen[3:])[1]]))


def heatmap_row(row):
    """A tenth of the fleet, each sample with its time; without the limit of 30 s, so that there is a figure."""
    past = Past("times", series=HEAT_SERIES, stacks="20000", times="1")
    past.serve("--query-time", "300s")
    past.wait_for_rollups()
    ask = [past.get("/api/v1/heatmap", type="on-cpu", match="{}", from_=str(past.begin_ms + hour * 3600000),
                    until=str(past.begin_ms + (hour + length) * 3600000))[:2]
           for length, hours in ((24, (0, 0, 0)), (1, (3, 4, 5))) for hour in hours]
    row("/heatmap, %.1f M samples with times in a day: the day, an hour" % (past.tally["*"] / 1e6),
        "%.0f, %.0f ms (CPU %.0f, %.0f)" % (median(ask[:3])[0], median(ask[3:])[0], median(ask[:3])[1], median(ask[3:])[1]))
    past.server.stop()
    shutil.rmtree(past.directory)


def reporting_fleet(server, agents):
    """A fleet that reports until it is ended; it has begun."""
    process = start([fleet_tool(), "--server", server.url, "--interval", "10s", "--reports", "1000000", *world_arguments(agents)],
                    "fleet.log")
    time.sleep(15)
    return process


def query_rows(row):
    past = Past("query")
    past.serve()
    past.wait_for_rollups()
    past.wait_for_names()
    past.server.stop()
    row("a fleet's day: flame graphs of 2000 series, 200 000 stacks, 19 M pairs", "", "budget")
    server = past.serve()
    row("  the fleet by process, the first question of a new process", "%.0f ms, CPU %.0f ms" % past.ask())
    server.stop()
    past.serve()
    service_row(row, past, "new process")
    service_row(row, past, "warm")
    for group_by in ("service", "process", ""):
        fleet_row(row, past, group_by, "warm", "500 ms")
    diff_row(row, past, "warm")
    row("  server's resident peak, PSS after that", "%.0f, %.0f MB" % (
        resident_kib(past.server.process.pid) / 1024, pss_kib(past.server.process.pid) / 1024), "300 MB")
    if AGENTS:
        fleet = reporting_fleet(past.server, AGENTS)
        forget_peak(past.server.process.pid)
        service_row(row, past, "%d agents report" % AGENTS)
        fleet_row(row, past, "service", "%d agents report" % AGENTS, "500 ms")
        row("  server's resident peak in that", "%.0f MB" % (resident_kib(past.server.process.pid) / 1024), "300 MB")
        end(fleet)
    past.server.stop()
    shutil.rmtree(past.directory)
    heatmap_row(row)


def month_rows(row):
    past = Past("month", days=MONTH_DAYS, buckets="24", pairs=MONTH_PAIRS)
    past.serve("--retention", "400d")
    past.wait_for_rollups()
    past.wait_for_names()
    past.server.stop()
    row("%d days of hourly roll-ups, %.1f GB with the minutes" % (MONTH_DAYS, disk_bytes(past.directory) / 1e9), "", "budget")
    past.serve("--retention", "400d")
    row("  the fleet by service, the first question of a new process", "%.0f ms, CPU %.0f ms" % past.ask(group_by="service"), "1 s")
    fleet_row(row, past, "service", "warm", "1 s")
    fleet_row(row, past, "process", "warm", "")
    service_row(row, past, "warm", "")
    row("  server's resident peak after that", "%.0f MB" % (resident_kib(past.server.process.pid) / 1024), "300 MB")
    past.server.stop()
    return past
