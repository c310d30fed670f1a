# SPDX-License-Identifier: Apache-2.0
"""Two minutes of threads that run, wait, wake each other and serve requests, for tests in JavaScript.

  wall_report.py FROM_MS FILE           the reports one after the other in FILE, each after its length in 4 bytes;
                                        on stdout, JSON, the sums of what was made
  wall_report.py FROM_MS FILE narrow    likewise a minute of one process with frames too narrow to be seen
"""

import json
import os
import random
import struct
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path[:0] = [os.path.join(ROOT, "system"), os.path.join(ROOT, "tools")]

from harness import BUILD  # noqa: E402
from otlp_writer import Request  # noqa: E402

DRAW = random.Random(19)
MS = 10**6
PERIOD = 10101010
HOSTILE = '<img src=x onerror="document.body.dataset.owned=1">\u202e;'


def frame(name, file="app.py"):
    return ("cpython", name, "/srv/" + file, 1)


MAIN = [frame("main")]
SERVE = [frame("handle"), frame("serve")] + MAIN
# Where threads run and wait: process, thread, stack, leaf first
RUNS = [("api", "worker", [frame("parse")] + SERVE, 400), ("api", "worker", [frame("render")] + SERVE, 250),
        ("api", "main", [frame("accept")] + MAIN, 20), ("db", "writer", [frame("compress")] + MAIN, 120)]
# … what for, and who ended it: process, thread
WAITS = [("api", "worker", [frame("futex_wait"), frame("lock")] + SERVE, "lock", "api", "main", 900),
         ("api", "worker", [frame("tcp_recv"), frame("query")] + SERVE, "socket", "db", "writer", 2400),
         ("api", "main", [frame("ep_poll"), frame("accept")] + MAIN, "poll", "", "", 300),
         ("db", "writer", [frame("blk_wait"), frame("fsync")] + MAIN, "disk", "kworker", "kworker", 1500),
         ("db", "writer", [frame("futex_wait")] + MAIN, "lock", HOSTILE, HOSTILE, 40)]
WAKES = [("db", "writer", [frame("reply")] + MAIN, 2400), ("api", "main", [frame("unlock")] + SERVE, 900)]


def link(request, trace, span):
    def fill(entry):
        entry.trace_id, entry.span_id = trace, span
    return request.once(("link", trace, span), "link_table", fill)


def report(base_ns, traces, sums):
    """A minute of it. sums: by type and process, ns; grows."""
    request = Request(BUILD)
    profiles = {}

    def add(type_, process, stack, count, value, thread="", unit="nanoseconds", trace=None, wait=None, waker=None, **attributes):
        waker = (wait, waker)
        if (type_, process, waker) not in profiles:
            labels = {"farflame.label." + name: text for name, text in zip(("wait", "waker"), waker) if text}
            resource = request.resource(**{"host.name": "web-1", "farflame.process": process, "service.name": process,
                                           **labels})
            profiles[type_, process, waker] = request.profile(resource, type_=type_, unit=unit, time_ns=base_ns)
        request.sample(profiles[type_, process, waker], stack, [count, value], thread=thread, **attributes)
        if trace:
            profiles[type_, process, waker].samples[-1].link_index = link(request, *trace)
            of = sums["traces"].setdefault(trace[0].hex(), {"on-cpu": 0, "off-cpu": 0})
            of[type_] += value
        key = type_ + " " + process
        sums[key] = sums.get(key, 0) + value

    for process, thread, stack, count in RUNS:
        for _ in range(10 if process == "api" else 1):
            share = count // 10 if process == "api" else count
            trace = DRAW.choice(traces) if thread == "worker" else None
            add("on-cpu", process, stack, share, share * PERIOD, thread, trace=trace)
    for process, thread, stack, wait, waker, by, ms in WAITS:
        more = {"waker_thread_name": by} if by else {}
        add("off-cpu", process, stack, ms // 10, ms * 10 * MS, thread, wait=wait, waker=waker, **more)
    for trace in traces[:4]:
        add("off-cpu", "api", WAITS[1][2], 3, 700 * MS, "worker", wait="socket", waker="db", waker_thread_name="writer",
            trace=trace)
    for process, thread, stack, ms in WAKES:
        add("waker", process, stack, ms // 10, ms * 10 * MS, thread, woken_process="api")
    add("run-queue", "api", SERVE, 90, 800 * MS, "worker")
    add("still-blocked", "db", [frame("nfs_wait")] + MAIN, 6, 60_000 * MS, "backup")
    add("mem-inuse", "api", [frame("malloc")] + SERVE, 400, 96 << 20, unit="bytes")
    add("mem-alloc", "api", [frame("malloc")] + SERVE, 4000, 1 << 30, unit="bytes")
    return request.bytes()


def narrow(base_ns, sums):
    """300 callees of one function, of a sample each of both types; one function that waited once; and narrow callees of a
    narrow callee."""
    request = Request(BUILD)
    many, outer = [frame("many")] + MAIN, [frame("outer")] + MAIN
    inner = [frame("inner")] + outer
    deep = [(outer, 3000), (inner, 5)] + [([frame("u%d" % i)] + inner, 1) for i in range(10)]
    for type_, each, wide in (("on-cpu", PERIOD, {"busy": 40000, "mixed": 400}), ("off-cpu", 10 * MS, {"lock": 40000, "mixed": 1})):
        profile = request.profile(request.resource(**{"host.name": "web-2", "farflame.process": "cuts"}), type_=type_, time_ns=base_ns)
        counts = deep * (type_ == "on-cpu") + [([frame(name)] + MAIN, count) for name, count in wide.items()] + [([frame("t%03d" % i)] + many, 1) for i in range(300)]
        for stack, count in counts:
            request.sample(profile, stack, [count, count * each])
        sums[type_] = sum(count for _, count in counts) * each
    return request.bytes()


from_ns = int(sys.argv[1]) * MS
made = {"traces": {}}
ids = [(DRAW.randbytes(16), DRAW.randbytes(8)) for _ in range(24)]
with open(sys.argv[2], "wb") as out:
    is_narrow = sys.argv[3:] == ["narrow"]
    for minute in range(1 if is_narrow else 2):
        at_ns = from_ns + (minute * 60 + 20) * 10**9
        body = narrow(at_ns, made) if is_narrow else report(at_ns, ids, made)
        out.write(struct.pack("<I", len(body)) + body)
print(json.dumps(made))
