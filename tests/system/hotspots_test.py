# SPDX-License-Identifier: Apache-2.0
"""When a process changed what it does: simulated hours whose mix is known, drawn sample by sample. PROCESSES=50 and
MINUTES=1440 for a fleet's day; REAL=1 runs a program that changes its mix once, under an agent, for eight minutes."""
import os
import random
import subprocess
import sys
import time
import urllib.parse

from harness import BUILD, PROGRAMS, Agent, Server, build_programs, check, equal, need_bpf, note, run, start, wait_for

sys.path.insert(0, "tests/tools")
from otlp_writer import Request  # noqa: E402

PERIOD = 52631579  # of 19 Hz
MINUTE = 60
PROCESSES = int(os.environ.get("PROCESSES", "8"))
MINUTES = int(os.environ.get("MINUTES", "60"))
START = (int(time.time()) // MINUTE - MINUTES - 5) * MINUTE
FUNCTIONS = ["work_%d" % i for i in range(30)]
SHARES = [1 / (1 + i) for i in range(30)]
HOSTS = ["web-1", 'web"2\\']
JITTERY, JITTER = 3, MINUTES * 2 // 3
CHANGED, CHANGE = 5, MINUTES // 3
DRIFTS = 6


def functions_of(process, minute, is_changing, generator):
    """Samples of one process and minute: a fifth of one CPU's ticks."""
    drawn = generator.choices(FUNCTIONS, SHARES, k=generator.randint(150, 300))
    if is_changing and process == JITTERY and minute == JITTER:
        drawn += ["jitter"] * 57  # three seconds
    if is_changing and process == CHANGED and minute >= CHANGE:
        drawn = ["arrived" if generator.random() < 0.05 else name for name in drawn]
    if is_changing and process == DRIFTS:
        drawn = ["drifts" if generator.random() < 0.3 * minute / MINUTES else name for name in drawn]
    return drawn


def send(server, is_changing, type_="on-cpu", unit="nanoseconds", seed=7, weigh=lambda generator: PERIOD):
    generator, tally = random.Random(seed), {}
    for minute in range(MINUTES):
        made = Request(BUILD)
        for process in range(PROCESSES):
            labels = {"host.name": HOSTS[process % 2], "farflame.process": "p%d" % process}
            profile = made.profile(made.resource(**labels), type_, unit,
                                   time_ns=(START + minute * MINUTE + 7) * 10**9)
            counts = {}
            for name in functions_of(process, minute, is_changing, generator):
                sums = counts.setdefault(name, [0, 0])
                sums[0] += 1
                sums[1] += weigh(generator)
            for name, sums in counts.items():
                made.sample(profile, [("cpython", "leaf", "p.py", 9)] * (type_ != "on-cpu") +
                            [("cpython", name, "p.py", 1), ("cpython", "main", "p.py", 2)], sums)
                tally[process, minute, name] = sums[1]
        equal(server.post(made.bytes())[0], 200, "minute %d is taken" % minute) if minute % 30 == 0 else \
            server.post(made.bytes())
    return tally


def hotspots(server, **more):
    return server.json("/api/v1/hotspots", **{"from": START, "until": START + MINUTES * MINUTE, **more})


def minute_of(time_ms):
    return (time_ms // 1000 - START) / MINUTE


def names(moved):
    return [row["name"] for row in moved]


def follow(server, change, name):
    """What the links show is what changed."""
    links = change["links"]
    status, _, body = server.request("GET", links["flamegraph"] + "&format=folded")
    equal(status, 200, "the link to a flame graph is answered: " + links["flamegraph"])
    check(name.encode() in body, "and has %s" % name, body[:300].decode())
    status, _, body = server.request("GET", links["diff"] + "&format=csv")
    equal(status, 200, "the link to a comparison is answered: " + links["diff"])
    check(name.encode() in body, "and has %s" % name, body[:300].decode())
    state = dict(urllib.parse.parse_qsl(links["page"].partition("#")[2]))
    folded = server.folded(type=state["type"], from_=state["from"], until=state["until"],
                           match="{%s}" % state["match"])
    check(any(name in stack for stack, _ in folded), "the page's link selects the same", str(state))


def changes_are_found():
    server = Server()
    begun = time.monotonic()
    tally = send(server, True)
    note("sent in %.1f s" % (time.monotonic() - begun))
    begun = time.monotonic()
    answer = hotspots(server, step="1m" if MINUTES <= 2000 else "")
    note("answered in %.0f ms" % (1000 * (time.monotonic() - begun)))
    by_process = {}
    for change in answer["changes"]:
        by_process.setdefault(change["labels"]["process"], []).append(change)
    equal(sorted(by_process), ["p3", "p5", "p6"], "the three that changed, and none else")
    jitter = by_process.get("p3", [{}])
    equal(len(jitter), 1, "the jitter is one change")
    equal((minute_of(jitter[0]["from"]), minute_of(jitter[0]["until"])), (JITTER, JITTER + 1), "its minute")
    equal(jitter[0]["labels"]["host"], HOSTS[1], "its host")
    equal(names(jitter[0]["rose"]), ["jitter"], "its function")
    equal((jitter[0]["lasting"], jitter[0]["rose"][0]["before"]), (False, 0), "it passed, and was new")
    follow(server, jitter[0], "jitter")
    arrived = by_process.get("p5", [{}])
    equal(len(arrived), 1, "the new function is one change")
    check(abs(minute_of(arrived[0]["from"]) - CHANGE) <= 1, "since its minute", str(arrived[0]))
    equal((names(arrived[0]["rose"]), arrived[0]["lasting"]), (["arrived"], True), "its function, to the end")
    check(0.03 < arrived[0]["rose"][0]["after"] < 0.07, "of 5 %", str(arrived[0]["rose"]))
    follow(server, arrived[0], "arrived")
    drift = by_process.get("p6", [{}])
    check(all("drifts" in names(one["rose"] + one["fell"]) for one in drift), "the drift is of its function", str(drift))
    check(any(MINUTES / 5 < minute_of(one["from"]) < MINUTES * 4 / 5 and "drifts" in names(one["rose"])
              for one in drift), "somewhere in its hour", str(drift))
    steps_agree(answer, tally)
    equal([one for one in hotspots(server, match='{process="p1"}')["changes"]], [], "one that did not change: none")
    equal(hotspots(server, min_change="0.5")["changes"], [], "changes of half of a process: none")
    narrow = hotspots(server, match='{process=~"p[35]"}', focus="arrived|work_0")
    check(all("focus=" in change["links"]["flamegraph"] and "p%5B35%5D" in change["links"]["diff"]
              for change in narrow["changes"]) and narrow["changes"], "links repeat what was asked", str(narrow)[:500])
    equal(len(hotspots(server, limit=1)["changes"]), 1, "at most so many")
    check(hotspots(server, limit=1)["changes_left_out"] >= 2, "and the others counted")
    equal(hotspots(server, group_by="")["processes_left_out"], 0, "all as one process")


def steps_agree(answer, tally):
    names_of = [function["name"] for function in answer["functions"]]
    equal(len(answer["processes"]), min(10, PROCESSES), "processes shown")
    for shown in answer["processes"]:
        process = int(shown["labels"]["process"][1:])
        shares = {}
        for step in shown["steps"]:
            minute = int(minute_of(step["time"]))
            want = {name: value for (p, m, name), value in tally.items() if (p, m) == (process, minute)}
            got = {names_of[row["function"]]: row["value"] for row in step["top"]}
            if step["value"] != sum(want.values()) or any(want.get(name) != value for name, value in got.items()) or \
                    sorted(got.values()) != sorted(want.values())[-len(got):]:
                check(False, "p%d, minute %d as sent" % (process, minute), "%s\n%s" % (want, step))
            for row in step["top"]:
                share = row["value"] / step["value"]
                before = shares.get(names_of[row["function"]], 0)
                if abs(row["share"] - share) > 2e-6 or (shares and abs(row["change"] - (share - before)) > 3e-6):
                    check(False, "shares and changes", str(step))
            shares = {name: value / step["value"] for name, value in want.items()}
    check(True, "each step's functions, shares and changes as sent")


def nothing_changes():
    server = Server(data="same", log="same.log")
    send(server, False)
    equal(hotspots(server)["changes"], [], "the same mix all the time: no change")
    send(server, False, "off-cpu", seed=8, weigh=lambda generator: int(generator.paretovariate(1.5) * 1e5))
    answer = hotspots(server, type="off-cpu")
    equal(answer["changes"], [], "waits of very different lengths: no change")
    equal(answer["sort"], "total", "of callers, where leaves say nothing")
    send(server, True, "mem-alloc", "bytes", seed=9, weigh=lambda generator: generator.choice([64, 4096, 65536]))
    found = {(change["labels"]["process"], name) for change in hotspots(server, type="mem-alloc")["changes"]
             for name in names(change["rose"])}
    check({("p5", "arrived"), ("p6", "drifts")} <= found and not {p for p, _ in found} - {"p3", "p5", "p6"},
          "allocations of different sizes: the functions that changed", str(found))


def refusals():
    server = Server(data="refuse", log="refuse.log")
    for parameters, sentence in ((dict(step="90s"), "not a multiple of 1m"), (dict(step="soon"), "'step'"),
                                 (dict(min_change="2"), "not a share from 0 to 1"), (dict(min_change="x"), "not a share"),
                                 (dict(sort="name"), "'sort'"), (dict(top=0), "'top'"), (dict(format="svg"), "'format'"),
                                 (dict(type="cpu"), "cpu"), (dict(step="1m", from_="now-30d"), "more than 2000 steps")):
        status, _, body = server.get("/api/v1/hotspots", **parameters)
        check(status == 422 and sentence.encode() in body, "%s: refused with a sentence" % parameters, body.decode())
    equal(server.json("/api/v1/hotspots")["changes"], [], "nothing there: no changes")
    server.stop()
    small = Server("--query-memory", "8M", data="same", log="small.log")
    status, _, body = small.get("/api/v1/hotspots", from_=START, until=START + MINUTES * MINUTE, type="off-cpu",
                                group_by="host,process,thread", step="1m")
    check(status in (200, 422), "with little memory: an answer or a sentence", body[:200].decode())


def real_program():
    if not os.environ.get("REAL"):
        note("REAL=1 runs a program under an agent for four minutes")
        return
    need_bpf()
    build_programs("mix")
    server = Server(data="real", log="real.log")
    Agent("--report-interval", "5s", server=server)
    begun = int(time.time())
    moment = begun // MINUTE * MINUTE + 6 * MINUTE + 30  # six minutes or more can be told of
    program = start([os.path.join(PROGRAMS, "mix"), str(moment), "3", str(moment + 90)])
    program.wait(600)
    wait_for(lambda: any(change["until"] for change in server.json(
        "/api/v1/hotspots", match='{process="mix"}', from_=begun - 60, until="now")["changes"]), 60)
    answer = server.json("/api/v1/hotspots", match='{process="mix"}', from_=begun - 60, until="now")
    note(str(answer["changes"]))
    equal(len(answer["changes"]), 1, "one change")
    change = answer["changes"][0]
    check(change["from"] <= moment * 1000 < change["until"] and change["until"] - change["from"] == 60000,
          "in the minute of that second")
    equal(names(change["rose"]), ["rare_work"], "the function")
    follow(server, change, "rare_work")


run(changes_are_found, nothing_changes, refusals, real_program)
