# SPDX-License-Identifier: Apache-2.0
"""/diff, /sandwich, /timeline, zoom and the limits of a query, beside what the test itself sent: a load made of random
samples, the same load twice and one with a function made slower; and a fleet with its own tally."""
import collections
import json
import os
import random
import select
import socket
import subprocess
import sys
import time

from harness import BUILD, WORK, Server, check, end, equal, fleet_tool, note, run, start, wait_for

sys.path.insert(0, "tests/tools")
sys.path.insert(0, "tests/tools/fleet")
from otlp_writer import Request  # noqa: E402
import fleet_check  # noqa: E402

PERIOD = 10101010
MINUTE = 60000
NOW = int(time.time() * 1000) // MINUTE * MINUTE - 5 * MINUTE
# Three windows of 30 minutes: before, the same again, and with "slow" 20 % slower.
WINDOWS = [(NOW - 30 * MINUTE * (3 - i), NOW - 30 * MINUTE * (2 - i)) for i in range(3)]
FUNCTIONS = ["slow"] + ["f%d" % i for i in range(40)]


def poisson(chance, mean):
    return sum(1 for _ in range(int(mean * 8)) if chance.random() < 1 / 8)


def load(tally):
    """Counts per minute and stack, and the requests that carry them. A function's weight varies from minute to minute,
    as programs do."""
    chance = random.Random(20)
    for window, (begin, until) in enumerate(WINDOWS):
        made = Request(BUILD)
        for minute in range(begin, until, MINUTE):
            resource = made.resource(**{"host.name": "h", "farflame.process": "app"})
            profile = made.profile(resource, time_ns=minute * 1000000)
            for number, name in enumerate(FUNCTIONS):
                mean = 120 if name == "slow" else 120 / (1 + number)
                mean *= 1.2 if name == "slow" and window == 2 else 1
                if number % 5 == 2:
                    mean *= chance.uniform(0.5, 1.5)
                caller = "even" if number % 2 else "odd"
                count = poisson(chance, mean)
                if not count:
                    continue
                tally[minute, name] += count
                frames = [("cpython", name, "/a.py", 1), ("cpython", caller, "/a.py", 2), ("cpython", "main", "/a.py", 3)]
                made.sample(profile, frames, [count, count * PERIOD], thread="t%d" % (number % 3))
        yield made.bytes()


def sum_of(tally, window, name=None):
    return sum(count for (minute, function), count in tally.items()
               if WINDOWS[window][0] <= minute < WINDOWS[window][1] and (name is None or function == name))


def diff(server, base, compared, **more):
    parameters = {"base.from": WINDOWS[base][0], "base.until": WINDOWS[base][1], "from": WINDOWS[compared][0],
                  "until": WINDOWS[compared][1], **more}
    return server.json("/api/v1/diff", **parameters)


def comparisons(server, tally):
    for norm in ("per_second", "share", "raw"):
        same = diff(server, 0, 1, norm=norm, value="samples")
        equal([f["name"] for f in same["functions"] if f["recorded"] or f["sustained"] == "yes"], [],
              norm + ": the same load shows no change")
        check(same["statistics"]["tested"] >= 30 and not same["statistics"]["too_short"], "of functions tested", same["statistics"])
        slower = diff(server, 1, 2, norm=norm, value="samples")
        found = [f for f in slower["functions"] if f["recorded"] and f["sustained"] == "yes"]
        check(found and found[0]["name"] == "slow" and len(found) <= 2, norm + ": the slower function is found, first",
              json.dumps(found)[:1500])
        check(found and found[0]["ci_low"] <= 0.25 and found[0]["ci_high"] >= 0.1 and found[0]["ci_low"] > 0,
              "by about 20 %", found[:1])
    for function in slower["functions"]:
        if function["name"] in FUNCTIONS:
            want = sum_of(tally, 2, function["name"]), sum_of(tally, 1, function["name"])
            if (function["self"], function["base_self"]) != want or (function["samples"], function["base_samples"]) != want:
                return check(False, "both sides of every function", "%r, want %r" % (function, want))
    nodes = slower["nodes"]
    equal([sum(nodes["self"]), nodes["total"][0], slower["accounting"]["samples"]], [sum_of(tally, 2)] * 3, "the compared side")
    equal([sum(nodes["base_self"]), nodes["base_total"][0], slower["base"]["accounting"]["samples"]], [sum_of(tally, 1)] * 3,
          "the base side")
    equal(len({len(column) for column in nodes.values()}), 1, "columns of equal length")
    totals = diff(server, 1, 2, sort="total", value="samples", norm="raw")["functions"]
    by_name = {f["name"]: f for f in totals}
    equal((by_name["main"]["total"], by_name["main"]["base_total"], by_name["main"]["self"]),
          (sum_of(tally, 2), sum_of(tally, 1), 0), "totals")
    cut = diff(server, 1, 2, max_nodes=6, value="samples")
    values = [sum(v for v, kind in zip(cut["nodes"][column], cut["nodes"]["kind"]) if cut["kinds"][kind] == "cut")
              for column in ("total", "base_total")]
    equal([cut["accounting"]["cut"], cut["base"]["accounting"]["cut"]], values, "what is cut is counted on both sides")
    check(values[0] and len(cut["nodes"]["name"]) <= 6 and sum(cut["nodes"]["base_self"]) == sum_of(tally, 1),
          "and nothing is lost by it", values)
    folded = server.get("/api/v1/diff", **{"base.from": WINDOWS[1][0], "base.until": WINDOWS[1][1], "from": WINDOWS[2][0],
                        "until": WINDOWS[2][1], "norm": "raw", "value": "samples", "format": "folded"})[2].decode()
    got = {}
    for line in folded.splitlines():
        stack, base, compared = line.rsplit(" ", 2)
        got[stack.split(";")[-1]] = (int(base), int(compared))
    equal(got, {name: (sum_of(tally, 1, name), sum_of(tally, 2, name)) for name in FUNCTIONS if
                sum_of(tally, 1, name) + sum_of(tally, 2, name)}, "folded: two values")
    text = server.get("/api/v1/diff", **{"base.from": WINDOWS[1][0], "base.until": WINDOWS[1][1], "from": WINDOWS[2][0],
                      "until": WINDOWS[2][1], "format": "md"})[2].decode()
    check("`slow (/a.py)`" in text and "More than before" in text, "Markdown names it", text)


def lines(server, tally):
    begin, until = WINDOWS[0][0], WINDOWS[2][1]
    for step in (1, 10, 60):
        answer = server.json("/api/v1/timeline", from_=begin, until=until, step="%dm" % step, value="samples")
        want = collections.Counter()
        for (minute, _), count in tally.items():
            want[minute // (step * MINUTE) * step * MINUTE] += count
        equal({at: samples for at, value, samples in answer["series"][0]["points"] if samples}, dict(want),
              "every step of %d minutes" % step)
        check(answer["step_ms"] == step * MINUTE and all(at % answer["step_ms"] == 0 for at, _, _ in
              answer["series"][0]["points"]), "aligned")
    by_thread = server.json("/api/v1/timeline", from_=begin, until=until, group_by="thread", limit=2, step="1h", value="samples")
    equal((len(by_thread["series"]), by_thread["other"]["series"]), (2, 1), "two threads and the other one")
    equal(sum(s["samples"] for s in by_thread["series"]) + by_thread["other"]["samples"], sum(tally.values()), "nothing lost")
    focused = server.json("/api/v1/timeline", from_=begin, until=until, focus="^slow$", step="1m", value="samples")
    equal({at: samples for at, _, samples in focused["series"][0]["points"] if samples},
          {minute: count for (minute, name), count in tally.items() if name == "slow"}, "of one function")
    for wrong in ({"step": "90s"}, {"step": "0m"}, {"step": "1"}, {"step": "1m", "from_": "now-30d"}, {"limit": 0}):
        equal(server.get("/api/v1/timeline", **wrong)[0], 422, "refused: %s" % wrong)


def reported_time():
    """Two hosts: one reports all of a minute and a third of the next, one begins in the middle of the first."""
    server = Server(data="reported")
    begin = NOW - 10 * MINUTE
    agents = {"whole": ("0a" * 16, range(0, 8)), "late": ("0b" * 16, range(3, 7))}
    for host, (agent, reports) in agents.items():
        taken = lost = 0
        for seq, part in enumerate(reports, 1):
            made = Request(BUILD)
            time_ns = (begin + part * 10000) * 1000000
            lost += 5 if (host, part) == ("whole", 6) else 0
            taken += 10 + (5 if (host, part) == ("whole", 6) else 0)
            for kind, unit, value in (("on-cpu", "nanoseconds", PERIOD), ("page-fault", "bytes", 4096)):
                profile = made.profile(made.resource(**{"host.name": host, "farflame.process": "p"}), type_=kind, unit=unit, time_ns=time_ns)
                made.sample(profile, [("cpython", "f", "/a.py", 1)], [10, 10 * value])
            made.counters(host, agent, seq, seq - 1, taken, time_ns=time_ns, ring_full=lost).duration_nano = 10 * 10**9
            equal(server.post(made.bytes())[0], 200, "taken")
    span = {"from_": begin, "until": begin + 2 * MINUTE}
    for kind in ("on-cpu", "page-fault"):
        answer = server.json("/api/v1/timeline", type=kind, step="1m", group_by="host,process", **span)
        lost = 5 if kind == "on-cpu" else 0
        equal(answer.get("reported"), [[begin, 60000, 0], [begin + MINUTE, 20000, lost]], kind + ": each minute says how much of it was reported")
        equal({series["labels"]["host"]: series.get("reported") for series in answer["series"]},
              {"whole": [[begin, 60000], [begin + MINUTE, 20000]], "late": [[begin, 30000], [begin + MINUTE, 10000]]},
              kind + ": and so does each host's line")
        by_name = server.json("/api/v1/timeline", type=kind, step="1m", focus="^f$", group_by="host", **span)
        equal([by_name.get("reported"), {s["labels"]["host"]: s.get("reported") for s in by_name["series"]}],
              [answer.get("reported"), {s["labels"]["host"]: s.get("reported") for s in answer["series"]}],
              kind + ": the same where stacks are asked for")
        for path in ("flamegraph", "top", "timeline"):
            whole, late = (server.json("/api/v1/" + path, type=kind, match=match, **span)["accounting"].get("reported_ms")
                           for match in ("", '{host="late"}'))
            equal((whole, late), (80000, 40000), "%s, %s: so much of the range was reported" % (kind, path))
    whole = server.json("/api/v1/timeline", type="on-cpu", step="2m", from_=begin // (2 * MINUTE) * 2 * MINUTE, until=begin + 4 * MINUTE)
    equal(sum(reported for _, reported, _ in whole.get("reported", [])), 80000, "longer steps have the sum")
    server.stop()


def said(server, path, **parameters):
    status, _, body = server.get("/api/v1/" + path, **parameters)
    try:
        answer = json.loads(body)
    except ValueError:
        return status, body.decode()
    return status, answer["error"]["message"] if "error" in answer else answer


def unknown():
    """What is asked for and was never there is named, with what there is; what is there at another time says when."""
    server = Server(data="unknown")
    status, answer = said(server, "flamegraph", match='{host="h"}')
    equal((status, answer["accounting"].get("nothing")), (200, None), "a server without any data knows nothing either")
    begin = NOW - 3 * 60 * MINUTE
    for minute in (0, 7, 130):
        made = Request(BUILD)
        for host, process in (("web1", "api"), ("web2", "db")):
            resource = made.resource(**{"host.name": host, "farflame.process": process, "service.name": process, "farflame.label.zone": "z1"})
            made.sample(made.profile(resource, time_ns=(begin + minute * MINUTE) * 10**6), [("cpython", "f", "/a.py", 1)], [3, 3 * PERIOD], thread="t")
        equal(server.post(made.bytes())[0], 200, "taken")
    span = {"from_": begin, "until": NOW}
    for path in ("flamegraph", "top", "timeline", "hotspots", "diff"):
        for match, what in (('{host="doesnotexist"}', "no such host as 'doesnotexist'; known are: web1, web2"),
                            ('{process="nginx"}', "no such process as 'nginx'; known are: api, db"),
                            ('{host="web1",service="nope"}', "no such service as 'nope'; known are: api, db"),
                            ('{zone="z9"}', "no such zone as 'z9'; known are: z1"),
                            ('{shelf="1"}', "no such label as 'shelf'; known are: host, process, service, thread, zone"),
                            ('{shelf=~"1.*"}', "no such label as 'shelf'")):
            status, answer = said(server, path, match=match, **span)
            check(status == 404 and what in str(answer), "%s, %s: is not known" % (path, match), (status, answer))
        if path != "diff":
            status, answer = said(server, path, group_by="shelf", **span)
            check(status == 404 and "parameter 'group_by': no such label as 'shelf'" in str(answer), path + ": nor a label to group by", (status, answer))
        for asked in ({"match": '{host="web1",process="db"}'}, {"match": '{zone!="z1"}'}, {"match": '{thread="nobody"}'}, {"match": '{container=""}'},
                      {"group_by": "container,zone,thread" if path != "diff" else "process"}):
            status, answer = said(server, path, **asked, **span)
            equal(status, 200, "%s, %s: known, if not together" % (path, asked))
    known, unknown = (begin, begin + 131 * MINUTE), (None, None)
    for match, host, times in (("", "all", known), ('{host="web1"}', "one", known), ('{thread="t"}', "a thread", unknown),
                               ('{pid="1"}', "a process that there never was", unknown)):
        for path in ("flamegraph", "timeline"):
            accounting = said(server, path, match=match, from_=NOW - MINUTE, until=NOW)[1]["accounting"]
            equal((accounting["samples"], accounting.get("data_from"), accounting.get("data_until"), accounting.get("nothing")),
                  (0, *times, None), "%s: a range without data says from when to when there are, as far as sums tell, of %s" % (path, host))
    for kind, how in (("mem-alloc", "; farflame-agent takes it with --profile on-cpu,mem-alloc"), ("rdma", "")):
        for path in ("flamegraph", "timeline"):
            status, answer = said(server, path, type=kind, **span)
            equal((status, answer["accounting"].get("nothing")), (200, "no %s was ever recorded here; recorded are: on-cpu%s" % (kind, how)),
                  "%s: a type that nobody records, and what takes it" % path)
    status, answer = said(server, "flamegraph", type="cpu", **span)
    check(status == 422 and "such as on-cpu, off-cpu," in answer and answer.endswith("rdma"), "no type: which there are", (status, answer))
    server.stop()


def small_load():
    tally = collections.Counter()
    server = Server(data="load")
    for body in load(tally):
        equal(server.post(body)[0], 200, "a window is taken")
    comparisons(server, tally)
    lines(server, tally)
    equal(server.get("/api/v1/diff", **{"base.type": "mem-alloc"})[0], 422, "types of other units are not compared")
    equal(server.get("/api/v1/diff", **{"base.from": "now", "base.until": "now-1h"})[0], 422, "base ends before it begins")
    equal(server.get("/api/v1/diff", norm="percent")[0], 422, "an unknown norm")


# --- a fleet ---

def sandwiches(server, chance):
    for value in ("value", "samples"):
        top = server.json("/api/v1/top", from_="now-4h", limit=1000000, value=value)
        for row in top["functions"][:2] + chance.sample(top["functions"], 4):
            answer = server.json("/api/v1/sandwich", from_="now-4h", function=row["name"], module=row["module"], value=value,
                                 max_nodes=50)
            good = answer["functions"] == [row] and all(
                sum(answer[tree]["nodes"]["self"]) == answer[tree]["nodes"]["total"][0] == row["total"] and
                len(answer[tree]["nodes"]["name"]) <= 50 for tree in ("callers", "callees"))
            check(good, "%s: its row of /top, both trees its total" % row["name"], json.dumps(answer)[:600])
    equal(server.get("/api/v1/sandwich", function="(", function_match="regex")[0], 422, "not a regular expression")
    equal(server.get("/api/v1/sandwich")[0], 422, "no function")
    nothing = server.json("/api/v1/sandwich", function="no such function")
    equal((nothing["functions"], nothing["total"]), ([], 0), "nobody's callers")


def path_to(graph, node):
    names = []
    while node:
        names.append(graph["names"][graph["nodes"]["name"][node]].replace("\\", "\\\\").replace(";", "\\;"))
        node = graph["nodes"]["parent"][node]
    return ";".join(reversed(names))


def zooms(server, invert):
    """Every node above a cut, asked for as root, shows what was hidden."""
    def graph(**more):
        return server.json("/api/v1/flamegraph", from_="now-4h", until=until, group_by="region,process", invert=invert, **more)

    until = "now"
    whole = graph(max_nodes=60)
    until = whole["until"]
    nodes = whole["nodes"]
    cut = {nodes["parent"][i] for i, kind in enumerate(nodes["kind"]) if whole["kinds"][kind] == "cut"} - {0}
    for parent in sorted(cut)[:6]:
        part = graph(max_nodes=1000000, root=path_to(whole, parent))
        hidden = sum(1 for kind in part["nodes"]["kind"] if part["kinds"][kind] == "cut")
        equal((part["nodes"]["total"][0], sum(part["nodes"]["self"]), hidden, part["accounting"]["cut"]),
              (nodes["total"][parent], nodes["total"][parent], 0, 0), "zoom to node %d of the graph, invert=%d" % (parent, invert))


def fleet_lines(server, tally):
    """Time lines by labels beside the fleet's own count."""
    groups = ["region", "service", "host", "process"]
    counted = collections.Counter()
    for minute in sorted({report["minute"] for report in tally.reports}):
        question = fleet_check.Question("on-cpu", (), groups, minute, minute + MINUTE, "samples")
        for stack, (least, most) in tally.folded(question)[0].items():
            counted[tuple(stack.split(";")[:len(groups)]), minute] += least
    for chosen, step in ((["region"], 30), (["service", "host"], 60), (["process"], 1)):
        wanted = collections.Counter()
        for (values, minute), count in counted.items():
            wanted[tuple(values[groups.index(g)] for g in chosen), minute // (step * MINUTE) * step * MINUTE] += count
        answer = server.json("/api/v1/timeline", from_=tally.from_ms, until=tally.until_ms, group_by=",".join(chosen),
                             step="%dm" % step, limit=1000, value="samples")
        got = {(tuple(fleet_check.shown(s["labels"][g] or "[no %s]" % g) for g in chosen), at): samples
               for s in answer["series"] for at, _, samples in s["points"] if samples}
        check(got == dict(wanted), "time lines by %s equal the tally" % ",".join(chosen),
              "%d points, want %d; %s" % (len(got), len(wanted), list((set(got.items()) ^ set(wanted.items())))[:5]))


def hosts_compared(server):
    """Hosts of one application against others that run another one."""
    rows = {v["value"]: v["samples"] for v in server.json("/api/v1/labels/host", from_="now-4h")["values"]}
    names = sorted(rows)
    even, odd = names[::2], names[1::2]
    answer = server.json("/api/v1/diff", from_="now-4h", norm="share", value="samples", **{
        "base.match": '{host=~"%s"}' % "|".join(even), "match": '{host=~"%s"}' % "|".join(odd)})
    equal((answer["statistics"]["hosts"], answer["hosts_joined"], answer["hosts_left"]), (0, [], []),
          "no host is on both sides: they are compared as they are")
    equal((answer["base"]["accounting"]["samples"], answer["accounting"]["samples"]),
          (sum(rows[h] for h in even), sum(rows[h] for h in odd)), "both sides have their hosts' samples")
    check(answer["base"]["accounting"]["hosts"] == len(even) and answer["accounting"]["hosts"] == len(odd), "and hosts")


def counter(server, name):
    for line in server.get("/metrics")[2].decode().splitlines():
        if line.startswith("farflame_server_" + name + " "):
            return int(line.split()[-1])
    return -1


SLOW = "/api/v1/diff?from=now-2h&until=now&base.from=now-2h&base.until=now&group_by=host,process,thread&max_nodes=1000000"


def leave(server):
    """A client that goes away: its query ends long before it would have."""
    begin = time.monotonic()
    equal(server.get(SLOW, timeout=120)[0], 200, "a long query")
    whole = time.monotonic() - begin
    gone = counter(server, "queries_gone_total")
    client = socket.create_connection(("127.0.0.1", server.port))
    client.sendall(("GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % SLOW).encode())
    time.sleep(min(0.1, whole / 10))
    client.close()
    begin = time.monotonic()
    wait_for(lambda: counter(server, "queries_gone_total") > gone, 60, 0.01)
    note("a query of %.2f s, noticed %.3f s after its client left" % (whole, time.monotonic() - begin))
    equal(counter(server, "queries_gone_total"), gone + 1, "its query is given up")


def limits(server):
    """Each limit has its sentence; the server goes on."""
    arguments = list(server.arguments)
    for option, value in (("--query-time", "1ms"), ("--query-memory", "1M"), ("--query-rows", "1")):
        server.stop()
        server.arguments = arguments + [option, value]
        server.start()
        paths = [SLOW]
        cut = "/api/v1/flamegraph?from=now-4h&group_by=host,thread"
        if option != "--query-memory":
            paths += [cut, "/api/v1/top?from=now-4h"]
        else:
            accounting = server.json(cut)["accounting"]
            check(0 < accounting["cut_by_memory"] <= accounting["cut"] < accounting["value"],
                  "little memory: the heaviest stacks, and what was cut", accounting)
        for path in paths:
            status, _, body = server.get(path)
            check(status == 422 and b"narrow" in body, "%s %s: %s" % (option, value, path[:24]), "%d %s" % (status, body[:300]))
        check(counter(server, "queries_limited_total") >= len(paths), "counted")
        equal(server.get("/readyz")[0], 200, "the server serves on")
    server.stop()
    server.arguments = arguments + ["--queries", "1"]
    server.start()
    clients = []
    for _ in range(40):
        client = socket.create_connection(("127.0.0.1", server.port))
        client.sendall(("GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % SLOW).encode())
        clients.append(client)
    waiting, refused, deadline = list(clients), 0, time.monotonic() + 60
    while waiting and refused < 5 and time.monotonic() < deadline:
        for client in select.select(waiting, [], [], 1)[0]:
            waiting.remove(client)
            answer = client.recv(4096).decode("latin-1")
            refused += answer.startswith("HTTP/1.1 503") and "retry-after" in answer.lower()
    check(refused >= 5, "more queries than may wait are told to come again", refused)
    equal(server.get("/readyz")[0], 200, "other requests are answered meanwhile")
    for client in clients:
        client.close()
    server.stop()
    server.arguments = arguments
    server.start()


def fleet_of_some():
    chance = random.Random(7)
    server = Server(data="fleet")
    path = os.path.join(WORK, "tally")
    sending = start([fleet_tool(), "--server", server.url, "--tally", path, "--agents", "10", "--interval", "0ms",
                     "--reports", "100", "--samples", "100", "--stacks", "1000", "--span", "2h"], "fleet.log",
                    stdout=subprocess.PIPE)
    said = json.loads(sending.stdout.read() or "{}")
    status, _ = end(sending, 120)
    equal((status, said.get("acknowledged")), (0, 1000), "the fleet has sent")
    sandwiches(server, chance)
    zooms(server, 0)
    zooms(server, 1)
    hosts_compared(server)
    fleet_lines(server, fleet_check.Tally(path))
    leave(server)
    limits(server)


if __name__ == "__main__":
    run(reported_time, unknown, small_load, fleet_of_some)
