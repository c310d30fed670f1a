# SPDX-License-Identifier: Apache-2.0
"""One question, one number: over a host as it is in earnest (tests/tools/big_host.py) every answer and every export
says what a sum made by other means says."""
import collections
import csv
import gzip
import io
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree

from formats_test import columns_of, folded_name, gos, of_csv, of_folded, of_html, of_pprof, of_speedscope, of_tree, pprof, pprof_raw
from harness import BUILD, WORK, Server, check, equal, note, run, skip

sys.path.insert(0, "tests/tools")
import big_host  # noqa: E402

FROM = big_host.first_minute()
RANGE = {"from": FROM, "until": FROM + 60 * big_host.MINUTES}
SAMPLES = big_host.samples()


def of_type(type_):
    return [s for s in SAMPLES if s.type == type_]


def total(samples):
    return sum(s.value for s in samples)


def counted(samples):
    return sum(s.samples for s in samples)


def stacks_of(samples, turned=False, what="value"):
    """{process and names, root first (or leaf first): value}, names as folded stacks have them"""
    out = collections.Counter()
    for s in samples:
        names = [folded_name(frame[1]) for frame in s.frames]
        out[(s.process, *(names[::-1] if turned else names))] += getattr(s, what)
    return out


def own_of(samples, key):
    out = collections.Counter()
    for s in samples:
        out[key(s.frames[-1])] += s.value
    return out


def totals_of(samples):
    """{function's name: value of the stacks it is in}"""
    out = collections.Counter()
    for s in samples:
        for name in {frame[1] for frame in s.frames}:
            out[name] += s.value
    return out


def same(got, want, text):
    check(got == want, text, "%s\n%s" % (list((got - want).items())[:3], list((want - got).items())[:3]))


def filled():
    server = Server()
    for body in big_host.reports(BUILD, FROM):
        status, _, text = server.post(body)
        if status != 200:
            raise RuntimeError("a report is refused: %d %s" % (status, text[:300]))
    return server


def ask(server, path, **parameters):
    """→ (headers, body) of an answer about the whole time."""
    status, headers, body = server.get("/api/v1/" + path, timeout=60, **{**RANGE, **parameters})
    if status != 200:
        raise RuntimeError("%s %s: %d %s" % (path, parameters, status, body[:300]))
    return headers, body


def answer(server, path, **parameters):
    return json.loads(ask(server, path, **parameters)[1])


def by_samples(server):
    """value=samples: each share is one of samples."""
    for type_ in big_host.TYPES:
        want = counted(of_type(type_))
        for path, more in (("flamegraph", {}), ("top", {}), ("sandwich", {"function": "main"}), ("timeline", {}),
                           ("timeline", {"focus": "main"}), ("hotspots", {})):
            got = answer(server, path, type=type_, value="samples", **more)
            equal((got["unit"], got["accounting"]["value"], got["accounting"]["samples"]), ("samples", want, want),
                  "%s of %s by samples: its value is samples" % (path, type_))
    got = answer(server, "diff", type="on-cpu", value="samples",
                 **{"base.type": "off-cpu", "base.from": RANGE["from"], "base.until": RANGE["until"]})
    equal([got["accounting"]["value"], got["base"]["accounting"]["value"]],
          [counted(of_type("on-cpu")), counted(of_type("off-cpu"))], "both sides of a comparison by samples")
    text = ask(server, "flamegraph", value="samples", format="md")[1].decode()
    want = counted(of_type("on-cpu"))
    check("**Total:** %d ± %d samples of 1 host" % (want, round(off([("", want, want)], 0))) in text,
          "md by samples: the total, once, and its ±", text[:300])
    own = sum(s.samples for s in of_type("on-cpu") if s.frames[-1][1] == "exc_page_fault")
    check("| %.1f %% ± " % (100 * own / want) in text, "md by samples: a share", text[:1500])


def xml_of(body, text):
    """The picture, read by Python's expat and by xmllint where that is."""
    try:
        picture = xml.etree.ElementTree.fromstring(body)
    except xml.etree.ElementTree.ParseError as error:
        check(False, text + " is XML", error)
        return None
    if shutil.which("xmllint"):
        got = subprocess.run(["xmllint", "--noout", "--huge", "-"], input=body, capture_output=True)
        check(got.returncode == 0, text + ": xmllint finds nothing", got.stderr[:500].decode(errors="replace"))
    return picture


def pictures(server):
    """SVG with shares that are written with a '<'."""
    for name, path, more in (("svg", "flamegraph", {}), ("svg by samples", "flamegraph", {"value": "samples"}),
                             ("svg inverted", "flamegraph", {"invert": "1", "group_by": ""}),
                             ("svg of a comparison", "diff", {"base.from": FROM, "base.until": FROM + 60, "norm": "share"})):
        body = ask(server, path, format="svg", max_nodes=1000000, **more)[1]
        picture = xml_of(body, name)
        titles = [] if picture is None else [title.text for title in picture.iter("{http://www.w3.org/2000/svg}title")]
        check(path == "diff" or any("< 0.01 %" in title for title in titles), name + ": has shares of less than 0.01 %")


KINDS = {"native": "native", "kernel": "kernel", "jvm": "jit", "cpython": "interpreter"}


def of_json(body):
    got = json.loads(body)
    return of_tree(got["nodes"], [got["names"][i] for i in got["nodes"]["name"]])


def of_columns(body):
    got = columns_of(body)
    return of_tree(got["nodes"], [got["names"][i] for i in got["nodes"]["name"]])


READERS = {"json": of_json, "columns": of_columns, "folded": of_folded, "csv": of_csv, "speedscope": of_speedscope,
           "html": of_html}


def whole(server):
    """Nobody asked for fewer nodes: every export is the whole profile, stack by stack; and says so when it is not."""
    for type_ in big_host.TYPES:
        want = stacks_of(of_type(type_))
        for format_ in READERS if type_ == "on-cpu" else ("folded",):
            same(READERS[format_](ask(server, "flamegraph", type=type_, format=format_)[1]), want,
                 "%s of %s: every stack with its value" % (format_, type_))
    want = stacks_of(of_type("on-cpu"), turned=True)
    same(of_folded(ask(server, "flamegraph", format="folded", invert="1")[1]), want, "folded, leaf first: every stack")
    same(of_folded(ask(server, "flamegraph", format="folded", value="samples")[1]),
         stacks_of(of_type("on-cpu"), what="samples"), "folded by samples: every stack")
    for format_, read in READERS.items():
        headers, body = ask(server, "flamegraph", format=format_, max_nodes=500)
        got = read(body)
        cut = sum(value for stack, value in got.items() if stack[-1] == "[cut]")
        accounting = json.loads(headers["Farflame-Accounting"] or "{}") if format_ != "json" else json.loads(body)["accounting"]
        equal((sum(got.values()), accounting["cut"]), (total(of_type("on-cpu")), cut),
              "%s of 500 nodes: what is cut is in it, and counted" % format_)


def pprof_whole(server):
    path = os.path.join(WORK, "big.pb.gz")
    for type_ in big_host.TYPES:
        with open(path, "wb") as file:
            file.write(ask(server, "flamegraph", type=type_, format="pprof")[1])
        if not gos():
            skip("no Go here: formats_test reads pprof with protoc")
            return
        _, rows, locations, _ = pprof_raw(gos()[0], path)
        stacks, count = of_pprof(rows, locations, "process")
        same(stacks, stacks_of(of_type(type_)), "go tool pprof of %s: every stack with its value" % type_)
        equal(count, counted(of_type(type_)), "go tool pprof of %s: as many samples" % type_)
    got = pprof(gos()[0], "-top", "-nodecount=40", path).stdout
    fault = [line.split() for line in got.splitlines() if line.endswith(" exc_page_fault")]
    want = totals_of(of_type(type_))["exc_page_fault"]
    check(fault and abs(float(fault[0][4].rstrip("%")) - 100 * want / total(of_type(type_))) <= 0.005,
          "go tool pprof -top: the share of a function", got[:800])


def by_screen(server):
    """min_share: what is narrower is folded, nothing else is, and no sum changes; also below a zoomed frame."""
    share = 0.5 / 1440
    samples = of_type("on-cpu")
    for name, more, chosen in (("all", {}, samples),
                               ("one process", {"root": "worker07"}, [s for s in samples if s.process == "worker07"])):
        got = answer(server, "flamegraph", min_share=share, **more)
        nodes, names, kinds = got["nodes"], got["names"], got["kinds"]
        all_ = total(chosen)
        paths, seen = [], collections.Counter()
        for i, parent in enumerate(nodes["parent"]):
            paths.append(() if i == 0 else paths[parent] + (names[nodes["name"][i]],))
            if kinds[nodes["kind"][i]] != "cut":
                seen[paths[i]] += nodes["total"][i]
        want = collections.Counter()
        for s in chosen:
            path = (s.process, *(frame[1] for frame in s.frames))
            for depth in range(len(path) + 1):
                want[path[:depth]] += s.value
        want = collections.Counter({path: value for path, value in want.items() if value >= share * all_})
        same(seen, want, "min_share of %s: the frames that are wide enough, with their values" % name)
        cut = sum(self for self, kind in zip(nodes["self"], nodes["kind"]) if kinds[kind] == "cut")
        equal((got["accounting"]["value"], got["accounting"]["cut"], sum(nodes["self"])), (all_, cut, all_),
              "min_share of %s: the rest is counted" % name)
        note("%d nodes of %s" % (len(nodes["name"]), name))
    check(0 < answer(server, "flamegraph", min_share=share, invert="1")["accounting"]["cut"] < total(samples),
          "min_share, leaf first: something is folded")
    got = answer(server, "sandwich", function="exc_page_fault", min_share=0.01)
    want = sum(s.value for s in samples if any(frame[1] == "exc_page_fault" for frame in s.frames))
    few = len(got["callers"]["nodes"]["name"])
    check(got["total"] == want == got["callers"]["nodes"]["total"][0] and few < 200,
          "sandwich: the total is whole, callers that are too narrow are folded", (got["total"], want, few))
    for value in ("2", "-1", "x", "1e-3"):
        status, _, body = server.get("/api/v1/flamegraph", min_share=value)
        check(status == 422 and b"'min_share'" in body, "min_share=%s is refused" % value, body)


def sums(server):
    """/top: functions, and what is of each kind and module, of everything and below a frame, also leaf first."""
    samples = of_type("on-cpu")
    for name, more, chosen in (("all", {}, samples), ("leaf first", {"invert": "1"}, samples),
                               ("a process", {"group_by": "process", "root": "worker07"},
                                [s for s in samples if s.process == "worker07"]),
                               ("a process, leaf first", {"group_by": "process", "invert": "1", "root": "worker07;exc_page_fault"},
                                [s for s in samples if s.process == "worker07" and s.frames[-1][1] == "exc_page_fault"])):
        got = answer(server, "top", limit=50, **more)
        equal(got["accounting"]["value"], total(chosen), "/top of %s: its value" % name)
        equal(got["own"]["kinds"], own_of(chosen, lambda frame: KINDS[frame[0]]), "/top of %s: own values by kind" % name)
        equal({row["name"]: row["value"] for row in got["own"]["modules"]},
              {key: value for key, value in own_of(chosen, lambda frame: frame[4]).items() if key},
              "/top of %s: own values by module" % name)
        own, totals = own_of(chosen, lambda frame: frame[1]), totals_of(chosen)
        functions = answer(server, "top", limit=1000000, **more)["functions"]
        equal(({f["name"]: f["self"] for f in functions if f["self"]}, {f["name"]: f["total"] for f in functions}),
              (dict(own), dict(totals)), "/top of %s: every function" % name)
    for expression in ("^exc_page_fault$", "handle_1", "worker1", "parse<3 ", "^nothing$"):
        for more, chosen in (({}, samples), ({"root": "worker07"}, [s for s in samples if s.process == "worker07"]),
                             ({"invert": "1"}, samples)):
            got = answer(server, "top", limit=1, search=expression, group_by="process", **more)
            hit = re.compile(expression)
            want = [s for s in chosen if any(hit.search(name) for name in (s.process, *(frame[1] for frame in s.frames)))]
            got["found"].pop("error")
            equal(got["found"], {"value": total(want), "samples": counted(want)}, "searched for %s %s" % (expression, more))


def spread(rows, most):
    """How differently samples of one row weigh, of (series, value, samples) (openapi.yaml, "Errors")."""
    series = collections.defaultdict(list)
    for name, value, count in rows:
        series[name].append((value, count))
    between = sum(sum(count * (value / count - (mean := sum(v for v, _ in of) / sum(n for _, n in of))) ** 2 for value, count in of)
                  / mean ** 2 for of in series.values())
    degrees = sum(len(of) - 1 for of in series.values())
    return min(between / degrees, most)


def off(rows, c):
    """± of the sum of rows."""
    squares = sum(value ** 2 * (1 + c) / (count + c) for _, value, count in rows)
    value = sum(value for _, value, _ in rows)
    return 1.959964 * (squares + (squares / value) ** 2) ** 0.5 if value else 0


def rows_of(samples, key):
    rows = collections.defaultdict(lambda: [0, 0])
    for s in samples:
        rows[key(s)][0] += s.value
        rows[key(s)][1] += s.samples
    return {name: ("", *of) for name, of in rows.items()}


def errors(server):
    """± of figures: what the documented formula makes of the stacks, in every format that has it."""
    for type_ in big_host.TYPES:
        chosen = of_type(type_)
        rows = rows_of(chosen, lambda s: s.frames)
        c = spread(rows.values(), 1)
        got = answer(server, "top", type=type_, limit=1000000)
        wants = {"self": lambda name, frames: frames[-1][1] == name, "total": lambda name, frames: name in {frame[1] for frame in frames}}
        wrong = [(f["name"], column, f[column + "_error"], want) for f in got["functions"][:60] for column, is_in in wants.items()
                 for want in [off([row for frames, row in rows.items() if is_in(f["name"], frames)], c)]
                 if abs(f[column + "_error"] - want) > 1 + 1e-6 * want]
        check(not wrong, "/top of %s: ± of functions (c %.3f)" % (type_, c), wrong[:3])
        whole_ = off(rows.values(), c)
        check(abs(got["accounting"]["error"] - whole_) <= 1 + 1e-6 * whole_, "/top of %s: ± of all" % type_, (got["accounting"], whole_))
        listed = csv.DictReader(io.StringIO(ask(server, "top", type=type_, format="csv", limit=1000000)[1].decode(), newline=""))
        equal({row["name"]: (row["self_error"], row["total_error"]) for row in listed},
              {f["name"]: (str(f["self_error"]), str(f["total_error"])) for f in got["functions"]}, "the same as csv")
        graph = answer(server, "flamegraph", type=type_, errors=1, group_by="")
        columns = columns_of(ask(server, "flamegraph", type=type_, errors=1, group_by="", format="columns")[1])
        table = list(csv.DictReader(io.StringIO(ask(server, "flamegraph", type=type_, group_by="", format="csv")[1].decode(), newline="")))
        for column in ("self_error", "total_error"):
            equal((list(columns["nodes"][column]), [int(row[column]) for row in table]), (graph["nodes"][column],) * 2,
                  "/flamegraph of %s: %s in columns and csv as in json" % (type_, column))
        check(abs(graph["nodes"]["total_error"][0] - whole_) <= 1 + 1e-6 * whole_, "its root has that of all")
        check("total_error" not in answer(server, "flamegraph", type=type_)["nodes"], "they are there where they are asked for")
        own = rows_of(chosen, lambda s: (s.frames, KINDS[s.frames[-1][0]]))
        wrong = [(kind, got["own"]["kind_errors"][kind], want) for kind in got["own"]["kinds"]
                 for want in [off([row for key, row in own.items() if key[1] == kind], c)] if abs(got["own"]["kind_errors"][kind] - want) > 1 + 1e-6 * want]
        check(got["own"]["kinds"] and not wrong, "/top of %s: ± of kinds" % type_, wrong[:3])
        half = answer(server, "sandwich", type=type_, function="main", errors=1)
        want = off([row for frames, row in rows.items() if "main" in {frame[1] for frame in frames}], c)
        sides = [half["error"], *(half[side]["nodes"]["total_error"][0] for side in ("callers", "callees"))]
        check(all(abs(is_ - want) <= 1 + 1e-6 * want for is_ in sides), "/sandwich of %s: ± of main" % type_, (sides, want))
        minutes = {key: (key[0], *row[1:]) for key, row in rows_of(chosen, lambda s: (s.process, s.minute)).items()}
        c = spread(minutes.values(), 10)
        got = answer(server, "timeline", type=type_, group_by="process", step="1m", limit=100, errors=1)
        wrong = [(line["labels"], at, is_, want) for line in got["series"] for (at, value, n), is_ in zip(line["points"], line["errors"])
                 for want in [off([("", value, n)], c) if n else 0] if abs(is_ - want) > 1 + 1e-6 * want]
        check(not wrong and "errors" not in answer(server, "timeline", type=type_)["series"][0], "/timeline of %s: ± of steps" % type_, wrong[:3])
        wrong = [(line["labels"], line["error"], want) for line in got["series"]
                 for want in [off([row for key, row in minutes.items() if key[0] == line["labels"]["process"]], c)]
                 if abs(line["error"] - want) > 1 + 1e-6 * want]
        check(not wrong, "/timeline of %s: ± of processes" % type_, wrong[:3])
    check("error" not in answer(server, "top", type="still-blocked")["accounting"], "what is told whole has none")


def share_off(f, column, whole):
    """± of a share as it is shown: in its own digits, rounded up."""
    p, digits = f[column] / whole["value"], 1 if f[column] / whole["value"] >= 0.09995 else 2
    if not 0.0001 <= p <= 0.9999:
        return ""
    e, all_ = f[column + "_error"], whole["error"]
    own = 100 * max(0, e * e * (1 - 2 * p) + p * p * all_ * all_) ** 0.5 / whole["value"]
    return " ± %.*f" % (digits, max(1, math.ceil(own * 10 ** digits - 1e-9)) / 10 ** digits)


def errors_for_people(server):
    """The same ± in reports, pictures and pprof."""
    for type_ in big_host.TYPES:
        got = answer(server, "top", type=type_, limit=1000000)
        whole_, functions = got["accounting"], {f.get("signature", f["name"]): f for f in got["functions"]}
        text = ask(server, "flamegraph", type=type_, format="md")[1].decode()
        rows = [row.split(" | ") for row in text.split("\n") if row.startswith("| ") and "`" in row]
        wrong = [(row, f) for row in rows for f in [functions[row[3].split("`")[1].removeprefix("[k] ").removesuffix(" (inlined)")]]
                 for cell, column in ((row[0], "self"), (row[1], "total"))
                 if cell.removeprefix("| ") != percent(f[column], whole_["value"]) + share_off(f, column, whole_)
                 and f[column] not in (0, whole_["value"])]
        check(len(rows) >= 40 and not wrong, "md of %s: ± of each share" % type_, (len(rows), wrong[:3]))
        check(re.search(r"Total:\*\* [0-9.]+ \S+ ± [0-9.]+ \S+ in ", text), "md of %s: ± of values" % type_, text[:500])
        said = [group.find("{http://www.w3.org/2000/svg}title").text for group in xml_of(
            ask(server, "flamegraph", type=type_, format="svg", group_by="")[1], "svg of " + type_).iter("{http://www.w3.org/2000/svg}g")
            if group.find("{http://www.w3.org/2000/svg}title") is not None]
        check(said and all(" ± " in title.split("\n")[1] for title in said), "svg of %s: ± in each frame's title" % type_, said[:2])
        c = spread(rows_of(of_type(type_), lambda s: s.frames).values(), 1)
        body = ask(server, "flamegraph", type=type_, format="pprof")[1]
        want = "of a value v of n samples ± 1.96 v √(%s / (n + %s)), 95 %%" % ("%.2f" % (1 + c), "%.2f" % c)
        check(want.encode() in gzip.decompress(body), "pprof of %s: how ± follows from its values" % type_, want)
    body = ask(server, "flamegraph", type="still-blocked", format="md")[1]
    check("±".encode() not in body, "what was told whole has none")


def percent(part, whole):
    """As answers write a share."""
    share = 100 * part / whole
    return "< 0.01 %" if share < 0.01 else "%.*f %%" % (1 if share >= 9.995 else 2, share)


def one_number(server):
    """One question by every other way: time line, sandwich, comparison, report, CSV of functions, picture."""
    for type_ in big_host.TYPES:
        chosen = of_type(type_)
        all_, totals, own = total(chosen), totals_of(chosen), own_of(chosen, lambda frame: frame[1])
        for more in ({"group_by": "process"}, {"group_by": "process", "focus": "main"}):
            got = answer(server, "timeline", type=type_, step="1m", limit=100, **more)
            points = {(line["labels"]["process"], (at // 1000 - FROM) // 60): value
                      for line in got["series"] for at, value, _ in line["points"] if value}
            want = collections.Counter()
            for s in chosen:
                want[s.process, s.minute] += s.value
            equal((points, got["accounting"]["value"]), (dict(want), all_), "/timeline of %s %s: each minute of each process" % (type_, more))
        for name in ("exc_page_fault", "walk", "main"):
            got = answer(server, "sandwich", type=type_, function=name)
            sides = [got[side]["nodes"]["total"][0] for side in ("callers", "callees")]
            equal((got["total"], *sides, sum(f["self"] for f in got["functions"])), (totals[name],) * 3 + (own[name],),
                  "/sandwich of %s: %s" % (type_, name))
        rows = list(csv.DictReader(io.StringIO(ask(server, "top", type=type_, format="csv", limit=1000000)[1].decode(), newline="")))
        equal({row["name"]: (int(row["self"]), int(row["total"])) for row in rows},
              {name: (own[name], value) for name, value in totals.items()}, "/top as csv of %s: every function" % type_)
        text = re.sub(" % ± [0-9.]+", " %", ask(server, "flamegraph", type=type_, format="md")[1].decode())
        for name in ("exc_page_fault", "main"):
            check(any(row.startswith("| %s | %s |" % (percent(own[name], all_) if own[name] else "0 %", percent(totals[name], all_)
                                                      if totals[name] < all_ else "100 %")) and "%s`" % name in row
                      for row in text.split("\n")), "md of %s: the shares of %s" % (type_, name), text[:3000])
    chosen = of_type("on-cpu")
    got = answer(server, "diff", norm="raw", limit=10000, max_nodes=1000000,
                 **{"from": FROM + 60, "base.from": FROM, "base.until": FROM + 60})
    before = own_of([s for s in chosen if s.minute == 0], lambda frame: frame[1])
    after = own_of([s for s in chosen if s.minute > 0], lambda frame: frame[1])
    wrong = [f for f in got["functions"] for is_, want in ((f["before"], before[f["name"]]), (f["after"], after[f["name"]]))
             if abs(is_ - want) > 1e-8 * want]  # nine digits are said
    check(got["functions"] and not wrong, "/diff: what functions have on both sides", wrong[:3])
    nodes, sides = got["nodes"], collections.Counter()
    for name, now, base in zip(nodes["name"], nodes["self"], nodes["base_self"]):
        sides[got["names"][name], "now"] += now
        sides[got["names"][name], "base"] += base
    same(+sides, +collections.Counter({**{(name, "now"): value for name, value in after.items()},
                                       **{(name, "base"): value for name, value in before.items()}}),
         "/diff: the graph, to the unit")
    equal((got["base"]["accounting"]["value"], got["accounting"]["value"]), (sum(before.values()), sum(after.values())),
          "/diff: both sides' values")
    accounting = answer(server, "flamegraph", max_nodes=1)["accounting"]
    equal((accounting["samples"], accounting["taken"], accounting["lost"], accounting["unexplained"] if "unexplained" in accounting
           else accounting["lost_by"]["unexplained"]),
          (counted(chosen), counted(chosen) + counted(chosen) // 4, counted(chosen) // 4, 0), "a fifth was lost, and is counted")
    drawn(server, chosen)


def drawn(server, samples):
    """Frames of the picture are as wide as their share, each in its place, and say it."""
    picture = xml_of(ask(server, "flamegraph", format="svg")[1], "svg of everything")
    space = "{http://www.w3.org/2000/svg}"
    all_ = total(samples)
    processes = collections.Counter()
    for s in samples:
        processes[s.process] += s.value
    wrong, seen = [], 0
    for group in picture.find(space + "g[@id='frames']"):
        name, said = group.find(space + "title").text.split("\n")[:2]
        if name in processes:
            seen += 1
            width = float(group.find(space + "rect").get("width"))
            if abs(width - 1180 * processes[name] / all_) > 1e-4 or ", %s," % percent(processes[name], all_) not in re.sub(" % ± [0-9.]+", " %", said):
                wrong.append((name, width, said))
    equal((seen, wrong), (big_host.PROCESSES, []), "svg: every process is as wide as its share, and says it")


def numbers():
    begin = time.monotonic()
    server = filled()
    note("%d samples of %d stacks sent in %.1f s" % (counted(SAMPLES), len(SAMPLES), time.monotonic() - begin))
    for part in (by_samples, pictures, whole, pprof_whole, by_screen, sums, one_number, errors, errors_for_people):
        begin = time.monotonic()
        part(server)
        note("%s: %.1f s" % (part.__name__, time.monotonic() - begin))


run(numbers)
