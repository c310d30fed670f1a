# SPDX-License-Identifier: Apache-2.0
"""A server whose clock is 400 days off neither tells a fleet that its reports are too old or too new, nor deletes what
several servers keep in one ClickHouse; a sender whose own clock is wrong is told so."""
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, "tests/tools")
import clickhouse  # noqa: E402
import otlp_writer  # noqa: E402
from harness import BUILD, Server, WORK, check, equal, run, skip, wait_for  # noqa: E402

DAYS = 86400 * 400


def put(clock):
    os.makedirs(WORK + "/faults", exist_ok=True)
    with open(WORK + "/faults/clock.new", "w", encoding="utf-8") as file:
        file.write(str(clock))
    os.rename(WORK + "/faults/clock.new", WORK + "/faults/clock")


def shimmed(make):
    """make() starts a server; its clock is as put() says."""
    path = WORK + "/fault_shim.so"
    if not os.path.exists(path):
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-D_GNU_SOURCE", "-o", path, "tests/tools/fault_shim.c", "-ldl"],
                       check=True, stdout=sys.stderr)
    os.environ.update({"LD_PRELOAD": path, "FAULTS": WORK + "/faults"})
    try:
        return make()
    finally:
        del os.environ["LD_PRELOAD"], os.environ["FAULTS"]


def report(host, seq, clock=0):
    """An agent's, ten samples of now; clock: seconds by which its clock is wrong."""
    request = otlp_writer.Request(BUILD)
    now = time.time_ns() + clock * 10**9
    profile = request.profile(request.resource(**{"host.name": host, "process.executable.name": "program"}), time_ns=now)
    request.sample(profile, [("cpython", "work", "a.py", 3)], [10, 10 * 10101010])
    request.counters(host, host.encode().hex().ljust(32, "0"), seq, seq - 1, 10 * seq, time_ns=now, more={"sent_unix_nano": now})
    return request.bytes()


def foreign(host, age):
    """Of a sender that counts nothing: four samples."""
    request = otlp_writer.Request(BUILD)
    profile = request.profile(request.resource(**{"host.name": host}), "samples", "count", scope="other",
                              time_ns=time.time_ns() - age * 10**9)
    request.sample(profile, [("cpython", "work", "a.py", 3)], [4])
    return request.bytes()


def metric(server, name):
    found = re.search(r"^farflame_server_%s (\S+)$" % re.escape(name), server.get("/metrics")[2].decode(), re.M)
    return float(found.group(1)) if found else None


def samples(server, host):
    return server.json("/api/v1/flamegraph", type="on-cpu", from_="now-1h", until="now",
                       match='{host="%s"}' % host)["accounting"]


def waits(server, body, text):
    status, headers, _ = server.post(body)
    check(status == 503 and headers.get("Retry-After"), text, "%d %s" % (status, headers.get("Retry-After")))


def one_agent(clock, name):
    """The server has heard it before; nobody else is there to ask."""
    put(0)
    server = shimmed(lambda: Server(data=name, log=name + ".log"))
    bodies = [report("h", seq) for seq in range(1, 4)]
    equal(server.post(bodies[0])[0], 200, "%s: with a right clock it is taken" % name)
    server.stop()
    put(clock)
    shimmed(server.start)
    waits(server, bodies[1], "%s: with a wrong one it is to come again" % name)
    waits(server, bodies[2], "the next too")
    equal(metric(server, 'clock_suspected'), 1, "/metrics says so")
    equal(metric(server, 'reports_refused_total{reason="clock"}'), 2, "and counts")
    check("clock of this server suspected" in open("%s/%s.log" % (WORK, name), errors="replace").read(), "the log too")
    put(0)
    equal([server.post(body)[0] for body in bodies[1:]], [200, 200], "right again: both are taken")
    told = samples(server, "h")
    equal((told["samples"], told["lost"], told["lost_by"]["unexplained"]), (30, 0, 0), "and nothing is missing, the first included")
    server.stop()


def behind():
    one_agent(-DAYS, "behind")


def ahead():
    one_agent(DAYS, "ahead")


def fleet():
    """A server that knows nothing yet."""
    put(DAYS)
    server = shimmed(lambda: Server(data="fleet", log="fleet.log"))
    first = server.post(report("h1", 1))[0]
    equal(first, 400, "the first alone is told that its time is wrong: it is one against one")
    for host in ("h2", "h3", "h4"):
        waits(server, report(host, 1), "%s agrees with it, so it is the server" % host)
    put(0)
    for host in ("h2", "h3", "h4"):
        equal(server.post(report(host, 1))[0], 200, host + " is taken")
    equal(server.post(report("h5", 1, 3600))[0], 400, "a single sender with a wrong clock is told")
    equal(server.post(report("h5", 2, -DAYS))[0], 400, "also when it is behind")
    equal(metric(server, 'reports_refused_total{reason="untimely"}'), 3, "counted apart")
    server.stop()


def shared():
    """Two servers on one ClickHouse, one of them in the next year."""
    if not clickhouse.PROGRAM:
        skip("clickhouse-server is not installed")
        return
    put(0)
    house = clickhouse.ClickHouse()
    for number, keep in enumerate(("7d", "7d,10m:30d,1h:300d")):
        store = ["--store", house.store("shared%d" % number), "--retention", keep]
        right = Server(*store, data="right%d" % number, log="right%d.log" % number)
        equal(right.post(report("h1", 1))[0], 200, "one server stores")
        equal(right.post(foreign("h1", 9 * 86400 * 40))[0], 200, "what is too old of a sender without counters is left out")
        before = samples(right, "h1")
        put(DAYS)
        wrong = shimmed(lambda: Server(*store, data="wrong%d" % number, log="wrong%d.log" % number))
        waits(wrong, report("h1", 2), "the other, 400 days ahead, has it come again")
        left = house.ask("SELECT count() FROM samples WHERE samples > 0", "shared%d" % number)
        equal(left, "1\n", "and nothing was deleted")
        equal(samples(right, "h1"), before, "the first server's answer is the same")
        equal((before["samples"], before["lost_by"].get("too_old"), before["lost_by"]["unexplained"]), (10, 4, 0), "with what was left out")
        put(0)
        wrong.stop()
        right.stop()


run(behind, ahead, fleet, shared)
