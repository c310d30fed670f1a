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
    made.sample(profile, [("cpython", "f", "a.py", 1), ("cpython", "main", "a.py", 9)], [samples, samples * period])
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
        check(near(row["before"], want) and near(row["after"], want) and not row["recorded"] and row["sustained"] == "no" and
              row["state"] == "same", "%s: 19 Hz and 99 Hz of the same load are the same" % norm, str(row))
        equal(answer["base"]["moved"], False, "%s: nothing is moved" % norm)
        equal((answer["statistics"]["minutes"], answer["statistics"]["base_minutes"], answer["statistics"]["hosts"],
               answer["statistics"]["too_short"]), (10, 10, 1, False), "%s: of so many minutes, on one host" % norm)
        turned = diff(server, (0, 600), (900, 1500), norm, invert="true")
        equal([(f["name"], f["before"], f["after"]) for f in turned["functions"]],
              [(f["name"], f["before"], f["after"]) for f in answer["functions"]], "%s: the same functions leaf first" % norm)
    same = diff(server, (0, 600), (0, 600))
    equal((same["functions"][0]["change"], same["base"]["moved"]), (0, False), "the same twice: no change, and meant so")
    answer = diff(server, (0, 630), (610, 1500))
    equal((answer["base"]["moved"], answer["base"]["until"], answer["base"]["from"] // 1000 - START),
          (True, answer["from"], -60), "ranges that overlap: the base ends where the other begins, as long as it was")
    answer = diff(server, (1200, 1800), (900, 1500))
    equal((answer["base"]["moved"], answer["base"]["until"]), (True, answer["from"]), "a base that begins inside: before it, too")
    answer = diff(server, (300, 915), (915, 1500))
    equal((answer["base"]["moved"], answer["base"]["until"]), (False, answer["from"]),
          "ranges that share a stored minute: it is on one side")
    other = diff(server, (0, 630), (610, 1500), match='{process="p"}', **{"base.match": '{host="a"}'})
    equal((other["base"]["moved"], other["base"]["until"] // 1000 - START), (False, 660), "another selection of the same time: meant so")
    body = server.get("/api/v1/diff", type="on-cpu", format="md", from_=START + 610, until=START + 1500,
                      **{"base.from": START, "base.until": START + 630})[2].decode()
    check("base was moved back" in body, "md says so too", body[:500])
    for more in ({"base.from": "now+1h", "base.until": "now+2h"}, {"base.from": START + 99999, "base.until": START + 999999}):
        status, _, body = server.get("/api/v1/diff", from_=START, until=START + 600, **more)
        check(status == 422 and b"in the future" in body, "a base in the future is refused", body.decode())
    short = diff(server, (0, 300), (300, 600))
    equal((short["statistics"]["too_short"], short["statistics"]["sustained"], short["functions"][0]["sustained"],
           short["processes"][0]["sustained"]), (True, None, "too short", "too short"), "five minutes are too short")
    row = diff(server, (-900, -300), (0, 600))["functions"][0]
    check(row["before"] == 0 and near(row["after"], NS_PER_S) and row["change"] is None and row["state"] == "new" and row["recorded"],
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
    equal(answer["base"]["moved"], False, "which is meant so")
    answer = server.json("/api/v1/diff", **{"type": "on-cpu", "from": START, "until": START + 60, "match": '{host="new"}',
                                            "base.match": '{host="old"}'})
    equal((answer["base"]["moved"], answer["statistics"]["hosts"], answer["hosts_joined"], answer["hosts_left"]),
          (False, 0, [], []), "no host on both sides: they are compared as they are")
    equal({row["name"]: (row["state"], row["recorded"]) for row in answer["functions"]},
          {"draw": ("changed", True), "read": ("same", False), "p+0x10": ("same", False)}, "host against host")
    same = server.json("/api/v1/diff", **{"type": "on-cpu", "norm": "raw", "from": START, "until": START + 60,
                                          "base.from": START, "base.until": START + 60, "build_id": ids["new"]})
    equal({row["name"]: row["before"] == row["after"] for row in same["functions"]}.get("draw"), True, "without base.build_id: both sides")
    some = server.json("/api/v1/diff", **{"type": "on-cpu", "norm": "raw", "from": START, "until": START + 60,
                                          "build_id": ids["new"], "base.build_id": ""})
    equal({row["name"]: row["before"] for row in some["functions"]}.get("draw"), 3e9, "an empty one: any build")


def hosts_join():
    """Three hosts that do the same all the time; a fourth one joins, and a process that was not there begins on an old one."""
    server = Server(data="join", log="join.log")
    for minute in range(20):
        made = Request(BUILD)
        for host in ("a", "b", "c", "d"):
            if host == "d" and minute < 10:
                continue
            profile = made.profile(made.resource(**{"host.name": host, "farflame.process": "p"}),
                                   time_ns=(START + 60 * minute + 5) * 10**9, period=("cpu", "nanoseconds", 10**7))
            for number in range(30):
                count = 60 // (number + 1) + (minute * 7 + number * 3) % 5
                made.sample(profile, [("cpython", "f%d" % number, "a.py", 1)], [count, count * 10**7])
            if host == "a" and minute >= 13:
                burst = made.profile(made.resource(**{"host.name": host, "farflame.process": "burst"}),
                                     time_ns=(START + 60 * minute + 5) * 10**9, period=("cpu", "nanoseconds", 10**7))
                made.sample(burst, [("cpython", "burns", "b.py", 1)], [300, 3 * 10**9])
        equal(server.post(made.bytes())[0], 200, "a report is taken") if minute == 0 else server.post(made.bytes())
    answer = diff(server, (0, 600), (600, 1200))
    equal([host["host"] for host in answer["hosts_joined"]], ["d"], "the host that joined is named")
    value = sum(60 // (number + 1) + (minute * 7 + number * 3) % 5 for minute in range(10, 20) for number in range(30))
    check(near(answer["hosts_joined"][0]["value"], value * 10**7 / 600), "with what it has", str(answer["hosts_joined"]))
    equal((answer["hosts_left"], answer["statistics"]["hosts"]), ([], 3), "three are on both sides")
    old = [row for row in answer["functions"] if row["name"] != "burns"]
    equal([row["name"] for row in old if row["recorded"] or row["sustained"] == "yes" or row["state"] != "same"], [],
          "its joining changes no function")
    check(all(row["change"] > 0.2 for row in old[:5]), "though all have more of it", str(old[:2]))
    new = [(row["name"], row["state"], row["recorded"]) for row in answer["processes"] if row["state"] != "same"]
    equal(new, [("burst", "new", True)], "a process that was not there is new, and recorded")
    new = [row for row in answer["functions"] if row["name"] == "burns"]
    equal([(row["state"], row["recorded"], row["change"], row["ci_high"]) for row in new], [("new", True, None, None)],
          "as is its function")
    sizes = [abs(row["after"] - row["before"]) for row in answer["functions"]]
    equal(sizes, sorted(sizes, reverse=True), "the largest difference first, whatever is known of it")
    back = diff(server, (600, 1200), (0, 600))
    equal(([host["host"] for host in back["hosts_left"]], back["hosts_joined"]), (["d"], []), "the other way round it left")
    body = server.get("/api/v1/diff", type="on-cpu", format="md", from_=START + 600, until=START + 1200,
                      **{"base.from": START, "base.until": START + 600})[2].decode()
    check("1 host joined, in sums only: `d` with " in body and "| new |  | yes | " in body, "md says so", body[:1500])


run(sides, builds, hosts_join)
