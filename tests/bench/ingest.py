# SPDX-License-Identifier: Apache-2.0
"""What a fleet's reports cost the server (fleet_load.py): beside its folds, while somebody asks ten different questions
a minute, on a disk that is slower, and with ClickHouse as the store.

ingest_rows() is the part "ingest" of bench.py. BENCH_AGENTS (10000), BENCH_INGEST_SECONDS (120; the budget's is 600),
BENCH_SLOW_SECONDS (90; 0: not run), BENCH_SLOW_MS (15), BENCH_IDS_AGENTS (1000; 0: not run), BENCH_CLICKHOUSE_AGENTS
(1000; 0: not run)."""
import glob
import os
import random
import shutil
import sqlite3
import subprocess
import time

from clickhouse import PROGRAM, ClickHouse
from cost import cpu_ns, disk_bytes
from fleet_load import Run, p99, services
from harness import WORK, Server

AGENTS = int(os.environ.get("BENCH_AGENTS", "10000"))
SECONDS = int(os.environ.get("BENCH_INGEST_SECONDS", "120"))
SLOW_SECONDS = int(os.environ.get("BENCH_SLOW_SECONDS", "90"))
SLOW_MS = os.environ.get("BENCH_SLOW_MS", "15")
CLICKHOUSE_AGENTS = int(os.environ.get("BENCH_CLICKHOUSE_AGENTS", "1000"))
IDS_AGENTS = int(os.environ.get("BENCH_IDS_AGENTS", "1000"))
QUERY_EVERY_S = 6


def stored_pairs(directory):
    """(stack, count) pairs in the day files: a series' equal stacks of one fold and minute are one."""
    total = 0
    for path in glob.glob(directory + "/samples-*.db"):
        total += sqlite3.connect("file:%s?mode=ro" % path, uri=True).execute(
            "SELECT total(pairs) FROM samples").fetchone()[0]
    return total


class Questions:
    """Different flame graphs, one every QUERY_EVERY_S, until the time is over."""

    def __init__(self, server, agents, seed=1):
        self.server, self.agents = server, agents
        self.random = random.Random(seed)
        self.spans, self.ms = [], []

    def ask(self, **parameters):
        """(ms, CPU ms of the server, what else it did in that time included)"""
        used, begin = cpu_ns(self.server.process.pid), time.monotonic()
        status, _, body = self.server.get("/api/v1/flamegraph", timeout=60, type="on-cpu", **parameters)
        end = time.monotonic()
        if status != 200:
            raise RuntimeError("%d %s" % (status, body[:300]))
        self.spans.append((begin, end))
        self.ms.append((end - begin) * 1e3)
        return self.ms[-1], (cpu_ns(self.server.process.pid) - used) / 1e6

    def next(self):
        names = services(self.agents)
        return self.ask(match='{service="%s"}' % self.random.choice(names), from_="now-%dm" % self.random.randint(1, 9),
                        until="now", group_by=self.random.choice(["process", "service", "thread"]))

    def until(self, deadline):
        while time.monotonic() + QUERY_EVERY_S < deadline:
            begin = time.monotonic()
            self.next()
            time.sleep(max(0, begin + QUERY_EVERY_S - time.monotonic()))
        return self


def add_disk(seen, server, directory):
    """What the data takes after the last fold, with and without the journal."""
    seen["journal_running"] = disk_bytes(directory + "/journal")
    server.stop()
    seen["disk"], seen["journal"] = disk_bytes(directory), disk_bytes(directory + "/journal")
    seen["stored"] = max(1, stored_pairs(directory))
    shutil.rmtree(directory)
    return seen


def of_ours(agents, seconds, questions=False, more=(), environment=None, fleet=()):
    """What Run.close() says, and of the answers: in folds, beside them, while questions ran; of the disk."""
    name = "ingest%d" % agents
    server = Server(*more, data=name)
    run = Run(agents, seconds, server.url, server.process.pid, more=fleet)
    asked = Questions(server, agents)
    if questions:  # the second half, so that the costs are those of reports alone
        time.sleep(run.rest_s() / 2)
        run.costs()
        asked.until(time.monotonic() + run.rest_s())
    else:
        time.sleep(run.rest_s())
        run.costs()
    seen = run.close()
    seen["in_folds"], seen["beside_folds"] = run.during(run.folds.busy())
    seen["in_queries"] = run.during([(begin, end + 0.05) for begin, end in asked.spans])[0]
    seen["query_ms"] = sorted(asked.ms)
    return add_disk(seen, server, os.path.join(WORK, name))


def on_slow_disk(agents, seconds):
    shim = WORK + "/slow_disk.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-D_GNU_SOURCE", "-o", shim, "tests/bench/slow_disk.c", "-ldl"], check=True)
    os.environ.update(LD_PRELOAD=shim, SLOW_DISK_MS=SLOW_MS)
    try:
        server = Server(data="slow")
    finally:
        del os.environ["LD_PRELOAD"]
    run = Run(agents, seconds, server.url, server.process.pid)
    time.sleep(run.rest_s())
    seen = run.close()
    seen["in_folds"], seen["beside_folds"] = run.during(run.folds.busy())
    return add_disk(seen, server, WORK + "/slow")


def active_bytes(clickhouse, database="bench"):
    """Disk of the parts that count; merged ones stay some minutes longer."""
    return int(clickhouse.ask("SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = '%s'" % database))


def of_clickhouse(agents, seconds):
    clickhouse = ClickHouse()
    server = Server("--store", clickhouse.store("bench"), data="over-clickhouse")
    run = Run(agents, seconds, server.url, server.process.pid, clickhouse.process.pid)
    time.sleep(run.rest_s())
    seen = run.close()
    server.stop()
    seen["disk"] = active_bytes(clickhouse)
    clickhouse.stop()
    shutil.rmtree(clickhouse.directory)
    return seen


def refusals(seen):
    return "%d, %d, %d, %d" % (seen["acknowledged"], seen["busy"], seen["refused"], seen["unanswered"])


def latency_row(row, seen):
    row("  latency median, p99, worst", "%.1f, %.1f, %.1f ms" % (seen["p50_ms"], seen["p99_ms"], seen["max_ms"]), "p99 100 ms")
    row("    while a fold or roll-up works / beside them: p99", "%.1f / %.1f ms (%d %%)" % (
        p99(seen["in_folds"]), p99(seen["beside_folds"]), 100 * len(seen["in_folds"]) / max(1, seen["latencies"])), "100 ms")


def of_all(row, seen):
    row("  CPU per report: all, folds and roll-ups of it (generator's)", "%.2f, %.2f ms (%.2f)" % (
        seen["cpu_ms"], seen["background_ms"], seen["generator_ms"]), "0.7 ms")
    latency_row(row, seen)
    if seen["query_ms"]:
        row("    while a query runs: p99", "%.1f ms of %d" % (p99(seen["in_queries"]), len(seen["in_queries"])), "100 ms")
        row("  those queries, one service's minutes: median, worst", "%.0f, %.0f ms of %d" % (
            seen["query_ms"][len(seen["query_ms"]) // 2], seen["query_ms"][-1], len(seen["query_ms"])))
    row("  written to the disk per report", "%.0f bytes" % seen["wrote"], "4096")
    row("  resident: peak, at the end", "%.0f, %.0f MB" % (seen["peak_kib"] / 1024, seen["resident_kib"] / 1024), "300 MB")
    row("  disk (du) per (stack, count) after the last fold", "%.2f bytes of %.1f M" % (
        (seen["disk"] - seen["journal"]) / seen["stored"], seen["stored"] / 1e6), "3")
    row("    the journal, apart: before the end, after it", "%.0f, %.0f MB" % (
        seen["journal_running"] / 1e6, seen["journal"] / 1e6))
    row("  answered 200, told to wait, refused, unanswered", refusals(seen), "nothing refused")


def ids_rows(row):
    """What threads' ids and requests cost: eight threads of a name, and a hundred requests in each report."""
    seconds = SLOW_SECONDS or SECONDS
    row("ingest: %d agents, what samples are told with, %d s" % (IDS_AGENTS, seconds), "", "CPU, written per report; bytes a pair")
    for what, fleet in (("nothing", ()), ("threads' ids", ("--thread-ids", "8")), ("requests", ("--links", "100")),
                        ("both", ("--thread-ids", "8", "--links", "100")),
                        ("threads' ids, processes", ("--thread-ids", "8", "--lifetimes", "8"))):
        seen = of_ours(IDS_AGENTS, seconds, fleet=fleet)
        row("  " + what, "%.2f ms, %.0f bytes; %.2f bytes" % (
            seen["cpu_ms"], seen["wrote"], (seen["disk"] - seen["journal"]) / seen["stored"]))


def ingest_rows(row):
    row("ingest: %d agents, a report of 200 stacks each 10 s, %d s" % (AGENTS, SECONDS), "", "budget")
    of_all(row, of_ours(AGENTS, SECONDS, questions=True))
    if SLOW_SECONDS:
        row("ingest: the same on a disk %s ms slower per write and per sync, %d s" % (SLOW_MS, SLOW_SECONDS), "", "budget")
        seen = on_slow_disk(AGENTS, SLOW_SECONDS)
        latency_row(row, seen)
        row("  answered 200, told to wait, refused, unanswered", refusals(seen), "nothing refused")
    if IDS_AGENTS:
        ids_rows(row)
    if not CLICKHOUSE_AGENTS or not PROGRAM:
        return row("ingest with ClickHouse", "not run: %s" % ("there is no clickhouse-server" if not PROGRAM else "not asked for"))
    row("ingest: %d agents, --store clickhouse=, %d s" % (CLICKHOUSE_AGENTS, SLOW_SECONDS or SECONDS), "", "budget")
    seen = of_clickhouse(CLICKHOUSE_AGENTS, SLOW_SECONDS or SECONDS)
    row("  CPU per report: farflame-server, ClickHouse", "%.2f, %.2f ms" % (seen["cpu_ms"], seen["other_ms"]), "0.7 ms")
    row("  latency median, p99, worst", "%.1f, %.1f, %.1f ms" % (seen["p50_ms"], seen["p99_ms"], seen["max_ms"]), "p99 100 ms")
    row("  written per report / disk per (stack, count) sent", "%.0f bytes / %.2f bytes" % (
        seen["wrote"], seen["disk"] / max(1, seen["pairs"])), "4096 / 3")
    row("  answered 200, told to wait, refused, unanswered", refusals(seen), "nothing refused")
