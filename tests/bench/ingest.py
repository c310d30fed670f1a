# SPDX-License-Identifier: Apache-2.0
"""What a fleet's reports cost the server, open loop: each agent on its own connection, one report of 200 stacks each
10 s, latency from the time it was due. The generator shares the processors; its own CPU is shown.

ingest_rows() is the part "ingest" of bench.py; BENCH_AGENTS (100,1000,10000) and BENCH_INGEST_SECONDS (120; the budget's
is 600) choose how much. BENCH_PEER=URL sends the same to another receiver of OTLP profiles and BENCH_PEER_PID is its
process."""
import glob
import json
import os
import sqlite3
import subprocess
import time

from cost import cpu_ns
from harness import WORK, Server, end, fleet_tool, start

SECONDS = int(os.environ.get("BENCH_INGEST_SECONDS", "120"))
AGENTS = [int(n) for n in os.environ.get("BENCH_AGENTS", "100,1000,10000").split(",")]


def written(pid):
    """Bytes that the process caused to be written to the disk."""
    with open("/proc/%d/io" % pid) as lines:
        return int(dict(line.split(": ") for line in lines)["write_bytes"])


def resident_kib(pid, name="VmHWM"):
    with open("/proc/%d/status" % pid) as lines:
        return int(next(line for line in lines if line.startswith(name)).split()[1])


def disk_bytes(directory):
    return int(subprocess.run(["du", "-s", "-B1", directory], capture_output=True, text=True, check=True)
               .stdout.split()[0])


def stored_pairs(directory):
    """(stack, count) pairs in the day files: a series' equal stacks of one fold and minute are one."""
    total = 0
    for path in glob.glob(directory + "/samples-*.db"):
        total += sqlite3.connect("file:%s?mode=ro" % path, uri=True).execute(
            "SELECT total(pairs) FROM samples").fetchone()[0]
    return total


def fleet_arguments(agents, seconds):
    """Applications of a hundred hosts; the first report of every agent has a fifth of new stacks, later ones 0.1 %."""
    apps = max(1, agents // 100)
    return ["--agents", str(agents), "--interval", "10s", "--duration", "%ds" % seconds, "--samples", "200",
            "--apps", str(apps), "--stacks", "4000", "--templates", "40", "--processes", "4", "--fresh", "20",
            "--settle", "30s"]


def measure(agents, seconds, url, pid, data=None):
    """Costs after the first minute (the first third of a shorter run), and of the fold of all of it."""
    warmup = min(60, seconds // 3)
    process = start([fleet_tool(), "--server", url, "--warmup", "%ds" % warmup, *fleet_arguments(agents, seconds)],
                    "fleet.log", stdout=subprocess.PIPE)
    begin = time.monotonic()
    while not connections(pid) and time.monotonic() - begin < 120:
        time.sleep(0.1)
    time.sleep(warmup)
    used, wrote, since = cpu_ns(pid), written(pid), time.monotonic()
    time.sleep(max(0, seconds - warmup - 1))
    used, wrote, elapsed = cpu_ns(pid) - used, written(pid) - wrote, time.monotonic() - since
    said = json.loads(process.stdout.read() or "{}")
    end(process, 60)
    if not said.get("latencies"):
        raise RuntimeError("the fleet ended early; see fleet.log")
    reports = said["latencies"] / (said["seconds"] - warmup) * elapsed
    return dict(said, cpu_ms=used / 1e6 / reports, wrote=wrote / reports, peak_kib=resident_kib(pid),
                generator_ms=said["cpu_s"] * 1e3 / max(1, said["acknowledged"]))


def connections(pid):
    """Whether the process has an accepted connection."""
    try:
        return sum(os.readlink("/proc/%d/fd/%s" % (pid, fd)).startswith("socket:")
                   for fd in os.listdir("/proc/%d/fd" % pid)) > 1
    except OSError:
        return 0


def of_ours(agents, seconds, *arguments):
    server = Server(*arguments, data="ingest%d" % agents)
    directory = os.path.join(WORK, "ingest%d" % agents)
    seen = measure(agents, seconds, server.url, server.process.pid)
    server.stop()
    seen["disk"] = disk_bytes(directory)
    seen["stored"] = stored_pairs(directory)
    seen["pair_bytes"] = seen["disk"] / max(1, seen["stored"])
    return seen


def ingest_rows(row):
    row("ingest: agents, one report of 200 stacks each 10 s, %d s" % SECONDS, "", "budget", "")
    for agents in AGENTS:
        seen = of_ours(agents, SECONDS)
        row("  %6d agents: CPU per report (generator's)" % agents, "%.2f ms (%.2f)" % (
            seen["cpu_ms"], seen["generator_ms"]), "0.7 ms")
        row("         latency median, p99, worst", "%.1f, %.1f, %.1f ms" % (
            seen["p50_ms"], seen["p99_ms"], seen["max_ms"]), "p99 100 ms")
        row("         written to the disk per report", "%.0f bytes" % seen["wrote"], "4096")
        row("         resident, peak", "%.0f MB" % (seen["peak_kib"] / 1024), "300 MB")
        row("         disk per stored (stack, count), journal and dictionary included", "%.2f bytes of %.1f M" % (
            seen["pair_bytes"], seen["stored"] / 1e6), "3")
        row("         answered 200, told to wait, refused, unanswered", "%d, %d, %d, %d" % (
            seen["acknowledged"], seen["busy"], seen["refused"], seen["unanswered"]), "nothing refused")
    if os.environ.get("BENCH_PEER") and os.environ.get("BENCH_PEER_PID"):
        seen = measure(AGENTS[0], SECONDS, os.environ["BENCH_PEER"], int(os.environ["BENCH_PEER_PID"]))
        row("  peer, %d agents: CPU per report / p99 / peak" % AGENTS[0], "", "", "%.2f ms / %.1f ms / %.0f MB" % (
            seen["cpu_ms"], seen["p99_ms"], seen["peak_kib"] / 1024))
