# SPDX-License-Identifier: Apache-2.0
"""The newest minutes by the second, beside what was sent: a burst of 20 s in quiet minutes is one on /timeline?step=1s,
the flame graph of exactly its range has nothing else, and whole minutes are the same to the unit whatever they are
asked by. Two hosts whose reports begin at different times, one of them with a clock that is two minutes ahead; from memory, from
files, after a restart and after a deletion."""
import collections
import sys
import time

from harness import BUILD, WORK, Server, check, equal, run, wait_for

sys.path.insert(0, "tests/tools")
from otlp_writer import Request  # noqa: E402

MINUTE = 60000
VALUE = 10000000
START = int(time.time()) // 60 * MINUTE - 10 * MINUTE
BURST = START + 301000  # four reports of five seconds
LOST = 3


class Fleet:
    """Agents that report each five seconds, in order; sent is (host, function, second's start in ms, samples)."""

    def __init__(self, server):
        self.server, self.sent, self.seen = server, [], collections.defaultdict(lambda: [0, 0, 0])
        self.lost = []

    def report(self, host, at_ms, functions, lost=0):
        request = Request(BUILD)
        profile = request.profile(request.resource(**{"host.name": host, "farflame.process": "api"}), time_ns=at_ms * 10**6)
        profile.duration_nano = 5 * 10**9
        for function, count in functions.items():
            request.sample(profile, [("cpython", function, "a.py", 3)], [count, VALUE * count])
            self.sent.append((host, function, at_ms, count))
        state = self.seen[host]
        state[0] += 1
        state[1] += sum(functions.values()) + lost
        state[2] += lost
        self.lost.append((host, at_ms, lost))
        request.counters(host, "%032x" % sum(host.encode()), state[0], state[0] - 1, state[1], time_ns=at_ms * 10**6,
                         ring_full=state[2]).duration_nano = 5 * 10**9
        if self.server.post(request.bytes())[0] != 200:
            raise RuntimeError("a report is not taken")

    def samples(self, from_ms, until_ms, host=None, function=None):
        return sum(count for h, f, at, count in self.sent
                   if from_ms <= at < until_ms and host in (None, h) and function in (None, f))

    def steps(self, from_ms, until_ms, step_ms, **which):
        steps = range(from_ms // step_ms * step_ms, until_ms, step_ms)
        return [[at, self.samples(max(at, from_ms), min(at + step_ms, until_ms), **which)] for at in steps]


def steps_of(answer, host):
    points = [series["points"] for series in answer["series"] if series["labels"].get("host", host) == host]
    return [[at, samples] for at, _, samples in points[0]] if points else []


def timeline(server, from_ms, until_ms, step=None, **more):
    parameters = dict({"from_": from_ms, "until": until_ms, "group_by": "host"}, **more)
    return server.json("/api/v1/timeline", **(dict(parameters, step=step) if step else parameters))


def compare(fleet, text):
    server = fleet.server
    for from_ms, until_ms in ((BURST - 40000, BURST + 60000), (START, START + 10 * MINUTE), (START + 17000, START + 17 * 7000)):
        for step, step_ms in (("1s", 1000), ("10s", 10000)):
            answer = timeline(server, from_ms, until_ms, step)
            equal([answer["step_ms"], answer["resolution_ms"], answer["from"], answer["until"]], [step_ms, 1000, from_ms, until_ms],
                  "%s: steps of %s" % (text, step))
            for host in ("one", "two"):
                equal(steps_of(answer, host), fleet.steps(from_ms, until_ms, step_ms, host=host), "as %s sent them" % host)
            equal([[at, lost] for at, _, lost in answer["reported"] if lost],
                  [[at, sum(n for _, t, n in fleet.lost if from_ms <= t < until_ms and at <= t < at + step_ms)]
                   for at in sorted({t // step_ms * step_ms for _, t, n in fleet.lost if n and from_ms <= t < until_ms})],
                  "what was lost is in its own step")
            equal(answer["accounting"]["lost"], sum(n for _, at, n in fleet.lost if from_ms <= at < until_ms), "lost in that time")
            equal(answer["accounting"].get("unexplained", 0), 0, "and nothing unexplained")
    seconds = timeline(server, START, START + 10 * MINUTE, "1s")
    minutes = timeline(server, START, START + 10 * MINUTE, "1m")
    equal(minutes["resolution_ms"], MINUTE, "%s: minutes are minutes" % text)
    for a, b in zip(seconds["series"], minutes["series"]):
        sums = collections.Counter()
        for at, value, _ in a["points"]:
            sums[at // MINUTE * MINUTE] += value
        equal([[at, sums[at]] for at, _, _ in b["points"]], [[at, value] for at, value, _ in b["points"]],
              "a minute's own sum is that of its seconds, to the unit: %s" % a["labels"]["host"])
    equal(seconds["accounting"]["reported_ms"], 10 * MINUTE, "two hosts report at once, not one after the other")
    equal(collections.Counter(entry[1] for entry in seconds["reported"]), {5000: 240, 0: 360}, "each second says how long its reports are")


def burst(fleet, text):
    server = fleet.server
    line = steps_of(timeline(server, BURST - 60000, BURST + 80000, "1s", match='{host="one"}'), "one")
    equal([at for at, samples in line if samples > 100], [BURST + 5000 * i for i in range(4)], "%s: a burst of 20 s is one" % text)
    found = collections.Counter()
    for frames, samples in server.folded(from_=BURST, until=BURST + 20000, match='{host="one"}'):
        found[frames[-1]] += samples
    equal(dict(found), {"storm": 4 * 400}, "the flame graph of exactly its range has nothing else")
    tree = server.flamegraph(from_=BURST, until=BURST + 20000, match='{host="one"}')
    equal([tree["from"], tree["until"], tree["accounting"]["resolution_ms"], tree["accounting"]["samples"],
           tree["accounting"]["reported_ms"]], [BURST, BURST + 20000, 1000, 1600, 20000], "and says of what time it is")
    for resource in ("top", "sandwich", "flamegraph", "timeline"):
        more = {"function": "storm"} if resource == "sandwich" else {}
        answer = server.json("/api/v1/" + resource, from_=BURST - 3000, until=BURST + 41000, **more)
        equal(answer["accounting"]["value"], VALUE * fleet.samples(BURST - 3000, BURST + 41000), "/%s: the same range, the same sum" % resource)


def by_minutes(server, text):
    answer = timeline(server, BURST, BURST + 20000, "1s")
    equal([answer["step_ms"], answer["resolution_ms"], answer["from"] % MINUTE, answer["until"] % MINUTE], [MINUTE, MINUTE, 0, 0],
          "%s: whole minutes, and it says so" % text)
    equal(server.flamegraph(from_=BURST, until=BURST + 20000)["accounting"]["resolution_ms"], MINUTE, "of flame graphs, too")


def quiet(fleet, from_ms, until_ms):
    for at_ms in range(from_ms, until_ms, 5000):
        is_burst = BURST <= at_ms + 1000 < BURST + 20000
        fleet.report("one", at_ms + 1000, {"storm": 400} if is_burst else {"idle": 2})
        fleet.report("two", at_ms + 3000, {"idle": 3}, lost=LOST if at_ms % MINUTE == 0 else 0)


def seconds():
    server = Server(data="seconds")
    fleet = Fleet(server)
    quiet(fleet, START, START + 10 * MINUTE)
    compare(fleet, "from memory")
    burst(fleet, "from memory")
    ahead = int(time.time() * 1000) + 2 * MINUTE
    fleet.report("ahead", ahead, {"idle": 7})
    equal(timeline(server, ahead, ahead + 1000, "1s")["accounting"]["samples"], 7, "a host's clock that is ahead: in its own seconds")
    check(wait_for(lambda: is_folded(server), 90), "samples are folded")
    compare(fleet, "from files")
    burst(fleet, "from files")
    before = timeline(server, START - 3 * 3600000 + 1000, START + 2 * MINUTE)
    equal(before["resolution_ms"] >= MINUTE, True, "a range that begins before is of whole minutes")
    for step in ("7s", "1500ms", "90s", "0s"):
        status, _, body = server.get("/api/v1/timeline", step=step)
        check(status == 422 and b"1m" in body, "step=%s is refused with a sentence" % step, body)
    status, _, body = server.request("DELETE", "/api/v1/samples?from=%d&until=%d&match=%%7Bhost%%3D%%22two%%22%%7D" % (BURST, BURST + 1000))
    equal(status, 200, "samples are deleted")
    by_minutes(server, "after a deletion")
    equal(server.flamegraph(from_=BURST, until=BURST + 20000, match='{host="two"}')["accounting"]["samples"], 0, "of which nothing is left")
    equal(server.flamegraph(from_=BURST, until=BURST + 20000, match='{host="one"}')["accounting"]["samples"],
          fleet.samples(BURST // MINUTE * MINUTE, BURST // MINUTE * MINUTE + MINUTE, "one"), "and of others all")
    server.stop()
    server.start()
    by_minutes(server, "after a restart")
    later = int(time.time() * 1000) + 6 * MINUTE
    fleet.report("ahead", later, {"idle": 5})
    answer = timeline(server, later - 1000, later + 1000, "1s")
    equal([answer["resolution_ms"], answer["accounting"]["samples"]], [1000, 5], "what comes then is known by the second again")
    server.stop()


def is_folded(server):
    text = server.get("/metrics")[2].decode()
    return any(line.startswith("farflame_server_folds_total ") and float(line.split()[1]) > 0 for line in text.splitlines())


def own_times():
    """Samples with times of their own are in the seconds of these, with exact."""
    server = Server(data="times")
    request = Request(BUILD)
    begin = START + 57000
    profile = request.profile(request.resource(**{"host.name": "one", "farflame.process": "api"}), time_ns=begin * 10**6)
    request.sample(profile, [("cpython", "f", "a.py", 3)], [5, VALUE * 5])
    times = [begin + at for at in (100, 1900, 2000, 3500, 4999)]
    profile.samples[-1].timestamps_unix_nano.extend(at * 10**6 for at in times)
    server.post(request.bytes())
    own = steps_of(timeline(server, START, START + 2 * MINUTE, "1s", exact="true"), "one")
    equal([[at, n] for at, n in own if n], [[at, n] for at, n in sorted(collections.Counter(t // 1000 * 1000 for t in times).items())],
          "each in its own second, across the minute's end")
    report = steps_of(timeline(server, START, START + 2 * MINUTE, "1s"), "one")
    equal([[at, n] for at, n in report if n], [[begin, 5]], "and else in that of their report")
    server.stop()


run(seconds, own_times)
