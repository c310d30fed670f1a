# SPDX-License-Identifier: Apache-2.0
"""The same hour of the same fleet into farflame-server with SQLite, with ClickHouse, and into Pyroscope: what taking it
in costs, what it takes on disk, and what questions about it take.

peer_rows() is the part "peers" of bench.py. BENCH_PYROSCOPE=PROGRAM (pyroscope.py); BENCH_PEER_REPORTS (36): reports of
each of a hundred agents, spread over the hour, sent as fast as they are taken; BENCH_PEER_SETTLE (30): seconds
for what a store does afterwards, before its disk is looked at. The page cache is warm, the processes of the questions are
new, but for Pyroscope's, which after a restart finds its data only later: the first answer is shown apart."""
import json
import os
import resource
import shutil
import subprocess
import time

import pyroscope
import ratios
from clickhouse import PROGRAM as CLICKHOUSE
from clickhouse import ClickHouse
from cost import cpu_ns, disk_bytes, resident_kib
from harness import WORK, Server, fleet_tool, stop_all
from ingest import active_bytes

AGENTS, APPS = 100, 10
REPORTS = int(os.environ.get("BENCH_PEER_REPORTS", "36"))
SETTLE_S = int(os.environ.get("BENCH_PEER_SETTLE", "30"))
PERIOD_NS = 10101010  # a sample's weight
HOUR_MS = 3600000
ASKED_MS = HOUR_MS + 180000  # reports begin some seconds after the hour does
NAMES = [name % app for app in range(APPS) for name in ("gateway%d", "service%d")]


class Sqlite:
    name = "farflame, SQLite"
    plain, restarts = (), True

    def start(self):
        self.server = Server(data="peer")
        self.pids, self.directory = [self.server.process.pid], WORK + "/peer"
        return self.server.url

    def disk(self):
        """Bytes, when it is stopped."""
        return disk_bytes(self.directory) - disk_bytes(self.directory + "/journal")

    def stop(self):
        self.server.stop()

    def ask(self, begin_ms, service=None):
        """(ms, its total weight)"""
        begin = time.monotonic()
        status, _, body = self.server.get(
            "/api/v1/flamegraph", timeout=120, type="on-cpu", from_=str(begin_ms), until=str(begin_ms + ASKED_MS),
            match='{service="%s"}' % service if service else "{}", max_nodes="8192")
        took = (time.monotonic() - begin) * 1e3
        if status != 200:
            raise RuntimeError("%d %s" % (status, body[:300]))
        return took, json.loads(body)["accounting"]["samples"] * PERIOD_NS


class OverClickHouse(Sqlite):
    name = "farflame, ClickHouse"

    def start(self):
        if not hasattr(self, "clickhouse"):
            self.clickhouse = ClickHouse("peer-clickhouse")
        else:
            self.clickhouse.start()
        self.server = Server("--store", self.clickhouse.store("bench"), data="over-clickhouse")
        self.pids = [self.server.process.pid, self.clickhouse.process.pid]
        return self.server.url

    def stop(self):
        self.server.stop()
        self.active = active_bytes(self.clickhouse)
        self.clickhouse.stop()

    def disk(self):
        return self.active


class Peer:
    name = "Pyroscope"
    plain, restarts = ("--plain",), False

    def start(self):
        self.pyroscope = pyroscope.Pyroscope()
        self.pids, self.directory = [self.pyroscope.process.pid], self.pyroscope.directory
        return self.pyroscope.url

    def stop(self):
        self.pyroscope.stop()

    def disk(self):
        return disk_bytes(self.directory)

    def ask(self, begin_ms, service=None):
        kinds = self.pyroscope.profile_types(begin_ms, begin_ms + ASKED_MS)
        if len(kinds) != 1:
            raise RuntimeError("Pyroscope has profile types %r" % kinds)
        took, total = self.pyroscope.flame_graph(kinds[0], '{service_name="%s"}' % service if service else '{service_name=~".+"}',
                                                 begin_ms, begin_ms + ASKED_MS)
        return took * 1e3, total


def ended_cpu_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def fill(store, begin_ms):
    """What taking the hour in cost, its end included, and what there is then."""
    url = store.start()
    ago_s = int(time.time() - begin_ms / 1000)
    said = json.loads(subprocess.run([
        fleet_tool(), "--server", url, "--interval", "0ms", "--reports", str(REPORTS), "--from", "%ds" % ago_s, "--span", "1h",
        "--agents", str(AGENTS), "--apps", str(APPS), "--samples", "200", "--stacks", "4000", "--templates", "40",
        "--fresh", "20", *store.plain], stdout=subprocess.PIPE, check=False).stdout)
    time.sleep(SETTLE_S)
    peak, before = [resident_kib(pid) for pid in store.pids], ended_cpu_s()
    if store.restarts:
        store.stop()
        used = ended_cpu_s() - before
    else:
        used = sum(cpu_ns(pid) for pid in store.pids) / 1e9
    return dict(said, cpu_ms=used * 1e3 / max(1, said["acknowledged"]), peak_kib=sum(peak), disk=store.disk())


def question_times(store, begin_ms):
    """The first answer, medians of services, asked once and asked again, and of the fleet, in ms; CPU; its total."""
    if store.restarts:
        store.start()
    first, total = store.ask(begin_ms)
    used = sum(cpu_ns(pid) for pid in store.pids)
    services = sorted(store.ask(begin_ms, name)[0] for name in NAMES)
    used_services = sum(cpu_ns(pid) for pid in store.pids) - used
    fleet = sorted(store.ask(begin_ms)[0] for _ in range(3))
    used_fleet = sum(cpu_ns(pid) for pid in store.pids) - used - used_services
    peak = sum(resident_kib(pid) for pid in store.pids)
    store.stop()
    return {"first": first, "service": services[len(services) // 2], "service_worst": services[-1], "fleet": fleet[1],
            "service_cpu": used_services / 1e6 / len(NAMES), "fleet_cpu": used_fleet / 3e6, "total": total, "peak_kib": peak}


def measure(store):
    begin_ms = int(time.time() * 1000) - HOUR_MS - 60000
    seen = fill(store, begin_ms)
    seen["questions"] = question_times(store, begin_ms - 60000)
    if seen["questions"]["total"] != seen["samples"] * PERIOD_NS:
        seen["wrong"] = "no: it shows %.1f %%" % (100 * seen["questions"]["total"] / (seen["samples"] * PERIOD_NS))
    shutil.rmtree(WORK + "/peer", ignore_errors=True)
    return seen


def try_to(store):
    try:
        return measure(store)
    except (RuntimeError, OSError, ValueError) as error:
        stop_all()
        return {"failed": "%s: %s" % (store.name, error)}


def peer_rows(row):
    stores = [Sqlite(), OverClickHouse() if CLICKHOUSE else None, Peer() if pyroscope.PROGRAM else None]
    seen = [store and try_to(store) for store in stores]

    def line(what, show, budget=""):
        row("  " + what, *["not given" if not v else "failed" if "failed" in v else show(v) for v in seen[:1]], budget,
            "".join("%-24s" % ("not given" if not v else "failed" if "failed" in v else show(v)) for v in seen[1:]))

    row("stores: %d reports of 200 stacks over 1 h" % (AGENTS * REPORTS), Sqlite.name, "budget",
        "%-24s%s" % (OverClickHouse.name, Peer.name))
    line("CPU per report, all processes", lambda v: "%.2f ms" % v["cpu_ms"], "0.7 ms")
    line("disk per (stack, count) sent", lambda v: "%.2f bytes" % (v["disk"] / v["pairs"]), "3")
    line("resident, peak: taking in, asking", lambda v: "%.0f, %.0f MB" % (
        v["peak_kib"] / 1024, v["questions"]["peak_kib"] / 1024), "300 MB")
    line("flame graph of the fleet's hour: first, then", lambda v: "%.0f, %.0f ms" % (
        v["questions"]["first"], v["questions"]["fleet"]))
    line("  CPU", lambda v: "%.0f ms" % v["questions"]["fleet_cpu"])
    line("of one service's hour, %d services: median, worst" % len(NAMES), lambda v: "%.0f, %.0f ms" % (
        v["questions"]["service"], v["questions"]["service_worst"]))
    line("  CPU", lambda v: "%.1f ms" % v["questions"]["service_cpu"])
    line("taken, refused", lambda v: "%d, %d" % (v["acknowledged"], v["refused"]), "none")
    line("the total is the sender's", lambda v: v.get("wrong", "yes"))
    if seen[2]:
        for what, value in (("CPU of a report", lambda v: v["cpu_ms"]), ("disk of a pair", lambda v: v["disk"] / v["pairs"]),
                            ("the fleet's hour", lambda v: v["questions"]["fleet"])):
            ratios.at_most(what + " beside Pyroscope's", *[None if "failed" in v else value(v) for v in (seen[0], seen[2])], 1)
    for v in seen:
        if v and "failed" in v:
            row("  " + v["failed"])
