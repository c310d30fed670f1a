# SPDX-License-Identifier: Apache-2.0
"""One sender with very many process names does not take the series of a day from others, and nothing of it is lost."""
import re
import sys

sys.path.insert(0, "tests/tools")
import clickhouse  # noqa: E402
import otlp_writer  # noqa: E402
from harness import BUILD, Server, WORK, check, equal, run, skip  # noqa: E402

LIMIT = 4000


def report(host, names, kind="worker"):
    """A profile of one sample for each process."""
    request = otlp_writer.Request(BUILD)
    for name in names:
        profile = request.profile(request.resource(**{"host.name": host, "process.executable.name": name}), scope="other",
                                  type_="samples", unit="count")
        request.sample(profile, [("cpython", "work", "a.py", 3)], [1], thread=kind)
    return request.bytes()


def metric(server, name):
    found = re.search(r"^farflame_server_%s (\S+)$" % re.escape(name), server.get("/metrics")[2].decode(), re.M)
    return float(found.group(1)) if found else None


def told(server, match):
    return server.json("/api/v1/flamegraph", type="on-cpu", from_="now-1h", until="now", match=match)["accounting"]


def attack(server):
    names = ["p%d" % number for number in range(6000)]
    for begin in range(0, len(names), 1000):
        status, _, body = server.post(report("greedy", names[begin:begin + 1000]))
        if status != 200 or b"limit" in body:
            return check(False, "the greedy host's reports are taken whole", "%d %r" % (status, body[:200]))
    greedy = told(server, '{host="greedy"}')
    equal((greedy["samples"], greedy["lost"], greedy["lost_by"]["unexplained"]), (6000, 0, 0), "all samples of the greedy host are there")
    other = told(server, '{host="greedy",process="other"}')["samples"]
    check(2500 <= other <= 3500, "what is beyond its share is its process \"other\"", other)
    for begin in (0, 100, 200):
        status, _, body = server.post(report("honest", ["mine%d" % (begin + number) for number in range(100)]))
        if status != 200 or b"limit" in body:
            return check(False, "a new process of another host is taken", "%d %r" % (status, body[:200]))
    honest = told(server, '{host="honest",process="mine299"}')
    equal((honest["samples"], honest.get("folded_series", 0)), (1, 0), "new processes of another host keep their names")
    equal(metric(server, "series_refused_profiles_total"), 0, "nothing was refused")
    equal(metric(server, "series_folded_samples_total"), other, "/metrics counts what is folded")
    equal(told(server, '{host="greedy"}').get("folded_series"), other, "the accounting too")
    return other


def sqlite():
    server = Server("--series-limit", str(LIMIT))
    other = attack(server)
    check("series of a host that has its share" in open(WORK + "/server.log", errors="replace").read(), "the log says so")
    server.process.kill()
    server.process.wait()
    server.start()
    greedy = told(server, '{host="greedy"}')
    equal((greedy["samples"], greedy.get("folded_series"), greedy["lost_by"]["unexplained"]), (6000, other, 0), "the same after a crash")


def house():
    if not clickhouse.PROGRAM:
        skip("clickhouse-server is not installed")
        return
    server = Server("--series-limit", str(LIMIT), "--store", clickhouse.ClickHouse().store("series"), data="house", log="house.log")
    attack(server)


run(sqlite, house)
