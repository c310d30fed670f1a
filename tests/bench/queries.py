# SPDX-License-Identifier: Apache-2.0
"""What questions about a fleet's day cost: 2000 series of 100 services, 200 000 stacks, 144 buckets of ten minutes, 19 M
(stack, count) pairs of functions of this machine's libraries; every answer's samples are compared with the writer's tally.
The page cache is warm, as the data was just written; the server is new, and its first answers are shown apart."""
import json
import os
import random
import re
import shutil
import subprocess
import time

from cost import cpu_ns, pss_kib
from harness import BUILD, WORK, Server, wait_for

LIBRARIES = os.environ.get("BENCH_LIBRARIES", "libLLVM-14.so.1 libstdc++.so.6 libc.so.6 libcrypto.so.3 libsqlite3.so.0").split()
FOLDER = "/usr/lib/x86_64-linux-gnu/"
DAY_MS = 86400000


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


def ask(server, begin_ms, tally, service=None, group_by="process"):
    """(ms, CPU ms) of one flame graph."""
    match = '{service="%s"}' % service if service else "{}"
    cpu, begin = cpu_ns(server.process.pid), time.monotonic()
    status, _, body = server.get("/api/v1/flamegraph", timeout=120, type="on-cpu", from_=str(begin_ms),
                                 until=str(begin_ms + DAY_MS), match=match, group_by=group_by)
    took = (time.monotonic() - begin) * 1e3
    if status != 200:
        raise RuntimeError("%d %s" % (status, body[:300]))
    samples = json.loads(body)["accounting"]["samples"]
    if samples != tally[service or "*"]:
        raise RuntimeError("%s: %d samples instead of %d" % (service, samples, tally[service or "*"]))
    return took, (cpu_ns(server.process.pid) - cpu) / 1e6


def query_rows(row):
    data, libraries, functions = WORK + "/query", WORK + "/libraries", WORK + "/functions"
    begin_ms = (int(time.time() * 1000) // DAY_MS - 1) * DAY_MS
    os.makedirs(libraries)
    os.makedirs(data)
    list_functions(libraries, functions)
    lines = subprocess.run([BUILD + "/tests/bench/query_load", data, functions, str(begin_ms)], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    tally = {line.split()[0]: int(line.split()[1]) for line in lines}
    server = Server("--symbol-dir", libraries, data="query")
    first = ask(server, begin_ms, tally)
    wait_for(lambda: all(m["state"] in ("symbols", "ready", "missing", "failed")
                         for m in server.json("/api/v1/modules")["modules"]), 120, 1)
    row("flame graph of a fleet's day, server just started", "%.0f ms, CPU %.0f ms" % first)
    for group_by in ("process", "service", ""):
        seen = [ask(server, begin_ms, tally, group_by=group_by) for _ in range(5)]
        row("  by %s, median of 5" % (group_by or "nothing"), "%.0f ms, CPU %.0f ms" % tuple(
            sorted(values)[2] for values in zip(*seen)), "500 ms")
    services = sorted(name for name in tally if name != "*")
    random.Random(1).shuffle(services)
    seen = sorted(ask(server, begin_ms, tally, service)[0] for service in services)
    row("flame graph of one service's day, 100 services: median, p95", "%.0f, %.0f ms" % (
        seen[len(seen) // 2], seen[int(len(seen) * 0.95)]), "50 ms")
    row("server memory after that (PSS of all processes)", "%.1f MB" % (pss_kib(server.process.pid) / 1024), "300 MB")
    server.stop()
