# SPDX-License-Identifier: Apache-2.0
"""Two sides whose comparison can be worked out by hand: other sampling rates, ranges that overlap, empty sides."""
import sys
import time

from harness import BUILD, Server, check, equal, run

sys.path.insert(0, "tests/tools")
from otlp_writer import Request  # noqa: E402

START = int(time.time()) // 60 * 60 - 1800
RATES = {0: (190, 52631579), 900: (990, 10101010)}  # seconds after START: samples a minute, each so many nanoseconds
NS_PER_S = 10 * 10**9 / 60  # ten seconds of CPU each minute, at 19 Hz as at 99


def report(at, samples, period):
    made = Request(BUILD)
    profile = made.profile(made.resource(**{"host.name": "a", "farflame.process": "p"}), time_ns=at * 10**9,
                           period=("cpu", "nanoseconds", period))
    made.sample(profile, [("cpython", "f", "a.py", 1)], [samples, samples * period])
    return made.bytes()


def diff(server, base, compared, norm="per_second", **more):
    return server.json("/api/v1/diff", **{
        "type": "on-cpu", "norm": norm, "base.from": START + base[0], "base.until": START + base[1],
        "from": START + compared[0], "until": START + compared[1], **more})


def near(got, want):
    return abs(got - want) <= 1e-6 * want


def sides():
    server = Server()
    for offset, (samples, period) in RATES.items():
        for minute in range(10):
            equal(server.post(report(START + offset + 60 * minute + 5, samples, period))[0], 200, "a report is taken")
    for norm, want in (("per_second", NS_PER_S), ("share", 1), ("raw", 100e9)):
        answer = diff(server, (0, 600), (900, 1500), norm)
        row = answer["functions"][0]
        check(near(row["before"], want) and near(row["after"], want) and not row["significant"],
              "%s: 19 Hz and 99 Hz of the same load are the same" % norm, str(row))
        equal(answer["warnings"], [], "%s: nothing to be warned of" % norm)
    equal(diff(server, (0, 600), (0, 600))["functions"][0]["change"], 0, "the same twice: no change")
    equal(diff(server, (0, 600), (0, 600))["warnings"], [], "and no warning")
    answer = diff(server, (0, 630), (610, 1500))
    check(len(answer["warnings"]) == 1 and "overlap by 1.00 min" in answer["warnings"][0],
          "ranges that overlap by 20 s, and by a minute when widened: said", str(answer["warnings"]))
    equal((answer["base"]["until"] - answer["from"]) // 1000, 60, "as the ranges in the answer say")
    other = diff(server, (0, 630), (610, 1500), match='{process="p"}', **{"base.match": '{process="q"}'})
    equal(other["warnings"], [], "other samples of the same time: meant so")
    body = server.get("/api/v1/diff", type="on-cpu", format="md", from_=START + 610, until=START + 1500,
                      **{"base.from": START, "base.until": START + 630})[2].decode()
    check("overlap by 1.00 min" in body, "md says so too", body[:500])
    row = diff(server, (-900, -300), (0, 600))["functions"][0]
    check(row["before"] == 0 and near(row["after"], NS_PER_S) and row["change"] is None and row["significant"],
          "out of nothing: a change without a factor", str(row))
    equal(diff(server, (-900, -600), (-600, -300))["functions"], [], "nothing on either side: no functions")


def builds():
    """Two builds of a program, at the same time on two hosts: a function is twice as dear in one of them."""
    server, ids = Server(), {"old": "0a" * 20, "new": "0b" * 20}
    made = Request(BUILD)
    for host, cost in (("old", 100), ("new", 200)):
        profile = made.profile(made.resource(**{"host.name": host, "farflame.process": "p"}), time_ns=(START + 5) * 10**9,
                               period=("cpu", "nanoseconds", 10**7))
        frame = ("native", made.mapping("p", ids[host]), 0x10)
        made.sample(profile, [("cpython", "draw", "a.py", 1), frame], [cost, cost * 10**7])
        made.sample(profile, [("cpython", "read", "a.py", 2), frame], [50, 50 * 10**7])
    equal(server.post(made.bytes())[0], 200, "a report is taken")
    answer = server.json("/api/v1/diff", **{"type": "on-cpu", "norm": "raw", "group_by": "", "from": START, "until": START + 60,
                                            "build_id": ids["new"], "base.build_id": ids["old"]})
    found = {row["name"]: (row["before"], row["after"]) for row in answer["functions"]}
    equal((found.get("draw"), found.get("read")), ((1e9, 2e9), (5e8, 5e8)), "build against build, in the same time")
    equal(answer["warnings"], [], "which is meant so")
    same = server.json("/api/v1/diff", **{"type": "on-cpu", "norm": "raw", "from": START, "until": START + 60,
                                          "base.from": START, "base.until": START + 60, "build_id": ids["new"]})
    equal({row["name"]: row["before"] == row["after"] for row in same["functions"]}.get("draw"), True, "without base.build_id: both sides")
    some = server.json("/api/v1/diff", **{"type": "on-cpu", "norm": "raw", "from": START, "until": START + 60,
                                          "build_id": ids["new"], "base.build_id": ""})
    equal({row["name"]: row["before"] for row in some["functions"]}.get("draw"), 3e9, "an empty one: any build")


run(sides, builds)
