# SPDX-License-Identifier: Apache-2.0
"""The promises about answers, sentence by sentence, asked over the wire as a stranger would: shapes, times,
selectors, views of the tree, cuts, accounting, refusals."""
import json
import os
import socket
import subprocess
import sys
import time
import urllib.parse

from harness import BUILD, WORK, Server, check, equal, run

sys.path.insert(0, "tests/tools")
from otlp_writer import Request  # noqa: E402

PERIOD = 10101010
LIBRARY = "00112233445566778899aabbccddeeff00112233"
KINDS = ["root", "group", "native", "inline", "kernel", "interpreter", "jit", "gpu", "unresolved", "incomplete", "cut", "idle", "runtime"]


def report(when_ns):
    """Two hosts, three processes; one of each kind of frame there is."""
    made = Request(BUILD)
    library = made.mapping("libx.so.1", LIBRARY)
    kernel = made.mapping("vmlinux", "aa" * 20, "_text")
    native = [("native", library, 0x10), ("native", library, 0x2f), ("native", library, 0xabc)]
    alpha = made.resource(**{"host.name": "one", "farflame.process": "alpha", "service.name": "shop",
                             "container.id": "c0ffee", "farflame.label.zone": "a-b"})
    profile = made.profile(alpha, time_ns=when_ns)
    made.sample(profile, native, [60, 60 * PERIOD], thread="alpha")
    made.sample(profile, [("kernel", kernel, 0x123)] + native, [10, 10 * PERIOD], thread="work;er")
    made.sample(profile, native[:1], [5, 5 * PERIOD], thread="alpha", incomplete="no frame pointer")
    beta = made.resource(**{"host.name": "one", "farflame.process": "beta"})
    profile = made.profile(beta, time_ns=when_ns)
    made.sample(profile, [("cpython", "hot;loop\n", "/srv/app.py", 7), ("cpython", "main", "/srv/app.py", 3),
                          ("native", library, 0xabc)], [20, 20 * PERIOD], thread="beta")
    made.sample(profile, [("anon", 0x7f00), ("native", library, 0xabc)], [2, 2 * PERIOD], thread="beta")
    gamma = made.resource(**{"host.name": "two", "farflame.process": "gamma"})
    profile = made.profile(gamma, time_ns=when_ns)
    made.sample(profile, native[2:], [3, 3 * PERIOD], thread="gamma")
    made.counters("one", "11" * 16, 1, 0, 97 + 4, time_ns=when_ns, ring_full=3, queue=1,
                  stacks={"complete": 90, "no_frame_pointer": 5, "invented_tomorrow": 2, "guessed": 1})
    made.counters("two", "22" * 16, 1, 0, 3, time_ns=when_ns)
    return made.bytes()


WHEN_NS = time.time_ns() // 60_000_000_000 * 60_000_000_000 - 120 * 10**9 + 5 * 10**9


def filled(data):
    server = Server(data=data)
    equal(server.post(report(WHEN_NS))[0], 200, "the report is taken")
    return server


def tree(server, **parameters):
    return server.json("/api/v1/flamegraph", **dict({"value": "samples"}, **parameters))


def paths(graph):
    """{path of names below the root: (self, total, kind)}"""
    nodes, names = graph["nodes"], graph["names"]
    found, path_of = {}, []
    for i, parent in enumerate(nodes["parent"]):
        path_of.append(() if i == 0 else path_of[parent] + (names[nodes["name"][i]],))
        found[path_of[i]] = (nodes["self"][i], nodes["total"][i], graph["kinds"][nodes["kind"][i]])
    return found


def cpus():
    server = filled("cpus")
    again = Request(BUILD)
    again.counters("one", "11" * 16, 2, 1, 101, ring_full=3, queue=1, more={"cpus": 4})
    again.counters("two", "22" * 16, 2, 1, 3, more={"cpus": 8})
    equal(server.post(again.bytes())[0], 200, "a report of both agents without samples")
    equal([server.json("/api/v1/" + path, match=match)["accounting"].get("cpus") for path in ("flamegraph", "top", "timeline")
           for match in ("", '{host="two"}')], [12, 8] * 3, "CPUs of the hosts that are chosen")
    equal([a.get("cpus") for a in server.json("/api/v1/agents")["agents"]], [4, 8], "and of each")
    server.stop()


def shape():
    server = filled("shape")
    graph = server.json("/api/v1/flamegraph")
    equal(sorted(graph), ["accounting", "files", "from", "kinds", "languages", "modules", "names", "nodes", "signatures", "type", "unit", "until"],
          "a flame graph's members")
    equal(sorted(graph["nodes"]), sorted(["name", "file", "line", "module", "parent", "self", "total", "kind"]), "columns")
    equal(len({len(column) for column in graph["nodes"].values()}), 1, "columns of equal length")
    equal(graph["kinds"], KINDS, "the kinds")
    equal((graph["type"], graph["unit"]), ("on-cpu", "nanoseconds"), "type and unit by default")
    parents = graph["nodes"]["parent"]
    check(parents[0] == -1 and all(0 <= p < i for i, p in enumerate(parents) if i), "parent before child, node 0 the root")
    equal(graph["nodes"]["total"][0], 100 * PERIOD, "the root's total")
    totals = [0] * len(parents)
    for i in reversed(range(len(parents))):
        totals[i] += graph["nodes"]["self"][i]
        if i:
            totals[parents[i]] += totals[i]
    equal(totals, graph["nodes"]["total"], "total = self + children's totals, everywhere")
    equal(sorted(graph["accounting"]), sorted(["value", "error", "samples", "taken", "lost", "lost_by", "unwind_incomplete",
                                               "incomplete_by", "nameless_value", "nameless_error", "nameless_modules", "unsymbolized", "cut", "hosts", "reported_ms", "resolution_ms"]), "the accounting's members")
    accounting = graph["accounting"]
    equal([accounting[k] for k in ("value", "samples", "taken", "lost", "unwind_incomplete", "cut", "hosts")],
          [100 * PERIOD, 100, 104, 4, 5, 0, 2], "the accounting's figures")
    equal(accounting["lost_by"], {"ring_full": 3, "queue": 1, "unexplained": 0}, "losses by reason")
    equal(accounting["incomplete_by"],
          [{"reason": "no frame pointer", "samples": 5, "modules": [{"name": "libx.so.1", "build_id": LIBRARY, "samples": 5}]}],
          "why stacks are incomplete, and where")
    equal(accounting["unsymbolized"], 100, "native frames without a name")
    kinds, nodes = graph["kinds"], graph["nodes"]
    equal(accounting["nameless_value"], sum(own for own, kind in zip(nodes["self"], nodes["kind"]) if kinds[kind] == "unresolved"),
          "what functions without names have themselves")
    check(graph["from"] % 60000 == 0 and graph["until"] % 60000 == 0, "from and until are whole minutes in unix ms")
    found = paths(graph_samples := tree(server))
    equal(graph_samples["unit"], "samples", "value=samples says its unit")
    native = ("alpha", "libx.so.1+0xabc", "libx.so.1+0x2f", "libx.so.1+0x10")
    equal(found[("alpha",)], (0, 75, "group"), "first the group")
    equal(found[native], (60, 70, "unresolved"), "then the stack, root first; module+0xaddress")
    equal(found[native + ("vmlinux+0x123",)], (10, 10, "unresolved"), "the kernel part last")
    equal(found[("alpha", "[incomplete: no frame pointer]")], (0, 5, "incomplete"), "an incomplete stack starts with the sentence")
    equal(found[("beta", "libx.so.1+0xabc", "[anon]")], (2, 2, "unresolved"), "code in anonymous memory")
    equal(found[("beta", "libx.so.1+0xabc", "main", "hot;loop\n")], (20, 20, "interpreter"), "names made on the host")
    one = graph_samples["names"].index("hot;loop\n")
    at = graph_samples["nodes"]["name"].index(one)
    equal((graph_samples["files"][graph_samples["nodes"]["file"][at]], graph_samples["nodes"]["line"][at]),
          ("/srv/app.py", 7), "file and line")
    equal({graph_samples["names"][int(number)]: language for number, language in graph_samples["languages"].items()},
          {"hot;loop\n": "Python", "main": "Python"}, "languages, as the sender told")
    check("languages" not in tree(server, match='{process="gamma"}'), "none where no frame has one")
    equal({m["build_id"] for m in graph_samples["modules"]}, {LIBRARY, "aa" * 20}, "modules by build-id")
    listings(server)
    folded(server)
    cuts(server)


def incomplete():
    """Reasons of several senders with more texts than a header should have: JSON has all, the header fewer."""
    server = Server(data="incomplete")
    made = Request(BUILD)
    resource = made.resource(**{"host.name": "one", "farflame.process": "alpha"})
    profile = made.profile(resource, time_ns=WHEN_NS)
    modules = [made.mapping("lib%s.so" % ("x" * 120 + str(i)), "%040x" % (i + 1)) for i in range(7)]
    anywhere = [("native", modules[6], 0x10)]
    for reason in range(8):
        for i, module in enumerate(modules):
            made.sample(profile, anywhere + [("native", module, 0x20)], [i + 1 + reason, 1],
                        incomplete="reason caf\u00e9 %d" % reason)
        made.sample(profile, anywhere + [("anon", 0x7f00)], [1, 1], incomplete="reason caf\u00e9 %d" % reason)
    made.sample(profile, anywhere, [1000, 1])
    equal(server.post(made.bytes())[0], 200, "the report is taken")
    accounting = tree(server)["accounting"]
    rows = accounting["incomplete_by"]
    equal([(row["reason"], row["samples"]) for row in rows],
          [("reason caf\u00e9 %d" % n, 28 + 7 * n + 1) for n in range(7, -1, -1)], "reasons, the most samples first")
    equal(sum(row["samples"] for row in rows), accounting["unwind_incomplete"], "they add up to unwind_incomplete")
    equal([(m["build_id"], m["samples"]) for m in rows[0]["modules"]],
          [("%040x" % (i + 1), i + 8) for i in (6, 5, 4, 3, 2)], "the five modules with most of them")
    status, headers, _ = server.get("/api/v1/flamegraph", format="folded", value="samples")
    header = headers["Farflame-Accounting"]
    check(status == 200 and header.isascii() and len(header) <= 6144, "a header of at most 6 KiB, in ASCII", len(header))
    for row in rows:
        del row["modules"]
    equal(json.loads(header), accounting, "with all reasons, without their modules")


def listings(server):
    equal(server.json("/api/v1/types"), {"types": [{"name": "on-cpu", "unit": "nanoseconds", "samples": 100,
                                                    "value": 100 * PERIOD}]}, "/types")
    equal({row["name"]: row["values"] for row in server.json("/api/v1/labels")["labels"]},
          {"host": 2, "process": 3, "service": 1, "container": 1, "thread": 4, "zone": 1}, "/labels")
    equal(server.json("/api/v1/labels/process"),
          {"values": [{"value": "alpha", "samples": 75}, {"value": "beta", "samples": 22},
                      {"value": "gamma", "samples": 3}]}, "/labels/process")
    equal({row["value"]: row["samples"] for row in server.json("/api/v1/labels/thread")["values"]},
          {"alpha": 65, "work;er": 10, "beta": 22, "gamma": 3}, "/labels/thread")
    equal(server.json("/api/v1/labels/nothing"), {"values": []}, "a label nobody has: no values")
    modules = server.json("/api/v1/modules")["modules"]
    for row in modules:
        check({"build_id", "name", "state", "reason", "source", "quality", "unsymbolized_share"} <= set(row),
              "/modules: the members of %s" % row["name"], row)
        check(row["state"] in ("wanted", "fetching", "converting", "symbols", "ready", "missing", "failed"),
              "and its state", row)
    shares = {row["build_id"]: row["unsymbolized_share"] for row in modules}
    equal({k: round(v, 3) for k, v in shares.items()}, {LIBRARY: 1.0, "aa" * 20: 0.1}, "shares without names")
    agents = server.json("/api/v1/agents")["agents"]
    equal(sorted(a["host"] for a in agents), ["one", "two"], "/agents")
    one = [a for a in agents if a["host"] == "one"][0]
    equal(set(one), {"host", "version", "kernel", "rate_hz", "last_seen", "taken", "lost", "lost_by", "stacks",
                     "lag_ms", "clock_jumps", "lacks"}, "members")
    equal([one[k] for k in ("version", "kernel", "rate_hz", "taken", "lost", "lost_by")],
          ["0.1.0", "6.1.0-test", 99, 101, 4, {"ring_full": 3, "queue": 1}], "figures")
    equal(one["stacks"], {"complete": 90, "no_frame_pointer": 5, "invented_tomorrow": 2, "guessed": 1},
          "stacks by how their walk ended, as the agent names them")
    equal([a["stacks"] for a in agents if a["host"] == "two"], [{}], "none of an agent that does not tell")
    check('farflame_server_agent_stacks_total{result="no_frame_pointer"} 5\n' in server.get("/metrics")[2].decode(),
          "and in /metrics")
    check(abs(one["last_seen"] - time.time() * 1000) < 60000 and 60000 < one["lag_ms"] < 300000, "times", one)
    top = server.json("/api/v1/top", value="samples")
    equal(sorted(top), ["accounting", "from", "functions", "own", "type", "unit", "until"], "/top")
    equal(set(top["functions"][0]), {"name", "file", "line", "module", "build_id", "kind", "self", "total", "self_error", "total_error"}, "its functions")
    equal(sum(f["self"] for f in top["functions"]), 100, "self times sum up to everything")
    leaf = [f for f in top["functions"] if f["name"] == "libx.so.1+0x10"][0]
    equal((leaf["self"], leaf["total"], leaf["module"], leaf["build_id"]), (65, 75, "libx.so.1", LIBRARY), "one function")
    empty = server.json("/api/v1/flamegraph", type="off-cpu")
    equal((empty["nodes"]["total"], empty["accounting"]["taken"], empty["accounting"]["hosts"]), ([0], 0, 0),
          "a type without samples: the root alone")


def folded(server):
    status, headers, body = server.get("/api/v1/flamegraph", format="folded", value="samples")
    lines = dict(line.rsplit(" ", 1) for line in body.decode().splitlines())
    equal(lines, {
        "alpha;libx.so.1+0xabc;libx.so.1+0x2f;libx.so.1+0x10": "60",
        "alpha;libx.so.1+0xabc;libx.so.1+0x2f;libx.so.1+0x10;vmlinux+0x123_[k]": "10",
        "alpha;[incomplete: no frame pointer];libx.so.1+0x10": "5",
        "beta;libx.so.1+0xabc;main;hot_loop_": "20",
        "beta;libx.so.1+0xabc;[anon]": "2",
        "gamma;libx.so.1+0xabc": "3"}, "folded: a line per stack, ';' and control characters replaced, _[k]")
    header = json.loads(headers["Farflame-Accounting"])
    graph = server.json("/api/v1/flamegraph", value="samples")
    equal(header, graph["accounting"], "folded carries the same accounting in its header")


def cuts(server):
    whole = tree(server)
    for limit in range(1, len(whole["names"]) + 12):
        graph = tree(server, max_nodes=limit)
        count = len(graph["nodes"]["name"])
        cut = sum(s for s, k in zip(graph["nodes"]["self"], graph["nodes"]["kind"]) if KINDS[k] == "cut")
        ok = count <= max(limit, 2) and graph["nodes"]["total"][0] == 100 and graph["accounting"]["cut"] == cut and \
            graph["accounting"]["samples"] == 100 and sum(graph["nodes"]["self"]) == 100
        if not ok:
            break
    check(ok, "max_nodes 1 and more: never above it, the total stays, the cut is counted", (limit, graph))
    equal(tree(server, max_nodes=1000000)["accounting"]["cut"], 0, "1 000 000 nodes: nothing is cut")
    names = {path[-1] for path in paths(tree(server, max_nodes=1)) if path}
    equal(names, {"[cut]"}, "the cut is a child [cut]")
    equal(sum(f["total"] for f in server.json("/api/v1/top", value="samples")["functions"] if f["name"] == "main"), 20,
          "tables are computed before any cut")


def views():
    server = filled("views")
    total = lambda **p: tree(server, **p)["nodes"]["total"][0]  # noqa: E731
    for match, want in (('{}', 100), ('', 100), ('{process="alpha"}', 75), ('{process!="alpha"}', 25),
                        ('{process=~"al.*"}', 75), ('{process=~"al"}', 0), ('{process!~"al.*|beta"}', 3),
                        ('{host="one",process="beta"}', 22), ('{thread="work;er"}', 10), ('{zone="a-b"}', 75),
                        ('{zone=""}', 25), ('{nothing!="x"}', 100), ("{process='beta',}", 22),
                        ('{container=~".+"}', 75), ('{service="shop",thread=~"a.*"}', 65)):
        equal(total(match=match), want, "match=%s" % match)
    narrow = tree(server, match='{process="beta"}')["accounting"]
    equal((narrow["samples"], narrow["taken"], narrow["lost"], narrow["hosts"], narrow["lost_by"]["unexplained"]),
          (22, 101, 4, 1, 0), "a selector narrower than a host still shows the host's losses")
    equal(tree(server, match='{host="two"}')["accounting"]["lost"], 0, "and no other host's")
    check(("one", "shop", "alpha") in paths(tree(server, group_by="host,service,thread")), "several levels of groups")
    check(("[no container]",) in paths(tree(server, group_by="container")), "a group for what has no such label")
    check(("libx.so.1+0xabc",) in paths(tree(server, group_by="")), "none at all")
    check(("work;er", "libx.so.1+0xabc") in paths(tree(server, group_by="thread")), "threads as groups")
    equal(total(focus="hot"), 20, "focus")
    equal(total(ignore="hot"), 80, "ignore")
    equal(total(focus="^main$", ignore="nothing"), 20, "both")
    equal(paths(tree(server, hide="main"))[("beta", "libx.so.1+0xabc", "hot;loop\n")], (20, 20, "interpreter"),
          "hide takes the frame out of its stack")
    frames = lambda **p: {name for path in paths(tree(server, group_by="", **p)) for name in path}  # noqa: E731
    everything = frames()
    kernel = {name for name in everything if name.startswith("vmlinux")}
    library = {name for name in everything if name.startswith("libx")}
    check(kernel and library, "the stacks have frames of both modules", everything)
    equal(frames(hide_kind="kernel"), everything - kernel, "hide_kind: whatever runs in the kernel")
    equal(frames(hide_module="^libx"), everything - library, "hide_module: frames of a module")
    markers = {name for name in everything if name.startswith("[incomplete")}
    equal(frames(only_module="^vmlinux"), kernel | markers, "only_module: no others, but what is incomplete")
    equal(total(only_module="^vmlinux"), 100, "the sum stays")
    with_kernel = sum(value[1] for path, value in paths(tree(server, group_by="", invert="1")).items()
                      if len(path) == 1 and path[0].startswith("vmlinux"))
    equal(total(build_id="AA" * 20), with_kernel, "build_id: only stacks with a frame of that build")
    equal((total(build_id="cc" * 20), total(build_id="")), (0, 100), "of one that nobody has, none; of none, all")
    equal(paths(tree(server, invert="1", group_by=""))[("vmlinux+0x123", "libx.so.1+0x10")][1], 10, "invert: leaf first")
    inverted = paths(tree(server, invert="true"))
    check(("alpha", "vmlinux+0x123") in inverted, "inverted, the groups stay first")
    below = tree(server, root="beta;libx.so.1+0xabc;main")
    equal((below["nodes"]["total"][0], below["accounting"]["samples"]), (20, 20), "root: only what lies below the path")
    equal(total(root="beta;libx.so.1+0xabc;main;hot\\;loop\n"), 20, "with an escaped ';'")
    equal(total(root="nobody"), 0, "a path that is not there: nothing")


def times():
    server = filled("times")
    second = WHEN_NS // 10**9
    minute = second // 60 * 60
    for text in (str(second), str(second * 1000), "%d.5" % second,
                 time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second)),
                 time.strftime("%Y-%m-%dT%H:%M:%S.250+02:00", time.gmtime(second + 7200)),
                 time.strftime("%Y-%m-%dT%H:%M:%S-05:30", time.gmtime(second - 19800))):
        graph = tree(server, from_=text, until=text)
        equal((graph["from"], graph["until"], graph["nodes"]["total"][0]), (minute * 1000, (minute + 60) * 1000, 100),
              "time %s: its whole minute, echoed" % text)
    graph = tree(server, from_="now-90m", until="now-60m")
    equal(graph["nodes"]["total"][0], 0, "now-90m … now-60m: nothing")
    check(30 * 60000 <= graph["until"] - graph["from"] <= 32 * 60000, "half an hour, widened")
    graph = tree(server)
    check(60 * 60000 <= graph["until"] - graph["from"] <= 62 * 60000, "the last hour by default")
    for parameter, value in (("from", "now-1"), ("from", "now-1w"), ("until", "2026-13-01T00:00:00Z"), ("until", "soon"),
                             ("from", "-5"), ("from", "99999999999999999999"), ("until", "2026-02-30T00:00:00Z")):
        status, _, body = server.get("/api/v1/flamegraph?" + urllib.parse.urlencode({parameter: value}))
        error = json.loads(body)["error"]
        check(status == 422 and parameter in error["message"], "%s=%s: 422 naming it" % (parameter, value), body)


def raw(server, text, seconds=10):
    """Bytes in, everything that comes back until the connection ends or nothing more comes."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=seconds) as client:
        client.sendall(text)
        client.settimeout(seconds)
        answer = b""
        try:
            while True:
                piece = client.recv(65536)
                if not piece:
                    break
                answer += piece
                head, _, body = answer.partition(b"\r\n\r\n")
                for line in head.split(b"\r\n"):
                    if line.lower().startswith(b"content-length:") and len(body) >= int(line.split(b":")[1]) and \
                            not head.startswith(b"HTTP/1.1 100"):
                        return answer
        except socket.timeout:
            pass
        return answer


def refusals():
    server = filled("refusals")

    def refused(want, method, path, word, body=None, headers=None):
        status, answered, got = server.request(method, path, body, headers)
        try:
            error = json.loads(got)["error"]
        except ValueError:
            error = {"message": "", "code": ""}
        check(status == want and word in error["message"] and error["code"],
              "%s %s: %d" % (method, path[:60], want), "%d %r" % (status, got[:300]))
        return answered

    for parameter in ("nonsense=1", "Type=on-cpu", "max_nodes=5&max_nodes=6", "=x"):
        refused(422, "GET", "/api/v1/flamegraph?" + parameter, parameter.split("=")[0])
    refused(422, "GET", "/api/v1/agents?from=now", "from")
    refused(422, "GET", "/api/v1/labels?group_by=host", "group_by")
    refused(422, "GET", "/api/v1/labels/" + urllib.parse.quote("a b"), "label")
    for parameter, value in (("max_nodes", "1e3"), ("max_nodes", "4294967297"), ("invert", "yes"), ("demangle", "maybe"),
                             ("match", "{a=}"), ("match", "x"), ("match", '{a="b"'), ("match", '{a=~"("}'),
                             ("focus", "("), ("ignore", "a{2000}"), ("hide", "x" * 2000), ("hide_kind", "kernel,cut"),
                             ("hide_module", "("), ("only_module", "["), ("build_id", "abc"), ("build_id", "xx" * 20), ("group_by", "host,"),
                             ("group_by", "1x"), ("value", "bytes"), ("type", "cpu"), ("format", "x")):
        refused(422, "GET", "/api/v1/flamegraph?" + urllib.parse.urlencode({parameter: value}), parameter)
    refused(422, "GET", "/api/v1/top?limit=0", "limit")
    refused(422, "GET", "/api/v1/top?sort=name", "sort")
    for path, parameter, value in (("diff", "norm", "percent"), ("diff", "noise", "none"), ("diff", "sort", "name"),
                                   ("diff", "base.type", "cpu"), ("diff", "base.from", "yesterday"),
                                   ("diff", "base.match", "{a=}"), ("diff", "base.build_id", "1"), ("diff", "format", "pprof"), ("diff", "step", "1m"),
                                   ("sandwich", "function", ""), ("sandwich", "function_match", "exact"),
                                   ("sandwich", "invert", "1"), ("timeline", "step", "61s"), ("timeline", "step", "-1m"),
                                   ("timeline", "limit", "1001"), ("timeline", "root", "a"), ("timeline", "format", "folded")):
        refused(422, "GET", "/api/v1/%s?%s" % (path, urllib.parse.urlencode({parameter: value})),
                "function" if path == "sandwich" and parameter != "invert" else parameter)
    refused(400, "GET", "/api/v1/flamegraph?match=%zz", "hexadecimal")
    refused(400, "GET", "/api/v1/flamegraph?match=%00", "NUL")
    refused(404, "GET", "/api/v1/", "nothing at")
    refused(404, "GET", "//api/v1/types", "nothing at")
    refused(404, "GET", "/api/v1/types/", "nothing at")
    refused(404, "GET", "/../../etc/passwd", "nothing at")
    for method, path, allowed in (("POST", "/api/v1/types", "GET, HEAD"), ("OPTIONS", "/api/v1/types", "GET, HEAD"),
                                  ("DELETE", "/api/v1/modules", "GET, HEAD, POST"), ("GET", "/api/v1/modules/aabb", "PUT, DELETE"),
                                  ("PATCH", "/", "GET, HEAD")):
        answered = refused(405, method, path, "possible", body=b"" if method == "POST" else None)
        equal(answered["Allow"], allowed, "%s %s: what is allowed" % (method, path))
    equal(server.get("/api/v1/%74ypes")[0], 200, "a percent-encoded letter is that letter")
    head = server.request("HEAD", "/api/v1/types")
    equal((head[0], head[2]), (200, b""), "HEAD: the headers of GET, no body")
    equal(int(head[1]["Content-Length"]), len(server.get("/api/v1/types")[2]), "with its length")
    refused(422, "GET", "/api/v1/types?match=" + "x" * 8193, "8192")
    equal(server.get("/api/v1/types?match=" + urllib.parse.quote('{process="%s"}' % ("é" * 1400)))[0], 200,
          "a selector of 8 KB when percent-encoded fits")
    for length in (20000, 300000):  # answered by libmicrohttpd itself, before there is a request
        answer = raw(server, b"GET /api/v1/types?match=" + b"x" * length + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 3)
        check(answer.startswith(b"HTTP/1.1 414 ") or answer.startswith(b"HTTP/1.1 431 "),
              "an address of %d bytes: 414" % length, answer[:400])
    otlp_head = "POST /v1development/profiles HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\n"
    body = report(WHEN_NS)
    answer = raw(server, (otlp_head + "Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body)).encode(), 2)
    check(answer.startswith(b"HTTP/1.1 100"), "Expect: 100-continue is answered", answer[:100])
    answer = raw(server, (otlp_head + "Expect: 100-continue\r\nContent-Length: 99999999\r\n\r\n").encode(), 3)
    check(answer.startswith(b"HTTP/1.1 413"), "with a length over the limit at once 413", answer[:100])
    chunked = b"".join(b"%x\r\n%s\r\n" % (len(body[i:i + 100]), body[i:i + 100]) for i in range(0, len(body), 100))
    answer = raw(server, (otlp_head + "Transfer-Encoding: chunked\r\n\r\n").encode() + chunked + b"0\r\n\r\n")
    check(answer.startswith(b"HTTP/1.1 200"), "a body in chunks is taken", answer[:200])
    equal(server.get("/healthz")[0], 200, "the server lives")


def curl_agrees():
    """What a user types."""
    server = filled("curl")
    done = subprocess.run(["curl", "-sS", "--compressed", "-G", server.url + "/api/v1/flamegraph", "--data-urlencode",
                           'match={process=~"al.*"}', "-d", "value=samples"], capture_output=True, text=True)
    equal(json.loads(done.stdout)["accounting"]["samples"], 75, "curl -G --data-urlencode")


def private():
    """What the server writes is nobody else's business."""
    filled("private").stop()
    wrong = ["%o %s" % (os.lstat(path).st_mode & 0o777, path)
             for root, _, files in os.walk(os.path.join(WORK, "private"))
             for path in [root] + [os.path.join(root, name) for name in files]
             if os.lstat(path).st_mode & 0o077]
    equal(wrong, [], "no file below --data is open to others")


if __name__ == "__main__":
    run(shape, cpus, incomplete, views, times, refusals, curl_agrees, private)
