# SPDX-License-Identifier: Apache-2.0
"""± on a real program: of its two functions' shares, known from all of its samples, nineteen in twenty short draws lie as
near as the API says; and it is not said that they are farther off than they are. Of memory in windows, what agents tell of
how these differ is in it, and that nothing is told is said."""
import json
import os
import subprocess
import sys
import time

from harness import BUILD, PROGRAMS, Agent, Server, build_programs, check, equal, need_bpf, note, run, skip, wait_for

sys.path.insert(0, "tests/tools")
from otlp_writer import Request  # noqa: E402

SECONDS, DRAWS = 24, 40


def share_error(part, whole, e, all_e):
    """As the API's description has it."""
    p = part / whole
    return max(0, e * e * (1 - 2 * p) + p * p * all_e * all_e) ** 0.5 / whole


def ask(server, **parameters):
    status, _, body = server.get("/api/v1/top", match='{process="mix"}', **parameters)
    answer = json.loads(body)
    if status != 200:
        raise RuntimeError(answer)
    work = {f["name"]: f for f in answer["functions"] if f["name"].endswith("_work")}
    return work, answer["accounting"]


def draws():
    build_programs("mix")
    server = Server()
    agent = Agent("--frequency", "997", "--report-interval", "2s", "--timestamps", server=server)
    begin = time.time()
    subprocess.run([os.path.join(PROGRAMS, "mix"), "0", "0", str(begin + SECONDS)], check=False, timeout=SECONDS + 60)
    until = time.time()
    agent.stop()
    server.wait_for_names(lambda rows: any("usual_work" in frames for frames, _ in rows), match='{process="mix"}')
    work, accounting = ask(server, from_="now-10m")
    if accounting["samples"] < 60 * DRAWS:
        return skip("%d samples: the machine is too busy" % accounting["samples"])
    of = work["usual_work"]["self"] / accounting["value"]
    note("usual_work has %.4f ± %.4f of %d samples" % (of, share_error(
        work["usual_work"]["self"], accounting["value"], work["usual_work"]["self_error"], accounting["error"]), accounting["samples"]))
    # On a busy machine the program runs less, and a draw has to be longer.
    count = max(DRAWS // 2, min(DRAWS, accounting["samples"] // 120))
    inside, errors, step = [], [], (until - begin) / count
    for i in range(count):
        from_ms = int(1000 * (begin + i * step))
        work, accounting = ask(server, exact="true", from_=from_ms, until=int(from_ms + 1000 * step))
        if accounting["samples"] < 50:
            continue
        f = work["usual_work"]
        error = share_error(f["self"], accounting["value"], f["self_error"], accounting["error"])
        errors.append((f["self"] / accounting["value"] - of) / error)
        inside.append(abs(errors[-1]) <= 1)
    # Of 40 with a chance of 0.95 fewer than 30 lie within in one of 10 million runs, of 0.5 as many in one of a thousand;
    # of 20 fewer than 15 in one of three thousand, and as many in one of fifty.
    check(len(inside) >= 0.75 * count and sum(inside) >= 0.75 * len(inside), "draws lie within ± of the share", (sum(inside), len(inside), errors))
    spread = (sum(error * error for error in errors) / len(errors)) ** 0.5
    note("%d of %d within; a draw is off by %.2f of ± (0.51 by chance)" % (sum(inside), len(inside), spread))
    # What alternates evenly comes out more even than chance has it: an upper bound, as is said; but not by orders.
    check(0.05 <= spread <= 1, "± is as large as draws are off", spread)


def windows_report(host, agent_id, more):
    made = Request(BUILD)
    when = (int(time.time()) // 60 - 3) * 60 * 10**9
    profile = made.profile(made.resource(**{"host.name": host, "farflame.process": "takes"}), "mem-alloc", "bytes", time_ns=when)
    for k in range(20):
        made.sample(profile, [("native", "by_%d" % k, "a.c", k)], [5 + k, 1000 * (5 + k)])
    made.counters(host, agent_id, 1, 0, 100, time_ns=when, more=more)
    return made.bytes()


def told_windows():
    """Three hosts of equal samples: not of windows, of windows that are told, of windows that are not (older agents)."""
    server = Server()
    hosts = {"none": {}, "told": {"mem.windows": 20, "mem.windows_within": 1000, "mem.windows_between": 2500},
             "untold": {"mem.windows": 20}}
    for i, (host, more) in enumerate(hosts.items()):
        equal(server.post(windows_report(host, "%02d" % i * 16, more))[0], 200, "the report is taken")
    got = {}
    for host in hosts:
        question = dict(type="mem-alloc", from_="now-10m", match='{host="%s"}' % host)
        got[host] = [server.json("/api/v1/" + path, **question, **more)["accounting"] for path, more in (
            ("top", {}), ("flamegraph", {}), ("timeline", {"focus": "by_"}), ("sandwich", {"function": "by_3"}))]
        check(len({(a["error"], a.get("windows"), a.get("error_is_least")) for a in got[host]}) == 1, "%s: one ± everywhere" % host, got[host])
    alone = 1.959964 * ((n := sum(5 + k for k in range(20))) + 1) ** 0.5 * 1000
    check(abs(got["none"][0]["error"] - alone) <= 1 and "windows" not in got["none"][0], "no windows: of the samples alone",
          (got["none"][0], alone))
    lines = {host: server.json("/api/v1/timeline", type="mem-alloc", from_="now-10m", match='{host="%s"}' % host)["accounting"] for host in hosts}
    check(lines["untold"]["error"] == lines["none"]["error"] < 0.6 * lines["told"]["error"] and "error_is_least" in lines["untold"],
          "so in time lines, whose sums tell less of samples", lines)
    design = 1 + 2500 / 1000 * (1 + 3.6 / 20)
    want = 1.959964 * 1000 * (n * design + design ** 2) ** 0.5
    check(abs(got["told"][0]["error"] - want) <= 1, "told: larger by what windows differ more", (got["told"][0], want))
    equal((got["told"][0]["windows"], "error_is_least" in got["told"][0]), (20, False), "told: and it is no bound")
    equal((got["untold"][0]["error"], got["untold"][0].get("error_is_least")), (got["none"][0]["error"], True),
          "untold: at least what the samples alone are off, which is said")
    text = server.get("/api/v1/flamegraph", type="mem-alloc", format="md", from_="now-10m", match='{host="untold"}')[2].decode()
    check("at least: how the moments differ" in text, "untold: in reports too", text[-900:])


def memory():
    """What a program takes, by its own tally: nearly all sites lie within ±, their sum within ± and what the probes' price may be
    off by."""
    build_programs("takes")
    server, inside, sites, sums = Server(), 0, 0, []
    price = 0.2  # known so far, on a busy machine
    for _ in range(3):
        program = subprocess.Popen([os.path.join(PROGRAMS, "takes"), "10", "40000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        program.stdout.readline()
        begin = int(1000 * time.time())
        agent = Agent("--profile", "mem-alloc", "--report-interval", "2s", "--mem-budget", "20%", "--pid", str(program.pid),
                      "--host", "h%d" % begin, server=server)
        check(wait_for(lambda: "profiling" in agent.text(), 60), "the agent profiles", agent.text())
        program.stdin.write("\n")
        program.stdin.flush()
        tally = {line.split()[0]: int(line.split()[1]) for line in program.stdout if line.startswith("by_")}
        agent.stop()
        question = dict(type="mem-alloc", from_=begin, match='{host="h%d"}' % begin)
        server.wait_for_names(lambda rows: any("by_realloc" in frames for frames, _ in rows), **question)
        got = server.json("/api/v1/top", limit=10000, **question)
        all_, functions = got["accounting"], {f["name"]: f for f in got["functions"]}
        if all_.get("windows", 0) < 5 or "error_is_least" in all_:
            skip("%s windows: too busy a machine" % all_.get("windows"))
            continue
        near = [abs(functions[site]["total"] - want) <= functions[site]["total_error"] + price * want for site, want in tally.items()]
        inside, sites = inside + sum(near), sites + len(near)
        total = sum(tally.values())
        sums.append((all_["value"] / total - 1, all_["error"] / total))
        note("%d windows, %d samples: the sum is off by %+.1f %%, ± %.1f %%; %d of %d sites within ±" % (
            all_["windows"], all_["samples"], 100 * sums[-1][0], 100 * sums[-1][1], sum(near), len(near)))
    if sums:
        check(inside >= 0.8 * sites, "sites lie within ±", (inside, sites))
        check(sum(abs(off) <= error + price for off, error in sums) >= len(sums) - 1 and max(error for _, error in sums) < 0.5,
              "sums lie within ± and what the price may be off by, and ± says something", sums)


need_bpf()
run(draws, told_windows, memory)
