# SPDX-License-Identifier: Apache-2.0
"""One suite for both stores: a server that keeps samples in SQLite and one that keeps them in ClickHouse get the same
requests and give the same answers, byte by byte. ALL=1 asks every question."""
import os
import random
import re
import subprocess
import sys
import time
import urllib.parse

from harness import BUILD, Server, check, equal, note, run, skip_all, wait_for

sys.path.insert(0, "tests/tools")
import clickhouse  # noqa: E402
from otlp_writer import Request  # noqa: E402

PERIOD = 10101010
MINUTE = 60 * 10**9
HOUR = 3600 * 10**9
NOW = time.time_ns() // (60 * 10**9) * (60 * 10**9)
TIMES = [NOW - 20 * 10**9, NOW - 90 * 10**9, NOW - 2 * HOUR, NOW - 26 * HOUR, NOW - 50 * HOUR]
TYPES = [("on-cpu", "nanoseconds"), ("off-cpu", "nanoseconds"), ("mem-alloc", "bytes")]


def frames(made, number):
    """A stack that follows from its number: native and kernel frames, some named by the sender, some anonymous."""
    stack = [("native", made.mapping("lib%d.so" % (number % 3), "%040x" % (number % 3 + 1)), 0x1000 + 16 * (number * i % 37))
             for i in range(1, 3 + number % 5)]
    if number % 4 == 1:
        stack.insert(0, ("kernel", made.mapping("[kernel]", "%040x" % 99, "_text"), 0x500 + number))
    if number % 4 == 2:
        stack += [("cpython", "handler_%d" % number, "app/ä;%d.py" % number, number), ("anon", 0x10)]
    if number % 4 == 3:
        stack += [("cpython", "handler_%d" % number, "app.py", number), ("runtime",) + stack[0][1:], stack[0]]
    return stack


class Agent:
    """Counts what it takes and loses, cumulative, as the agent does."""

    def __init__(self, host, generator, acknowledged=0):
        self.host, self.id = host, "%032x" % generator.getrandbits(128)
        self.seq, self.acknowledged, self.taken, self.full = 0, acknowledged, 1000 if acknowledged else 0, 0
        self.generator = generator

    def report(self, time_ns, loses=0):
        made, random_ = Request(BUILD), self.generator
        for process in random_.sample(["api", "db", "web", "job'\\%"], 2):
            labels = {"host.name": self.host, "farflame.process": process, "farflame.label.zone": "z%d" % (len(process) % 2)}
            if process != "db":
                labels["service.name"] = "svc-" + process
            resource = made.resource(**labels)
            for type_, unit in TYPES:
                profile = made.profile(resource, type_, unit, time_ns=time_ns, profile_id=random_.randbytes(16))
                for _ in range(random_.randint(1, 9)):
                    count = random_.randint(1, 4)
                    made.sample(profile, frames(made, random_.randint(1, 40)), [count, count * PERIOD],
                                thread=random_.choice(["", "worker", "main'", "gc\\"]),
                                incomplete=random_.choice(["", "", "the sentence why"]))
                    self.taken += count
        self.full += loses
        self.taken += loses
        self.seq += 1
        made.counters(self.host, self.id, self.seq, self.acknowledged, self.taken, time_ns=time_ns,
                      stacks={"complete": self.seq}, ring_full=self.full,
                      more={"off-cpu.exact_ns": 1000 * self.seq, "off-cpu.covered_ns": 900 * self.seq,
                            "run-queue.exact_ns": 7 * self.seq, "run-queue.covered_ns": 6 * self.seq})
        self.acknowledged = self.seq
        return made.bytes()


def foreign(time_ns, with_id):
    """A sender that counts nothing and gives no id."""
    made = Request(BUILD)
    resource = made.resource(**{"service.name": "foreign", "host.name": "elsewhere"})
    profile = made.profile(resource, "samples", "count", scope="otel", time_ns=time_ns)
    if not with_id:
        profile.profile_id = b""
    for number in (3, 6, 9):
        made.sample(profile, frames(made, number), [number])
    return made.bytes()


def requests():
    """Several hosts, days, restarts of agents; late ones, repeated ones, one twice in one request."""
    generator = random.Random(4)
    agents = [Agent("web%d" % i, generator) for i in range(3)] + [Agent("old", generator, acknowledged=7)]
    bodies = []
    for round_, time_ns in enumerate(reversed(TIMES)):
        for agent in agents:
            bodies.append(agent.report(time_ns, loses=agent.seq % 3))
        if round_ == 2:
            agents[0] = Agent("web0", generator)
    bodies.append(agents[1].report(TIMES[3] + HOUR, loses=2))
    bodies += [bodies[2], bodies[9], bodies[-1], foreign(TIMES[0], True), foreign(TIMES[2], False)]
    twice = Request(BUILD)
    resource = twice.resource(**{"host.name": "twice", "farflame.process": "p"})
    for _ in range(2):
        twice.sample(twice.profile(resource, time_ns=TIMES[1], profile_id=b"twicetwicetwice!"), frames(twice, 5), [1, PERIOD])
    return bodies + [twice.bytes()]


def questions():
    """Paths that have an answer with an order. Ranges are of whole minutes, which is what ClickHouse has; SQLite knows
    the newest by the second."""
    ranges = [(NOW - 51 * HOUR, NOW + 60 * 10**9), (TIMES[3] - HOUR // 2, TIMES[3] + 2 * HOUR), (TIMES[1], TIMES[0] + 1),
              (TIMES[2], TIMES[2] + 1), (NOW - 300 * HOUR, NOW - 200 * HOUR)]
    matches = ["", '{service="svc-api"}', '{host=~"web[01]"}', '{host="web1",thread=~"w.*|gc.*"}', '{thread!="worker"}',
               '{process="job\'\\\\%"}', '{zone="z1",service!~"svc.*"}', '{host="nobody"}']
    for number, (from_, until) in enumerate(ranges):
        span = {"from": from_ // MINUTE * 60000, "until": -(-until // MINUTE) * 60000}
        for match in matches:
            asked = dict(span, match=match) if match else dict(span)
            for type_, _ in TYPES if number < 2 else TYPES[:1]:
                yield "/api/v1/flamegraph", dict(asked, type=type_, max_nodes=100000)
            yield "/api/v1/flamegraph", dict(asked, type="on-cpu", format="folded", group_by="host,service,thread", value="samples")
            yield "/api/v1/top", dict(asked, type="on-cpu")
            yield "/api/v1/hotspots", dict(asked, type="on-cpu", step="1h", processes=20, top=50)
            yield "/api/v1/types", asked
            yield "/api/v1/labels", asked
            for label in ("thread", "host", "service", "zone", "none"):
                yield "/api/v1/labels/" + label, asked
            if "thread" not in match:
                yield "/api/v1/timeline", dict(asked, type="on-cpu", group_by="service", step="60s" if number == 2 else "1h")
                yield "/api/v1/heatmap", dict(asked, type="on-cpu", by="function", column="60s" if number == 2 else "1h")
        yield "/api/v1/flamegraph", dict(span, type="on-cpu", max_nodes=5)
        yield "/api/v1/flamegraph", dict(span, type="on-cpu", hide_runtime="false")
        yield "/api/v1/flamegraph", dict(span, type="on-cpu", invert="true", focus="lib1", hide="handler")
    yield "/api/v1/agents", {}


def sort_reasons(text):
    """Members of an object have no order."""
    return re.sub(r'"lost_by":\{([^}]*)\}', lambda found: '"lost_by":{%s}' % ",".join(sorted(found[1].split(","))), text)


def without(text):
    """Nor is it known in ClickHouse how much of the time hosts reported; and why there is nothing is looked up for two
    seconds at most."""
    of_one = rb'"(?:reported|reported_ms|data_from|data_until)":(?:\d+|\[\[[^a-z{}"]*\]\])|"nothing":"[^"]*"'
    return re.sub(rb",(?:%s)|(?:%s)," % (of_one, of_one), rb"", text)


def answer(server, path, asked):
    status, headers, body = server.get(path, timeout=60, **asked)
    body = sort_reasons(body.decode()).encode()
    # Where SQLite has roll-ups it reads those; ClickHouse has minutes.
    body = re.sub(rb'"resolution_ms":\d+', rb'"resolution_ms":0', body)
    accounting = without((headers.get("Farflame-Accounting") or "").encode()).decode()
    body = without(body)
    if "nobody" in asked.get("match", "") and (status == 404 or not re.search(rb'"samples":[1-9]', accounting.encode() + body)):
        return 404, "", b"no such"
    if path == "/api/v1/agents":
        body = re.sub(rb'"(last_seen|lag_ms|skew_ms|now)":-?\d+', rb'"\1":0', body)
    return status, sort_reasons(accounting), body


def compare(servers, when, every):
    """Every so many questions, beginning anywhere: a run asks some of them, all runs all of them."""
    asked = differences = 0
    told = []
    for path, parameters in list(questions())[random.randrange(every)::every]:
        one, other = (answer(server, path, parameters) for server in servers)
        asked += one[0] in (200, 404)
        if one == other:
            continue
        differences += 1
        at = next((i for i, (a, b) in enumerate(zip(one[2], other[2])) if a != b), 0)
        told.append("%s?%s\n SQLite     %d %s …%s\n ClickHouse %d %s …%s" % (
            path, urllib.parse.urlencode(parameters), one[0], one[1], one[2][max(0, at - 60):at + 200],
            other[0], other[1], other[2][max(0, at - 60):at + 200]))
    note("%s: %d answers" % (when, asked))
    return check(asked > 250 // every and not differences, when + ": the answers are the same",
                 "%d of %d differ, such as\n%s" % (differences, asked, "\n".join(told[:4])))


def unknown_ids(servers):
    """Traces and spans that nobody sent are answered alike."""
    span = {"from": (NOW - 30 * HOUR) // 10**6, "until": NOW // 10**6 + 60000, "type": "on-cpu"}
    wrong = []
    for match in ('{trace_id="%s"}' % ("ab" * 16), '{span_id="%s"}' % ("ab" * 8)):
        for path in ("flamegraph", "top", "hotspots", "timeline", "heatmap", "types", "labels", "labels/host", "traces"):
            one, other = (answer(server, "/api/v1/" + path, dict(span, match=match)) for server in servers)
            if one != other:
                wrong.append((path, match, one, other))
        path = "/api/v1/samples?" + urllib.parse.urlencode(dict(span, match=match))
        wrong += [answered for answered in (server.request("DELETE", path)[0] for server in servers) if answered != 422]
    equal(wrong, [], "unknown ids are answered alike, and nothing is deleted by them")


def deleted(servers):
    """What is deleted is gone from both, and counted as lost."""
    for asked in ({"type": "off-cpu", "all": "true"}, {"match": '{service="svc-api"}'}, {"match": '{host="web2"}', "type": "on-cpu"}):
        span = {"from": (NOW - 30 * HOUR) // 10**6, "until": NOW // 10**6 + 60000}
        path = "/api/v1/samples?" + urllib.parse.urlencode(dict(span, **asked))
        one, other = (server.request("DELETE", path, timeout=120) for server in servers)
        equal((other[0], other[2]), (one[0], one[2]), "deleting %s is answered the same" % asked)
        check(one[0] == 200, "and with 200", one)
    compare(servers, "after deleting", 8)


def timed(servers):
    """Times of single samples: cells, and the flame graph of some of them."""
    generator = random.Random(6)
    begin = NOW - 10 * 60 * 10**9
    for number in range(12):
        made = Request(BUILD)
        labels = {"host.name": "timed%d" % (number % 2), "service.name": "timed", "farflame.process": "p%d" % (number % 3)}
        profile = made.profile(made.resource(**labels), time_ns=begin + number * 10**10, profile_id=generator.randbytes(16))
        for stack in range(4):
            times = sorted(begin + number * 10**10 + generator.randrange(10**10) for _ in range(generator.randint(1, 6)))
            made.sample(profile, frames(made, stack), [len(times), len(times) * PERIOD + stack], thread="t%d" % (stack % 2))
            profile.samples[-1].timestamps_unix_nano.extend(times)
        for body in [made.bytes()] * (1 + number % 2):
            equal([server.post(body)[0] for server in servers], [200, 200], "a report with times is taken")
    for asked in ({}, {"match": '{host="timed1"}'}, {"match": '{thread="t1"}'}, {"match": '{service="nobody"}'}):
        span = {"from": begin // 10**6 + 3000, "until": begin // 10**6 + 73000, "type": "on-cpu", **asked}
        for path, more in (("/api/v1/heatmap", {}), ("/api/v1/flamegraph", {"exact": "true"}),
                           ("/api/v1/flamegraph", {"exact": "true", "group_by": "host,thread", "format": "folded"})):
            one, other = (answer(server, path, dict(span, **more)) for server in servers)
            equal(other, one, "%s of single samples %s" % (path, asked))


def untimely(servers):
    """What is older than is kept is counted as lost by both, once, however often it is sent."""
    body = foreign(NOW - 2000 * 24 * HOUR, True)
    for _ in range(2):
        equal([server.post(body)[0] for server in servers], [200, 200], "a report that is too old is answered")
        told = [server.flamegraph(from_="now-10m", until="now")["accounting"] for server in servers]
        equal([accounting["lost_by"].get("too_old") for accounting in told], [18, 18], "and its samples are accounted as lost, once")
    equal(told[1]["taken"], told[0]["taken"], "by both alike")


def ask_by_contexts(servers, span, when):
    wrong = answered = 0
    told = []
    for match in ("", '{thread_id="7"}', '{thread_id!="7"}', '{http.route="/a"}', '{attr_http_route=~"/b.*",thread="pool"}', '{attr.db="x",host="context1"}',
                  '{thread="pool"}', '{thread_id="70"}', '{pid="42"}', '{command=~".*by 3",thread_id!="8"}', '{user=""}', '{program="told.py"}', '{program!="teller"}'):
        asked = dict(span, match=match) if match else span
        paths = [("/api/v1/flamegraph", {"group_by": names, "format": "folded", "value": "samples"})
                 for names in ("thread_id", "thread", "http.route,host", "thread,thread_id,attr.db", "attr_http_route", "pid", "command,user,thread", "started", "program")]
        paths += [("/api/v1/flamegraph", {}), ("/api/v1/top", {}), ("/api/v1/hotspots", {"step": "60s"}), ("/api/v1/heatmap", {}), ("/api/v1/types", {}),
                  ("/api/v1/labels", {}), ("/api/v1/flamegraph", {"exact": "true", "group_by": "thread_id", "format": "folded"})]
        paths += [("/api/v1/labels/" + label, {}) for label in ("thread", "thread_id", "http.route", "attr.db", "host", "pid", "command", "user", "ppid", "program")]
        for path, more in paths:
            one, other = (answer(server, path, dict(asked, **more)) for server in servers)
            answered += one[0] == 200
            if one != other:
                wrong += 1
                told.append("%s %s\n SQLite     %s\n ClickHouse %s" % (path, dict(asked, **more), one, other))
    check(answered > 100 and not wrong, "%d questions by contexts have the same answers, %s" % (answered, when), "\n".join(told[:4]))


def contexts(servers):
    """Threads' ids, attributes of samples, what their processes are: asked by, told apart, listed."""
    generator = random.Random(8)
    begin = NOW - 12 * 60 * 10**9
    for number in range(10):
        made = Request(BUILD)
        labels = {"host.name": "context%d" % (number % 2), "service.name": "told", "farflame.process": "p"}
        if number % 4: # one that nobody tells of but its id
            labels.update({"process.pid": 40 + number % 4, "process.creation.time": "2026-11-20T0%d:00:00Z" % (number % 4)})
        if number % 4 == 2:
            labels["farflame.program"] = "told.py"
        if number % 4 > 1:
            labels.update({"process.executable.path": "/bin/teller", "process.command_line": "told --by %d" % (number % 4), "process.owner": "nobody"})
        resource = made.resource(**labels)
        profile = made.profile(resource, time_ns=begin + number * 20 * 10**9, profile_id=generator.randbytes(16))
        for stack in range(6):
            told = {"thread_id": str(generator.randint(7, 9))}
            if stack % 3:
                told.update(http_route=generator.choice(["/a", "/b'\\"]), **{"db": generator.choice(["x", "y"])})
            count = generator.randint(1, 5)
            made.sample(profile, frames(made, stack), [count, count * PERIOD], thread=generator.choice(["", "pool", "main"]), **told)
            times = sorted(begin + number * 20 * 10**9 + generator.randrange(10**10) for _ in range(count))
            if stack % 2:
                profile.samples[-1].timestamps_unix_nano.extend(times)
        for body in [made.bytes()] * (1 + number % 2):
            equal([server.post(body)[0] for server in servers], [200, 200], "a report with contexts is taken")
    span = {"from": begin // MINUTE * 60000, "until": begin // MINUTE * 60000 + 300000, "type": "on-cpu"}
    ask_by_contexts(servers, span, "as sent")
    for match in ('{thread_id="7"}', '{pid="42",thread_id!="8"}', '{attr.db="x",host="context1"}', '{attr_http_route=~"/b.*"}', '{thread="nobody"}'):
        path = "/api/v1/samples?" + urllib.parse.urlencode(dict(span, match=match))
        one, other = (server.request("DELETE", path, timeout=120)[0::2] for server in servers)
        equal(other, one, "deleting %s is answered the same" % match)
        equal(one[0], 200, "and with 200")
    ask_by_contexts(servers, span, "after deleting threads")


def limited():
    """Series beyond the limit are refused alone, and their samples counted as lost, by both."""
    house = clickhouse.ClickHouse("limited")
    servers = [Server("--series-limit", "4", data="few-sqlite", log="few-sqlite.log"),
               Server("--series-limit", "4", "--store", house.store("few"), data="few", log="few.log")]
    # Each day's first ones are let in, so the order has to be the same.
    sent = [[server.post(body)[0::2] for server in servers] for body in requests()]
    check(all(one == other and one[0] == 200 for one, other in sent), "with few series each request is answered the same",
          [pair for pair in sent if pair[0] != pair[1]][:2])
    check(any(b"series-limit" in one[1] for one, _ in sent), "some profiles were refused")
    compare(servers, "with few series", 12)


def both_stores():
    house = clickhouse.ClickHouse()
    servers = [Server(data="sqlite", log="sqlite.log"),
               Server("--store", house.store("suite"), data="one", log="one.log")]
    sent = [[server.post(body)[0::2] for server in servers] for body in requests()]
    check(all(one == other and one[0] == 200 for one, other in sent), "every request is answered 200 with the same bytes",
          [pair for pair in sent if pair[0] != pair[1]][:2])
    compare(servers, "as sent", 1 if "ALL" in os.environ else 4)
    for server in servers:
        server.stop()
        server.start()
    for body in requests()[15:20]:
        equal([server.post(body)[0] for server in servers], [200, 200], "a report that comes again after a restart is taken")
    compare(servers, "after a restart, some sent again", 20)
    with open(os.path.join(house.directory, "password"), "w", encoding="utf-8") as out:
        out.write("se:c/ret\n")
    other = Server("--store", house.store("suite", "?password-file=" + out.name).replace(":se%3Ac%2Fret", ""), data="two", log="two.log")
    shown = subprocess.run(servers[1].arguments + ["--print-config"], capture_output=True, text=True, check=True).stdout
    check("farflame:***@127.0.0.1" in shown and "se%3Ac" not in shown, "--print-config shows no password", shown)
    for body in requests()[14:20]:
        equal(other.post(body)[0], 200, "another server takes a report that the first one has")
    compare([servers[0], other], "by another server", 20)
    compare(servers, "by the first one", 20)
    timed(servers)
    untimely(servers)
    contexts(servers)
    unknown_ids(servers)
    check(wait_for(lambda: servers[1].get("/api/v1/top", type="on-cpu", match='{host="nobody"}')[0] == 404, 30, 1),
          "a host that never was is said to be none here, too")
    deleted(servers)
    house_log = open(os.path.join(os.path.dirname(house.directory), "one.log"), encoding="utf-8").read()
    check("se:c" not in house_log and "se%3A" not in house_log and house_log, "the password is in no log")


if not clickhouse.PROGRAM:
    skip_all("clickhouse-server is not installed")
if __name__ == "__main__":
    run(both_stores, limited)
