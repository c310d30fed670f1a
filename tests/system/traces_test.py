# SPDX-License-Identifier: Apache-2.0
"""A stack finds its request: of 1 000 requests with ids of their own on several hosts and types a question by id
gets exactly the sender's stacks, from memory, from files, after a kill and with reports sent twice; thread ids and
attributes match and group; what is not kept is not found."""
import collections
import random
import sys
import time
import urllib.parse

from harness import BUILD, Server, check, equal, run, skip

sys.path.insert(0, "tests/tools")
import clickhouse  # noqa: E402
from otlp_writer import Request  # noqa: E402

DRAW = random.Random(7)
REQUESTS = 1000


def number(request, name, value):
    def fill(entry):
        entry.key_strindex = request.string(name)
        entry.value.int_value = value
    return request.once(("number", name, value), "attribute_table", fill)


def link(request, trace, span):
    def fill(entry):
        entry.trace_id, entry.span_id = trace, span
    return request.once(("link", trace, span), "link_table", fill)


def send(server, base_ns):
    """1 000 requests; returns [(type, host, trace, span, thread id, route, function, samples)]."""
    sent, bodies = [], []
    traces = [DRAW.randbytes(16) for _ in range(REQUESTS)]
    ids = [(traces[i - i % 3 % 2], DRAW.randbytes(8)) for i in range(REQUESTS)]  # every third trace has two spans
    ids[0] = ids[0][0][:15] + b"\0", ids[0][1][:7] + b"\0"  # ids are bytes, no text
    for host in range(4):
        for kind in ("on-cpu", "off-cpu"):
            request = Request(BUILD)
            resource = request.resource(**{"host.name": "h%d" % host, "farflame.process": "api"})
            profile = request.profile(resource, type_=kind, time_ns=base_ns)
            for trace, span in ids:
                if DRAW.random() < 0.5:
                    continue
                thread, route = DRAW.randrange(100, 110), DRAW.choice(["/a", "/b", "/c"])
                function, count = "handle_%d" % DRAW.randrange(40), DRAW.randrange(1, 9)
                request.sample(profile, [("cpython", function, "a.py", 3), ("cpython", "serve_" + function[-1], "a.py", 9)], [count, count * 1000], thread="worker")
                sample = profile.samples[-1]
                sample.link_index = link(request, trace, span)
                sample.attribute_indices.append(number(request, "thread.id", thread))
                sample.attribute_indices.append(request.attribute("http.route", route))
                sent.append((kind, host, trace, span, thread, route, function, count))
            bodies.append(request.bytes())
    for body in bodies:
        equal(server.post(body)[0], 200, "a report with links is taken")
    server.post(bodies[0])  # again: a duplicate
    return ids, sent


def tally(sent, kind, wanted):
    counts = collections.Counter()
    for row in sent:
        if row[0] == kind and wanted(row):
            counts[row[6]] += row[7]
    return dict(counts)


def answer(server, kind, match):
    counts = collections.Counter()
    for frames, value in server.folded(type=kind, match=match, group_by=""):
        counts[frames[-1]] += value
    return dict(counts)


def compare(server, ids, sent, text):
    wrong = 0
    for trace, span in [ids[0], *DRAW.sample(ids, 59)]:
        for kind in ("on-cpu", "off-cpu"):
            for match, wanted in (('{trace_id="%s"}' % trace.hex(), lambda row: row[2] == trace),
                                  ('{span_id="%s",host="h1"}' % span.hex().upper(),
                                   lambda row: row[3] == span and row[1] == 1)):
                wrong += answer(server, kind, match) != tally(sent, kind, wanted)
    equal(wrong, 0, text + ": each of 240 questions by id gets exactly the sender's stacks")
    equal(answer(server, "on-cpu", '{trace_id="%s"}' % ("ab" * 16)), {}, text + ": an id nobody sent has none")
    equal(answer(server, "on-cpu", '{thread_id="103"}'), tally(sent, "on-cpu", lambda row: row[4] == 103),
          text + ": a thread's id selects its stacks")
    equal(answer(server, "off-cpu", '{"http.route"="/b",http.route!~"/c"}'),
          tally(sent, "off-cpu", lambda row: row[5] == "/b"), text + ": an attribute selects its stacks")
    routes = collections.Counter()
    for frames, value in server.folded(type="on-cpu", group_by="http.route"):
        routes[frames[0]] += value
    want = collections.Counter()
    for row in sent:
        want[row[5]] += row[7] if row[0] == "on-cpu" else 0
    equal(dict(routes), dict(want), text + ": group_by=http.route")
    labels = {row["name"] for row in server.json("/api/v1/labels", from_="now-15m", until="now")["labels"]}
    check({"thread", "thread_id", "http.route"} <= labels, text + ": the labels' list has them: %s" % sorted(labels))
    values = server.json("/api/v1/labels/http.route", from_="now-15m", until="now", type="on-cpu")["values"]
    equal({row["value"]: row["samples"] for row in values}, dict(want), text + ": and their values")


def request_tally(sent, kind, wanted):
    """What /traces says, from the sender's rows: [[trace id, value, samples, all of it, spans, hosts]]."""
    found, whole = {}, collections.Counter()
    for row in sent:
        if row[0] != kind:
            continue
        whole[row[2]] += row[7] * 1000
        if not wanted(row):
            continue
        trace = found.setdefault(row[2], [0, 0, set(), set()])
        trace[0] += row[7] * 1000
        trace[1] += row[7]
        trace[2].add(row[3])
        trace[3].add("h%d" % row[1])
    rows = [[trace.hex(), value, samples, whole[trace], len(spans), sorted(hosts)]
            for trace, (value, samples, spans, hosts) in found.items()]
    return sorted(rows, key=lambda row: (-row[1], row[0]))


def shown(traces):
    return [[row["trace_id"], row["value"], row["samples"], row["trace_value"], row["spans"], sorted(row["hosts"])]
            for row in traces]


def off(rows):
    """Those whose ± is not that of samples that all weigh 1000."""
    return [row for row in rows if abs(row["error"] - 1959.964 * (row["samples"] + 1) ** 0.5) > 1]


def slowest(server, sent, text):
    asked = [({}, lambda row: True), ({"function": "handle_7"}, lambda row: row[6] == "handle_7"),
             ({"function": "_1[0-3]$", "function_match": "regex"}, lambda row: row[6][-3:] in ("_10", "_11", "_12", "_13")),
             ({"function": "handle_7", "match": '{host="h2",http.route!="/a"}'},
              lambda row: row[6] == "handle_7" and row[1] == 2 and row[5] != "/a"),
             ({"function": "serve_4"}, lambda row: row[6][-1] == "4"),
             ({"function": "handle"}, lambda row: False)]
    for kind in ("on-cpu", "off-cpu"):
        for question, wanted in asked:
            got = server.json("/api/v1/traces", type=kind, from_="now-15m", until="now", limit="1000", **question)
            want = request_tally(sent, kind, wanted)
            if "match" in question:  # the rest of a trace is not looked at
                chosen = [row for row in sent if row[1] == 2 and row[5] != "/a"]
                want = request_tally(chosen, kind, wanted)
            equal(shown(got["traces"]) == want, True, text + ": /traces of %s %s: the sender's own order and sums of %d"
                  % (kind, question, len(want)))
            equal(got["accounting"]["value"], sum(row[1] for row in want), text + ": and their accounting")
    got = server.json("/api/v1/traces", from_="now-15m", limit="3")
    want = request_tally(sent, "on-cpu", lambda row: True)
    equal((shown(got["traces"]), got["traces_left_out"], got["accounting"]["cut"]),
          (want[:3], len(want) - 3, sum(row[1] for row in want[3:])), text + ": the slowest three, the rest counted")
    equal(off([*got["traces"], got["accounting"]]), [], text + ": each with its error")
    row = got["traces"][0]
    check(row["until"] - row["from"] == 60000 and row["processes"] == ["api"] and row["threads"] == ["worker"],
          text + ": with times, process and thread", str(row))


def stacks(server, sent, text):
    functions = server.json("/api/v1/top", from_="now-15m", stack_ids="1")["functions"]
    ids = {row["name"]: row["stack"] for row in functions if row["self"]}
    equal([row["stack"] for row in functions if not row["self"]], [""] * 10, text + ": callers have no stack of their own")
    graph = server.json("/api/v1/flamegraph", from_="now-15m", stack_ids="1", group_by="")
    nodes = graph["nodes"]
    leaves = {graph["names"][name]: stack for name, stack in zip(nodes["name"], nodes["stack"]) if stack}
    equal((leaves, all(len(stack) == 16 for stack in ids.values())), (ids, True), text + ": ids of the graph are the table's")
    equal([bool(stack) for stack in nodes["stack"]], [own > 0 for own in nodes["self"]], text + ": where there is self")
    wrong = []
    for function in DRAW.sample(sorted(ids), 8):
        got = server.json("/api/v1/stacks/" + ids[function], from_="now-15m", limit="1000")
        frames = [(frame["name"], frame["file"], frame["line"], frame["kind"]) for frame in got["frames"]]
        if frames != [(function, "a.py", 3, "interpreter"), ("serve_" + function[-1], "a.py", 9, "interpreter")] or [row["type"] for row in got["types"]] != ["on-cpu", "off-cpu"]:
            wrong.append((frames, [row["type"] for row in got["types"]]))
        for row in got["types"]:
            rows = [one for one in sent if one[0] == row["type"] and one[6] == function]
            hosts = collections.Counter()
            for one in rows:
                hosts["h%d" % one[1]] += one[7]
            want = [[*one[:3], one[1], *one[4:]] for one in request_tally(rows, row["type"], lambda _: True)]
            if row["samples"] != sum(one[7] for one in rows) or row["value"] != 1000 * row["samples"] or \
                    {one["host"]: one["samples"] for one in row["processes"]} != dict(hosts) or shown(row["traces"]) != want:
                wrong.append((function, row["type"], row["samples"], len(rows)))
            if row["type"] == "on-cpu":
                wrong += off([row, row["accounting"], *row["processes"], *row["traces"]])
    check(not wrong, text + ": /stacks has the sender's frames, sums, processes and traces", str(wrong)[:2000])
    some = ids[sorted(ids)[0]]
    for path, status in ((some + "?from=now-3d&until=now-2d", 404), ("0" * 16, 404), ("12", 422), (some[:-1] + "g", 422),
                         (some + "?match={host=\"nobody\"}", 404)):
        got, _, body = server.get("/api/v1/stacks/" + path.replace('"', "%22").replace("{", "%7B").replace("}", "%7D"))
        equal(got, status, "/stacks/%s: %s" % (path, body[:90]))
    return ids


def by_id(store=()):
    server = Server(*store, data="traces", log="traces.log")
    base_ns = time.time_ns() - 120 * 10**9
    ids, sent = send(server, base_ns)
    compare(server, ids, sent, "from memory")
    slowest(server, sent, "from memory")
    known = stacks(server, sent, "from memory")
    server.kill()
    server.start()
    compare(server, ids, sent, "after a kill")
    server.stop()
    server.start()
    compare(server, ids, sent, "from files")
    slowest(server, sent, "from files")
    equal(stacks(server, sent, "from files"), known, "ids of stacks are the same after restarts")
    for path in ("traces?type=mem-inuse", "traces?function=(&function_match=regex", "traces?limit=0",
                 "top?stack_ids=1&format=csv", "flamegraph?stack_ids=1&format=svg"):
        status, _, body = server.get("/api/v1/" + path)
        equal(status, 422, "%s is refused: %s" % (path, body[:100]))
    for match in ('{trace_id="12"}', '{trace_id=~".*"}', '{span_id="%s"}' % ("x" * 16)):
        status, _, body = server.get("/api/v1/flamegraph", match=match)
        equal(status, 422, "%s is refused: %s" % (match, body[:100]))
    equal(server.get("/api/v1/labels", match='{trace_id="%s"}' % ids[0][0].hex())[0], 422, "lists know no traces")
    asked = {"type": "on-cpu", "match": '{thread_id="100"}', "from": base_ns // 10**6 - 60000, "until": base_ns // 10**6 + 120000}
    equal(server.request("DELETE", "/api/v1/samples?" + urllib.parse.urlencode(asked), timeout=120)[0], 200, "a thread is deleted")
    compare(server, ids, [row for row in sent if row[0] != "on-cpu" or row[4] != 100], "after deleting a thread")
    server.stop()
    server = Server(*(name.replace("traces", "none") for name in store), "--trace-retention", "0s", data="none", log="none.log")
    ids, sent = send(server, base_ns)
    equal(answer(server, "on-cpu", '{trace_id="%s"}' % sent[0][2].hex()), {}, "--trace-retention 0s keeps none")
    equal(server.json("/api/v1/traces", from_="now-15m")["traces"], [], "and /traces has none")
    server.stop()


def by_id_of_clickhouse():
    if not clickhouse.PROGRAM:
        return skip("clickhouse-server is not installed")
    house = clickhouse.ClickHouse()
    by_id(("--store", house.store("traces")))


if __name__ == "__main__":
    run(by_id, by_id_of_clickhouse)
