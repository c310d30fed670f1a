# SPDX-License-Identifier: Apache-2.0
"""Questions that would take for ever end with --query-time, and leave others theirs."""
import gzip
import hashlib
import sys
import threading
import time

sys.path.insert(0, "tests/tools")
import otlp_writer  # noqa: E402
from harness import BUILD, Server, check, equal, note, run  # noqa: E402

# Each has more states than a table of them may have: every value is matched the slow way.
HOSTILE = "{" + ",".join('process!~".*[0-7].{%d}x%d"' % (14 + i % 8, i) for i in range(30)) + "}"


def many_series(server, count, per_report=20000):
    """One sample each of so many processes."""
    for begin in range(0, count, per_report):
        request = otlp_writer.Request(BUILD)
        for number in range(begin, begin + per_report):
            name = hashlib.sha256(b"%d" % number).hexdigest()
            profile = request.profile(request.resource(**{"host.name": "h", "process.executable.name": name}))
            request.sample(profile, [("native", request.mapping("m", "%040x" % 1), 0x1000)], [1, 10101010], thread=name)
        body = gzip.compress(request.bytes(), 1)
        status, _, answer = server.request("POST", "/v1development/profiles", body, {
            "Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"}, timeout=120)
        if status != 200:
            raise RuntimeError("report: %d %r" % (status, answer[:200]))


def timed(server, path, **parameters):
    begin = time.monotonic()
    status, _, body = server.get(path, timeout=120, **parameters)
    return status, time.monotonic() - begin, body


PATHS = ("/api/v1/labels", "/api/v1/labels/process", "/api/v1/types", "/api/v1/top", "/api/v1/timeline",
         "/api/v1/modules", "/api/v1/heatmap", "/api/v1/hotspots")
PLAIN = "{" + ",".join('process!~".*nobody%d.*"' % i for i in range(30)) + "}"


def patterns():
    server = Server("--query-time", "1s", data="many")
    many_series(server, 100000)
    for path, more in [(path, {}) for path in PATHS] + [("/api/v1/heatmap", {"by": "function"})]:
        status, seconds, body = timed(server, path, match=HOSTILE, **more)
        check(status == 422 and b"--query-time" in body and seconds < 10,
              "%s with 30 slow expressions over 100 000 series ends with --query-time" % path,
              "%d after %.1f s: %s" % (status, seconds, body[:200]))
    for path in "/api/v1/flamegraph", "/api/v1/traces":
        status, seconds, body = timed(server, path, match=HOSTILE.replace("process", "thread"))
        check(status in (200, 422) and seconds < 10, "%s: of threads likewise" % path,
              "%d after %.1f s: %s" % (status, seconds, body[:200]))
    others = [threading.Thread(target=timed, args=(server, "/api/v1/types"), kwargs={"match": HOSTILE}) for _ in range(4)]
    for other in others:
        other.start()
    time.sleep(0.2)
    status, seconds, body = timed(server, "/api/v1/types")
    check(status == 200 and b'"samples":100000' in body and seconds < 15, "an honest question beside four of them",
          "%d after %.1f s: %s" % (status, seconds, body[:200]))
    for other in others:
        other.join()
    server.stop()
    server.arguments[server.arguments.index("--query-time") + 1] = "30s"
    server.start()
    for path in PATHS[1:3]:
        status, seconds, body = timed(server, path, match=PLAIN)
        check(status == 200 and seconds < 20, "%s with 30 quick ones is answered" % path,
              "%d after %.1f s: %s" % (status, seconds, body[:200]))
        note("%.2f s" % seconds)


def memory():
    server = Server("--query-memory", "3M", data="memory")
    for report in range(10):
        request = otlp_writer.Request(BUILD)
        profile = request.profile(request.resource(**{"host.name": "h", "process.executable.name": "p%d" % report}))
        mapping = request.mapping("m", "%040x" % 1)
        for number in range(4000):
            stack = [("native", mapping, 0x1000 + report * 4000000 + number * 1000 + depth) for depth in range(8)]
            request.sample(profile, stack, [1, 10**9 if number == 0 else 1000])
        status, _, answer = server.request("POST", "/v1development/profiles", gzip.compress(request.bytes(), 1), {
            "Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"}, timeout=60)
        if status != 200:
            raise RuntimeError("report: %d %r" % (status, answer[:200]))
    whole = 10 * (10**9 + 3999 * 1000)
    for path, parameters in (("/api/v1/flamegraph", {}), ("/api/v1/flamegraph", {"group_by": "process,thread"}),
                             ("/api/v1/top", {"limit": 100000}), ("/api/v1/sandwich", {"function": "m+0x1007"})):
        answer = server.json(path, **parameters)
        accounting = answer["accounting"]
        check(accounting["value"] == whole and accounting["samples"] == 40000 and
              0 < accounting["cut_by_memory"] <= accounting["cut"] and accounting["cut_by_memory"] < whole // 100,
              "%s %s: cut at its light end, all of it accounted for" % (path, parameters), accounting)
        if path.endswith("top"):
            equal(sum(value >= 10**9 for value in (f["total"] for f in answer["functions"])), 80, "the heavy stacks are there")
    status, _, body = server.get("/api/v1/flamegraph", format="md")
    check(status == 200 and b"no memory" in body, "the report says so", body[-600:])
    listed = server.json("/api/v1/labels/process")
    check("cut" not in listed and len(listed["values"]) == 10, "a listing that fits is whole", listed)


run(patterns, memory)
