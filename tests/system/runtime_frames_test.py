# SPDX-License-Identifier: Apache-2.0
"""Frames of a language among those of its interpreter: marked ones are left out of every answer and shown on demand, and
what they cost is the next frame's. Sums are made by hand."""
import collections
import csv
import gzip
import io
import json
import os
import re
import subprocess
import sys
import time

from harness import BUILD, WORK, Server, check, equal, run

sys.path.insert(0, "tests/tools")
from otlp_writer import Request  # noqa: E402

SOURCE = "int %s(int x) { return x * %d; }\n"
OWN = ["Run_Main", "Eval_Loop", "Call_Object", "list_sort"]
# Two hosts; {stack of names, root first: samples}. list_sort is called by the innermost function, Eval_Loop of the last
# one runs no function.
HIDDEN = {("start", "outer", "inner", "list_sort"): 40, ("start", "outer", "inner"): 30, ("start", "outer", "extension"): 20,
          ("start", "outer"): 3, ("start", "Eval_Loop"): 7}
SHOWN = {("start", "Run_Main", "Eval_Loop", "outer", "Call_Object", "Eval_Loop", "inner", "list_sort"): 40,
         ("start", "Run_Main", "Eval_Loop", "outer", "Call_Object", "Eval_Loop", "inner"): 30,
         ("start", "Run_Main", "Eval_Loop", "outer", "extension"): 20,
         ("start", "Run_Main", "Eval_Loop", "outer", "Call_Object", "Eval_Loop"): 3,
         ("start", "Eval_Loop"): 7}
WHEN_NS = time.time_ns() // 60_000_000_000 * 60_000_000_000 - 120 * 10**9 + 5 * 10**9


def library(name, functions):
    """(build-id, {function: address}, path)"""
    path = os.path.join(WORK, name)
    open(path + ".c", "w").write("".join(SOURCE % (function, i + 2) for i, function in enumerate(functions)))
    subprocess.run(["cc", "-shared", "-fPIC", "-nostdlib", "-Wl,--build-id=sha1", path + ".c", "-o", path], check=True)
    symbols = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    found = {row.split()[2]: int(row.split()[0], 16) for row in symbols.splitlines()}
    text = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    return text.split("Build ID: ")[1].split()[0], found, path


class Program:
    """An interpreter that is ours, and what it runs."""

    def __init__(self):
        self.own = library("libmade-python.so", OWN)
        self.other = library("libothers.so", ["start", "extension"])

    def stacks(self, made, line):
        """Leaf first, as an agent sends them; line: at which inner is."""
        own = made.mapping("libmade-python.so", self.own[0])
        other = made.mapping("libothers.so", self.other[0])
        marked = {name: ("runtime", own, self.own[1][name]) for name in OWN}
        native = {name: ("native", own, self.own[1][name]) for name in OWN}
        native.update({name: ("native", other, self.other[1][name]) for name in ("start", "extension")})
        root = [marked["Eval_Loop"], marked["Run_Main"], native["start"]]
        call = [marked["Eval_Loop"], marked["Call_Object"]]
        inner, outer = ("cpython", "inner", "/srv/app.py", line), ("cpython", "outer", "/srv/app.py", 5)
        return [([native["list_sort"], inner, *call, outer, *root], 40), ([inner, *call, outer, *root], 30),
                ([native["extension"], outer, *root], 20), ([*call, outer, *root], 3),
                ([native["Eval_Loop"], native["start"]], 7)]

    def report(self, host, line, when_ns=WHEN_NS):
        made = Request(BUILD)
        profile = made.profile(made.resource(**{"host.name": host, "farflame.process": "app"}), time_ns=when_ns)
        for stack, count in self.stacks(made, line):
            made.sample(profile, stack, [count, count * 10], thread="t")
        return made.bytes()

    def server(self, data):
        server = Server(data=data)
        for number, host in enumerate(("one", "two")):
            equal(server.post(self.report(host, 11 + number))[0], 200, "a report is taken")
        for build_id, _, path in (self.own, self.other):
            status = server.request("PUT", "/api/v1/modules/" + build_id, open(path, "rb").read())[0]
            check(status in (200, 201), "symbols are taken", status)
        server.wait_for_names(lambda rows: any("start" in frames for frames, _ in rows) and
                              any("list_sort" in frames for frames, _ in rows))
        return server


def sums(want):
    return collections.Counter({path: 2 * count for path, count in want.items()})


def of_rows(rows):
    found = collections.Counter()
    for frames, value in rows:
        found[tuple(frames)] += value
    return found


def of_graph(graph, kinds=None):
    nodes, paths, found = graph["nodes"], [], collections.Counter()
    for i, parent in enumerate(nodes["parent"]):
        paths.append(() if i == 0 else paths[parent] + (graph["names"][nodes["name"][i]],))
        if nodes["self"][i]:
            found[paths[i]] += nodes["self"][i]
        if kinds is not None:
            kinds[paths[i]] = graph["kinds"][nodes["kind"][i]]
    return found


def of_csv(body):
    rows = list(csv.DictReader(io.StringIO(body.decode())))
    paths, found = {}, collections.Counter()
    for row in rows:
        paths[row["node"]] = paths[row["parent"]] + (row["name"],) if row["parent"] else ()
        if int(row["self"]):
            found[paths[row["node"]]] += int(row["self"])
    return found


def of_speedscope(body):
    file = json.loads(body)
    names = [frame["name"] for frame in file["shared"]["frames"]]
    stack, found, before = [], collections.Counter(), 0
    for event in file["profiles"][0]["events"]:
        if event["at"] != before:
            found[tuple(stack)] += event["at"] - before
        before = event["at"]
        if event["type"] == "O":
            stack.append(names[event["frame"]])
        else:
            stack.pop()
    return found


def of_pprof(body):
    """By protobuf's own compiler and library."""
    where = os.path.join(WORK, "pprof-python")
    os.makedirs(where, exist_ok=True)
    subprocess.run(["protoc", "--python_out=" + where, "--proto_path=schema/formats", "pprof.proto"], check=True)
    sys.path.insert(0, where)
    import pprof_pb2  # pylint: disable=import-error,import-outside-toplevel
    profile = pprof_pb2.Profile.FromString(gzip.decompress(body))
    function = {one.id: profile.string_table[one.name] for one in profile.function}
    location = {one.id: [function[line.function_id] for line in one.line] for one in profile.location}
    found = collections.Counter()
    for sample in profile.sample:
        found[tuple(reversed([name for at in sample.location_id for name in location[at]]))] += sample.value[0]
    return found


def formats():
    server = Program().server("formats")
    for hide, want in ((None, sums(HIDDEN)), ("true", sums(HIDDEN)), ("false", sums(SHOWN))):
        asked = {"group_by": "", "value": "samples", **({"hide_runtime": hide} if hide else {})}
        what = "hide_runtime=%s: " % hide
        kinds = {}
        graph = server.flamegraph(**asked)
        equal(of_graph(graph, kinds), want, what + "the graph's stacks and their samples")
        equal(of_rows(server.folded(**asked)), want, what + "folded has the same")
        answer = lambda form: server.get("/api/v1/flamegraph", format=form, **asked)[2]  # noqa: E731
        equal(of_csv(answer("csv")), want, what + "csv")
        equal(of_speedscope(answer("speedscope")), want, what + "speedscope")
        equal(of_pprof(answer("pprof")), want, what + "pprof")
        for form in ("svg", "html", "md"):
            text = answer(form).decode()
            check(hide == "false" or not re.search("Call_Object", text), what + form + " shows none of them")
            check(hide != "false" or form == "md" or "Call_Object" in text, what + form + " shows them")
        marked = {path for path, kind in kinds.items() if kind == "runtime"}
        equal({path[-1] for path in marked}, {"Run_Main", "Call_Object", "Eval_Loop"} if hide == "false" else set(), what + "their kind")
        equal(kinds[("start", "Eval_Loop")], "native", what + "one that is not marked is native")
        equal((graph["accounting"]["samples"], graph["accounting"]["unsymbolized"]), (200, 0), what + "no sample is lost")
        inverted = of_graph(server.flamegraph(invert="true", **asked))
        equal(inverted, collections.Counter({tuple(reversed(path)): count for path, count in want.items()}), what + "leaf first")
    equal(of_graph(server.flamegraph(group_by="", hide_runtime="false", hide_kind="runtime")), sums(HIDDEN), "hide_kind=runtime")


def functions(top):
    return {row["name"]: (row["self"], row["total"]) for row in top["functions"]}


def own_and_total(want):
    found = {}
    for path, count in sums(want).items():
        for name in set(path):
            own, total = found.get(name, (0, 0))
            found[name] = (own + count * (path[-1] == name), total + count)
    return found


def views():
    """The other endpoints that make names of stacks."""
    program = Program()
    server = program.server("views")
    for hide, want in (("true", HIDDEN), ("false", SHOWN)):
        asked = {"value": "samples", "hide_runtime": hide}
        what = "hide_runtime=%s: " % hide
        top = server.json("/api/v1/top", search="Call_Object|inner", **asked)
        equal(functions(top), own_and_total(want), what + "top's functions, each once over both hosts and all lines")
        equal(top["found"]["samples"], sum(count for path, count in sums(want).items() if {"Call_Object", "inner"} & set(path)),
              what + "what is searched for")
        equal(sum(top["own"]["kinds"].values()), 200, what + "by kind, in all")
        equal(top["own"]["kinds"].get("runtime", 0), 6 if hide == "false" else 0, what + "runtime's own")
        panel = server.json("/api/v1/sandwich", function="outer", **asked)
        names = set(panel["callers"]["names"]) | set(panel["callees"]["names"])
        equal(names & set(OWN), {"list_sort"} if hide == "true" else set(OWN), what + "callers and callees")
        rows = server.json("/api/v1/heatmap", by="function", sort="total", **asked)["functions"]
        equal({row["name"] for row in rows}, {name for path in want for name in path}, what + "rows of heat")
        diff = server.json("/api/v1/diff", **{"match": '{host="one"}', "base.match": '{host="two"}', "group_by": "", **asked})
        names = set(diff["names"])
        equal(names - {"all"}, {name for path in want for name in path}, what + "both sides of a comparison")
        spots = server.json("/api/v1/hotspots", **asked)
        check(("Call_Object" in json.dumps(spots)) <= (hide == "false"), what + "hot spots")
        some = server.json("/api/v1/timeline", focus="inner", hide="Call_Object", **asked)
        equal(some["accounting"]["samples"], 140, what + "a time line of one function")
        stacks = server.json("/api/v1/top", stack_ids="true", **asked)["functions"]
        one = next(row["stack"] for row in stacks if row["name"] == "list_sort")
        alone = server.json("/api/v1/stacks/" + one, hide_runtime=hide)
        path = max(want, key=lambda path: "list_sort" in path)
        equal([frame["name"] for frame in alone["frames"]], list(reversed(path)), what + "one stack alone")
        check(all(frame["address"] for frame in alone["frames"] if frame["kind"] == "runtime"), what + "with addresses")
    equal(server.json("/api/v1/flamegraph", focus="Call_Object", value="samples")["nodes"]["total"][0], 146,
          "focus finds what is left out, as with any other filter")
    status, _, body = server.get("/api/v1/top", hide_runtime="perhaps")
    check(status == 422 and b"hide_runtime" in body, "another value is refused", body[:200])


def languages():
    """As the sender's types say, of the frames that it named and of no others: the same function is native, too."""
    types = {"cpython": "Python", "jvm": "Java", "v8js": "JavaScript", "ruby": "Ruby", "php": "PHP", "perl": "Perl", "lua": "Lua",
             "luajit": "Lua", "dotnet": ".NET", "beam": "Erlang", "go": "Go", "rust": "Rust", "native": None, "madeup": None}
    made = Request(BUILD)
    own = made.mapping("libown.so", "ab" * 20)
    profile = made.profile(made.resource(**{"host.name": "one", "farflame.process": "app"}), time_ns=WHEN_NS)
    for number, type_ in enumerate(types):
        made.sample(profile, [(type_, "f_" + type_, "", number), ("native", own, 0x10)], [1, 10])
    server = Server(data="languages")
    equal(server.post(made.bytes())[0], 200, "frames of all languages are taken")
    graph = server.flamegraph()
    found = {graph["names"][int(number)]: text for number, text in graph["languages"].items()}
    equal(found, {"f_" + type_: text for type_, text in types.items() if text}, "the graph tells their languages")
    top = {row["name"]: row.get("language") for row in server.json("/api/v1/top")["functions"]}
    equal({"f_" + type_: top["f_" + type_] for type_ in types}, {"f_" + type_: text for type_, text in types.items()}, "top does")
    rows = csv.DictReader(io.StringIO(server.get("/api/v1/flamegraph", format="csv")[2].decode()))
    equal({row["name"]: row["language"] for row in rows if row["language"]}, found, "csv does")
    ids = server.json("/api/v1/top", stack_ids="true")["functions"]
    alone = server.json("/api/v1/stacks/" + next(row["stack"] for row in ids if row["name"] == "f_jvm"))
    equal([frame.get("language") for frame in alone["frames"]], ["Java", None], "one stack alone does")


def files():
    """A name is of many files, as Python's __init__: a function each, wherever in the tree and in whichever line; one for collapse=name."""
    server = Server(data="files")
    for host, line in (("one", 3), ("two", 400)):
        made = Request(BUILD)
        profile = made.profile(made.resource(**{"host.name": host, "farflame.process": "app"}), time_ns=WHEN_NS)
        main = ("cpython", "main", "/srv/main.py", line)
        for count, file in ((5, "/srv/a.py"), (2, "/srv/b.py")):
            made.sample(profile, [("cpython", "leaf", file, line + 1), ("cpython", "__init__", file, line), main], [count, count])
        made.sample(profile, [("cpython", "leaf", "/srv/a.py", line), main], [1, 1])
        equal(server.post(made.bytes())[0], 200, "a report is taken")
    top = {(row["name"], row["file"]): (row["self"], row["total"]) for row in server.json("/api/v1/top", value="samples")["functions"]}
    equal(top, {("leaf", "/srv/a.py"): (12, 12), ("leaf", "/srv/b.py"): (4, 4), ("__init__", "/srv/a.py"): (0, 10),
                ("__init__", "/srv/b.py"): (0, 4), ("main", "/srv/main.py"): (0, 16)}, "top: by name and file, over hosts and lines")
    graph = server.flamegraph(group_by="")
    nodes = graph["nodes"]
    rows = sorted((graph["names"][nodes["name"][i]], graph["files"][nodes["file"][i]], nodes["total"][i]) for i in range(1, len(nodes["name"])))
    equal(rows, [("__init__", "/srv/a.py", 10), ("__init__", "/srv/b.py", 4), ("leaf", "/srv/a.py", 2), ("leaf", "/srv/a.py", 10),
                 ("leaf", "/srv/b.py", 4), ("main", "/srv/main.py", 16)], "the graph has the same functions")
    zoomed = server.flamegraph(group_by="", root="main (/srv/main.py);__init__ (/srv/b.py)")
    equal(zoomed["nodes"]["total"][0], 4, "a path says which")
    panel = server.json("/api/v1/sandwich", function="leaf (/srv/a.py)", value="samples")
    equal(panel["total"], 12, "callers and callees of one of them")
    equal(server.json("/api/v1/sandwich", function="leaf", value="samples")["total"], 16, "or of all of that name")
    joined = {row["name"]: row["self"] for row in server.json("/api/v1/top", value="samples", collapse="name")["functions"]}
    equal(joined, {"leaf": 16, "__init__": 0, "main": 0}, "collapse=name: one each")


def kept():
    """They come back from the journal, from the day's file, and from its sums."""
    server = Program().server("kept")
    for how in (server.kill, server.stop):
        how()
        server.start()
        for hide, want in (("true", HIDDEN), ("false", SHOWN)):
            got = of_graph(server.flamegraph(group_by="", hide_runtime=hide, until="now"))
            equal(got, sums(want), "after the server ended by %s, hide_runtime=%s" % (how.__name__, hide))


if __name__ == "__main__":
    run(formats, views, languages, files, kept)
