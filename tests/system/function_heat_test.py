# SPDX-License-Identifier: Apache-2.0
"""The heat map by function: each cell is what was sent of that function in that step, what /top says of the step and what
the step's folded stacks add up to, all to the unit; what has no row is in other. By minutes and by seconds, from memory and after
a restart, of values that add up and of one that does not."""
import collections
import csv
import io
import json
import random
import re
import sys
import time

from harness import BUILD, Server, check, equal, run

sys.path.insert(0, "tests/tools")
from otlp_writer import Request  # noqa: E402

DRAW = random.Random(25)
MINUTE = 60000
VALUE = 10101010
START = int(time.time()) // 60 * MINUTE - 10 * MINUTE
FUNCTIONS = ["f%02d" % i for i in range(40)]
PATH = "/api/v1/heatmap"


class Sent:
    """(start of the report in ms, service, functions from leaf to root, samples)"""

    def __init__(self, server):
        self.server, self.stacks = server, []

    def report(self, at_ms, service, stacks):
        request = Request(BUILD)
        profile = request.profile(request.resource(**{"host.name": "h1", "service.name": service, "farflame.process": service}),
                                  time_ns=at_ms * 10**6)
        profile.duration_nano = 5 * 10**9
        for functions, count in stacks:
            request.sample(profile, [("cpython", f, "a.py", 3) for f in functions] or [("anon", 0x7f00)], [count, count * VALUE],
                           incomplete="" if functions else "no frame pointer")
            self.stacks.append((at_ms, service, functions, count))
        equal(self.server.post(request.bytes())[0], 200, "a report of %d stacks is taken" % len(stacks))

    def sums(self, from_ms, until_ms, by_total, service=None, through=None):
        """{function: samples}; None: of all."""
        sums = collections.Counter()
        for at, of, functions, count in self.stacks:
            if not from_ms <= at < until_ms or service not in (None, of) or through and through not in functions:
                continue
            sums[None] += count
            for function in set(functions) if by_total else functions[:1]:
                sums[function] += count
        return sums


def stacks(minute):
    """Some functions in some minutes only; recursion; stacks without a function."""
    made = {}
    for _ in range(60):
        depth = DRAW.randrange(1, 9)
        hot = FUNCTIONS[minute % 5 * 8:minute % 5 * 8 + 12]
        functions = tuple(DRAW.choice(hot) for _ in range(depth)) + ("main",)
        made[functions] = DRAW.randrange(1, 50)
    made[("main",)] = 3
    return [*made.items(), ((), 2 + minute)]


def columns(answer, row):
    """{column: (value, samples)} of a row."""
    cells = answer["cells"]
    return {c: (v, s) for r, c, v, s in zip(cells["row"], cells["column"], cells["value"], cells["samples"]) if r == row}


def steps(answer):
    return [(max(answer["first"] + i * answer["column_ms"], answer["from"]),
             min(answer["first"] + (i + 1) * answer["column_ms"], answer["until"])) for i in range(answer["columns"])]


def compare(sent, text, from_ms, until_ms, column, by_total, service=None, **more):
    server, sort = sent.server, "total" if by_total else "self"
    match = {"match": '{service="%s"}' % service} if service else {}
    asked = {"from_": from_ms, "until": until_ms, "sort": sort, **match, **more}
    answer = server.json(PATH, by="function", column=column, **{"limit": 500, **asked})
    text = "%s, %s by %s%s" % (text, sort, column, " of " + service if service else "")
    names = [f["name"] for f in answer["functions"]]
    wanted = [sent.sums(begin, end, by_total, service) for begin, end in steps(answer)]
    got = [{name: columns(answer, row)[i][1] for row, name in enumerate(names) if i in columns(answer, row)} for i in range(len(wanted))]
    want = [{name: count for name, count in sums.items() if name} for sums in wanted]
    equal([{f: n for f, n in sums.items() if f[0] != "["} for sums in got], want, text + ": as sent")
    equal([value // VALUE for value in answer["all"]], [sums[None] for sums in wanted], "all of each column is")
    tops = [{f["name"]: f[sort] for f in server.json("/api/v1/top", limit=1000, **{**asked, "from_": begin, "until": end})["functions"]}
            for begin, end in steps(answer)]
    equal([{name: n * VALUE for name, n in sums.items()} for sums in got], [{f: v for f, v in top.items() if v} for top in tops],
          "as /top of each step, to the unit")
    whole = server.json("/api/v1/top", limit=500, **asked)
    equal([f for f in answer["functions"]], [f for f in whole["functions"] if f[sort]][:answer["rows"]], "its rows are those of /top")
    equal(answer["accounting"]["value"], sum(answer["all"]), "and the sum of all is the accounting's")
    return answer


def folded(sent, from_ms, until_ms):
    """Sums made of the folded stacks of each step."""
    for sort, by_total in (("self", False), ("total", True)):
        answer = sent.server.json(PATH, by="function", column="1m", from_=from_ms, until=until_ms, sort=sort, limit=7)
        names = [f["name"] for f in answer["functions"]]
        for i, (begin, end) in enumerate(steps(answer)):
            sums, other = collections.Counter(), 0
            for frames, samples in sent.server.folded(from_=begin, until=end, group_by=""):
                found = set(frames if by_total else frames[-1:]) & set(names)
                other += 0 if found else samples
                sums.update({name: samples for name in found})
            equal({name: columns(answer, row).get(i, (0, 0))[1] for row, name in enumerate(names)}, {name: sums[name] for name in names},
                  "%s, minute %d: as the folded stacks add up" % (sort, i))
            equal(answer["other"]["values"][i], other * VALUE, "and all others")
        equal(answer["other"]["value"], sum(answer["other"]["values"]), "others are the sum of their columns")
        if not by_total:
            equal(sum(answer["cells"]["value"]) + answer["other"]["value"], sum(answer["all"]), "rows and others are all there is")
            check(answer["other"]["functions"] > 20, "and it is said how many have no row", answer["other"])


def narrowed(sent, from_ms, until_ms):
    server, asked = sent.server, {"by": "function", "column": "1m", "from_": from_ms, "until": until_ms}
    some = server.json(PATH, search="^f0[0-3]$", **asked)
    equal({f["name"] for f in some["functions"]} - {"f00", "f01", "f02", "f03"}, set(), "search: rows of those functions only")
    equal(sum(some["cells"]["value"]) + some["other"]["value"], sum(some["all"]), "what is in no row is in other")
    equal(server.json(PATH, search="nosuch", **asked)["cells"]["row"], [], "none: no row")
    focused = server.json(PATH, focus="^f05$", sort="total", **asked)
    equal([value // VALUE for value in focused["all"]], [sent.sums(*step, True, through="f05")[None] for step in steps(focused)],
          "focus: stacks through that function only")
    counts = server.json(PATH, value="samples", **asked)
    equal((counts["unit"], counts["cells"]["value"]), ("samples", counts["cells"]["samples"]), "value=samples counts them")
    status, headers, body = server.get(PATH, format="csv", limit=5, **asked)
    rows = list(csv.DictReader(io.StringIO(body.decode())))
    equal((status, sum(int(row["value"]) for row in rows)), (200, sum(counts["all"]) * VALUE), "csv has it all")
    check("attachment" in headers["Content-Disposition"] and rows[-1]["name"] == "[other]" and rows[0]["name"] == counts["functions"][0]["name"],
          "as a file, others last", (headers.items(), rows[-1]))
    reported = counts["reported"] if "reported" in counts else []
    check(all(len(row) == 3 for row in reported), "the time that was reported is that of /timeline", reported)


def refused(server):
    for wrong, words in (({"column": "7s"}, "neither a multiple of 1m"), ({"column": "1s", "from_": "now-2h", "until": "now"}, "more than 3600"),
                         ({"sort": "name"}, "sort"), ({"limit": 501}, "limit"), ({"limit": 0}, "limit"), ({"search": "("}, "search"),
                         ({"rows": 5}, "rows"), ({"by": "host"}, "by"), ({"format": "svg"}, "format")):
        status, _, body = server.get(PATH, **{"by": "function", **wrong})
        check(status == 422 and words in json.loads(body)["error"]["message"], "%s: 422, and why" % wrong, (status, body))
    equal(server.get(PATH, sort="self")[0], 422, "sort without by=function too")
    equal(server.get(PATH, by="function", match='{host="nosuch"}')[0], 404, "an unknown host: 404")


def documented(server):
    """Each member of the answer, and none besides, is in openapi.yaml."""
    text = open("schema/rest/openapi.yaml").read().split("description: by=function\n")[1].split("text/csv")[0]
    listed = set(re.findall(r"^ +(\w+): *(?:\{|$)", text, re.M)) - {"properties", "items"}
    answer = server.json(PATH, by="function", column="1m", from_=START, until=START + 10 * MINUTE, limit=3)
    there = set(answer) | set(answer["cells"]) | set(answer["other"])
    equal(there - listed, set(), "what is answered is in openapi.yaml")
    equal(listed - there, {"reported"}, "and what that lists is answered, but for what these senders do not say")


def much():
    """More cells than a question has memory for: one sentence."""
    server = Server("--query-memory", "4M", data="much")
    Sent(server).report(START, "api", [(("g%03d" % i,), 1) for i in range(500)])
    asked = {"by": "function", "from_": START, "until": START + 10 * MINUTE, "limit": 500}
    status, _, body = server.get(PATH, column="1s", **asked)
    check(status == 422 and "a smaller 'limit'" in json.loads(body)["error"]["message"], "more cells than --query-memory has room for: 422, and what to do",
          (status, body[:300]))
    equal(server.get(PATH, column="1m", **asked)[0], 200, "longer columns fit")
    equal(len(server.json(PATH, column="1s", **{**asked, "limit": 5})["functions"]), 5, "as do fewer functions")
    server.stop()


def gauge(sent):
    """What is in use: a mean over time; a row's sum is the mean of its columns."""
    for minute in range(3):
        request = Request(BUILD)
        profile = request.profile(request.resource(**{"host.name": "h1", "service.name": "mem"}), type_="mem-inuse", unit="bytes",
                                  time_ns=(START + minute * MINUTE) * 10**6)
        profile.duration_nano = MINUTE * 10**6
        request.sample(profile, [("cpython", "keeps", "a.py", 3)], [1, 3000 * (minute + 1)])
        equal(sent.server.post(request.bytes())[0], 200, "bytes in use are taken")
    asked = {"type": "mem-inuse", "from_": START, "until": START + 3 * MINUTE}
    answer = sent.server.json(PATH, by="function", column="1m", **asked)
    tops = [sent.server.json("/api/v1/top", **{**asked, "from_": begin, "until": end})["functions"][0]["self"] for begin, end in steps(answer)]
    equal([columns(answer, 0)[i][0] for i in range(3)], tops, "a gauge: each column is /top of its step")
    equal(answer["functions"][0]["self"], sum(tops) // 3, "and a row's sum their mean")
    whole = sent.server.json("/api/v1/top", **asked)
    equal(answer["functions"][0]["self"], whole["functions"][0]["self"], "which is /top of the range")
    equal(answer["accounting"]["value"], whole["accounting"]["value"], "as is the sum of all")




def sums():
    server = Server(data="heat")
    sent = Sent(server)
    for minute in range(8):
        for second in (1, 22, 43):
            sent.report(START + minute * MINUTE + second * 1000, DRAW.choice(["api", "db"]), stacks(minute))
    for text in ("from memory", "after a restart"):
        for by_total in (False, True):
            compare(sent, text, START, START + 8 * MINUTE, "1m", by_total)
        compare(sent, text, START, START + 8 * MINUTE, "5m", False, service="api")
        if text == "from memory":
            for by_total in (False, True):
                answer = compare(sent, text, START + 61000, START + 3 * MINUTE, "10s", by_total)
                equal((answer["column_ms"], answer["from"]), (10000, START + 61000), "by ten seconds, from that second on")
            narrowed(sent, START, START + 8 * MINUTE)
            folded(sent, START, START + 4 * MINUTE)
            gauge(sent)
            refused(server)
            documented(server)
            server.stop()
            server.start()
    server.stop()


if __name__ == "__main__":
    run(sums, much)
