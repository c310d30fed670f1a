# SPDX-License-Identifier: Apache-2.0
"""Heat maps: times that were sent are counted in their cells, exactly, from memory, from files and after a crash;
the flame graph of some cells has their samples and no others; the agent's times are when the program ran."""
import collections
import glob
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time

from harness import BUILD, WORK, Agent, Server, check, end, equal, note, run, skip, start

sys.path.insert(0, "tests/tools")
from otlp_writer import Request  # noqa: E402

DRAW = random.Random(4)
VALUE = 10101010


class Sent:
    """What was sent: (time in ns, service, thread, function)."""

    def __init__(self, server, base_ns):
        self.server, self.base_ns = server, base_ns
        self.moments = []

    def report(self, start_ns, length_ns, service, count, with_times=True):
        request = Request(BUILD)
        profile = request.profile(request.resource(**{"host.name": "h1", "service.name": service,
                                                      "farflame.process": service}),
                                  time_ns=start_ns)
        by_stack = collections.defaultdict(list)
        for _ in range(count):
            by_stack[DRAW.choice(["f", "g", "h"]), DRAW.choice(["t1", "t2"])].append(
                start_ns + DRAW.randrange(length_ns))
        for (function, thread), times in by_stack.items():
            request.sample(profile, [("cpython", function, "a.py", 3)], [len(times), VALUE * len(times)], thread=thread)
            if with_times:
                profile.samples[-1].timestamps_unix_nano.extend(sorted(times))
                self.moments += [(at, service, thread, function) for at in times]
        body = request.bytes()
        equal(self.server.post(body)[0], 200, "a report of %d samples is taken" % count)
        if DRAW.random() < 0.3:
            self.server.post(body)  # a retry

    def between(self, from_ms, until_ms, service=None, thread=None):
        return [m for m in self.moments if from_ms <= m[0] // 10**6 < until_ms and service in (None, m[1]) and
                thread in (None, m[2])]


def cells_of(heat):
    cells = heat["cells"]
    return {(heat["from"] + column * heat["column_ms"] + row * heat["row_ms"]): (samples, value)
            for column, row, samples, value in zip(cells["column"], cells["row"], cells["samples"], cells["value"])}


def compare(sent, text):
    base_ms = sent.base_ns // 10**6
    for from_ms, until_ms, rows, match in ((base_ms, base_ms + 130000, 50, {}), (base_ms + 1500, base_ms + 9000, 10, {}),
                                           (base_ms, base_ms + 130000, 20, {"service": "api"}),
                                           (base_ms, base_ms + 130000, 1, {"thread": "t2"})):
        selector = "{%s}" % ",".join('%s="%s"' % pair for pair in match.items())
        heat = sent.server.json("/api/v1/heatmap", from_=from_ms, until=until_ms, rows=rows, match=selector)
        want = collections.Counter(m[0] // 10**6 // heat["row_ms"] * heat["row_ms"]
                                   for m in sent.between(heat["from"], heat["until"], **match))
        equal(cells_of(heat), {at: (n, n * VALUE) for at, n in want.items()},
              "%s: cells are what was sent, %d rows, %s" % (text, rows, selector))
        equal(heat["most_samples"], max(want.values()), "and the fullest has the most")
    exact = sent.server.folded(from_=base_ms + 2340, until=base_ms + 5678, exact="true", group_by="service,thread")
    want = collections.Counter((m[1], m[2], m[3]) for m in sent.between(base_ms + 2340, base_ms + 5678))
    equal({tuple(frames): value for frames, value in exact}, dict(want),
          "%s: the flame graph of some milliseconds has their samples" % text)


def without_checksums(path):
    """The same database as an earlier version wrote it: what another program changes has no checksums of ours."""
    with sqlite3.connect(path) as file:
        numbers = [file.execute("PRAGMA " + name).fetchone()[0] for name in ("application_id", "user_version")]
        text = "\n".join(file.iterdump())
    for name in glob.glob(path + "*"):
        os.unlink(name)
    with sqlite3.connect(path) as file:
        file.executescript("PRAGMA page_size = 8192;" + text +
                           "PRAGMA application_id = %d; PRAGMA user_version = %d;" % tuple(numbers))


def verified():
    """--verify reads them too."""
    data = os.path.join(WORK, "heat")
    done = subprocess.run([BUILD + "/farflame-server", "--data", data, "--verify"], capture_output=True, text=True)
    equal(done.returncode, 0, "--verify finds nothing wrong")
    copy = os.path.join(WORK, "damaged")
    shutil.copytree(data, copy)
    path = glob.glob(copy + "/samples-*.db")[0]
    without_checksums(path)
    with sqlite3.connect(path) as file:
        file.execute("UPDATE moments SET count = count + 1 WHERE (bucket, series, fold) = "
                     "(SELECT bucket, series, fold FROM moments LIMIT 1)")
    done = subprocess.run([BUILD + "/farflame-server", "--data", copy, "--verify"], capture_output=True, text=True)
    check(done.returncode != 0 and "the times of type" in done.stdout, "and a row that is not what it says",
          done.stdout[-500:])


def damaged():
    """Times that are none cost themselves, and the first question says so; their samples stay."""
    for path in glob.glob(os.path.join(WORK, "damaged", "samples-*.db")):
        without_checksums(path)
        with sqlite3.connect(path) as file:
            file.execute("UPDATE moments SET data = x'01ffffff'")
    server = Server(data="damaged", log="damaged.log")
    status, _, body = server.get("/api/v1/heatmap", from_="now-1h", until="now", column="10s")
    check(status == 200 and json.loads(body)["samples"] == 0 < json.loads(body)["accounting"]["samples"], "the first question finds the times damaged, and says that none are there",
          (status, body[:300]))
    check(server.json("/api/v1/top", type="on-cpu", from_="now-1h", until="now")["accounting"]["samples"] > 0, "their samples stay")
    check(glob.glob(os.path.join(WORK, "damaged", "samples-*.db.damaged*")) or "set aside" in
          open(os.path.join(WORK, "damaged.log")).read(), "which was set aside")
    server.stop()


def made_up():
    server = Server(data="heat")
    base_ns = (time.time_ns() // 10**9 - 600) * 10**9
    sent = Sent(server, base_ns)
    for i in range(12):
        sent.report(base_ns + i * 10**10, 10**10, DRAW.choice(["api", "db"]), DRAW.randrange(50, 300))
    compare(sent, "in memory")
    server.kill()
    server.start()
    compare(sent, "after a crash")
    server.stop()
    verified()
    damaged()
    server.start()
    compare(sent, "from the day's file")
    sent.report(base_ns + 3 * 10**9, 10**10, "api", 100)
    compare(sent, "from both")
    sent.report(base_ns + 5 * 10**9, 10**10, "plain", 40, with_times=False)
    status, _, body = server.get("/api/v1/heatmap", from_=base_ns // 10**9, until=base_ns // 10**9 + 100,
                                 match='{service="plain"}')
    answer = json.loads(body)
    equal((status, answer["samples"], answer["cells"]["column"], answer["accounting"]["samples"]), (200, 0, [], 40),
          "samples without times: no cells, and the accounting has them")
    for wrong in ({"rows": 7}, {"rows": 0}, {"column": "0s"}, {"from_": "now-2h", "column": "1s"},
                  {"column": "x"}):
        status, _, body = server.get("/api/v1/heatmap", **{"from_": "now-1m", "until": "now", **wrong})
        check(status == 422 and b'"message"' in body, "%s: 422" % wrong, (status, body))
    for asked, column_ms in ({}, 2000), ({"from_": "now-1d", "until": "now"}, 30000), ({"from_": "now-9m"}, 1000):
        heat = server.json("/api/v1/heatmap", **asked)
        equal((heat["column_ms"], sum(heat["cells"]["samples"])), (column_ms, heat["samples"]),
              "%s: columns as long as the range asks for" % asked)
    request = Request(BUILD)
    profile = request.profile(request.resource(**{"host.name": "h1", "service.name": "odd"}), time_ns=base_ns)
    request.sample(profile, [("cpython", "f", "a.py", 3)], [3, 3 * VALUE])
    profile.samples[-1].timestamps_unix_nano.extend([5, base_ns + 10**9, 2**64 - 1])
    equal(server.post(request.bytes())[0], 200, "times of another age are taken with their report")
    heat = server.json("/api/v1/heatmap", from_=base_ns // 10**9, until=base_ns // 10**9 + 60, match='{service="odd"}')
    equal((heat["samples"], heat["accounting"]["samples"]), (1, 3), "and left out of the heat map, not of the samples")


WORK_S, PERIOD_S = 0.4, 1.0
PROGRAM = """
import time
end = time.time() + 8
while time.time() < end:
    if time.time() %% %f < %f:
        sum(range(2000))
    else:
        time.sleep(0.002)
""" % (PERIOD_S, WORK_S)


def real():
    """A program that works in the first 400 ms of each second by the host's clock."""
    if os.geteuid() != 0:
        return skip("needs root")
    server = Server(data="real")
    program = start(["/usr/bin/python3", "-c", PROGRAM])
    try:
        agent = Agent("--timestamps", "--frequency", "99", "--report-interval", "2s", "--pid", str(program.pid),
                      server=server)
    except RuntimeError as error:
        if "not permitted" in str(error):
            return skip(str(error))
        raise
    time.sleep(6)
    agent.stop()
    end(program, 5)
    heat = server.json("/api/v1/heatmap", from_="now-30s", until="now", rows=10)
    rows = collections.Counter()
    for row, samples in zip(heat["cells"]["row"], heat["cells"]["samples"]):
        rows[row] += samples
    note("samples by tenth of a second: %s" % sorted(rows.items()))
    inside = sum(n for row, n in rows.items() if row < 5)
    check(heat["samples"] > 50 and inside >= 0.9 * heat["samples"], "nine in ten samples lie where the program worked",
          dict(rows))
    equal(heat["samples"], heat["accounting"]["samples"], "every sample has a time")


if __name__ == "__main__":
    run(made_up, real)
