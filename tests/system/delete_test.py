# SPDX-License-Identifier: Apache-2.0
"""DELETE /api/v1/samples while reports come: what is selected goes, all else stays exactly, the accounting says so, a
start after SIGKILL brings nothing back; what was not clearly meant is refused."""
import glob
import json
import os
import subprocess
import sys
import threading
import time
import urllib.parse

from harness import BUILD, WORK, Server, check, equal, files_with, run, wait_for

sys.path.insert(0, "tests/tools")
sys.path.insert(0, "tests/system")
import otlp  # noqa: E402
from otlp_writer import Request  # noqa: E402
from store_faults_test import put, shim  # noqa: E402

PERIOD = 10101010
THREADS = 3


def report(host, number):
    made = Request(BUILD)
    profile = made.profile(made.resource(**{"host.name": host, "farflame.process": "p%d" % (number % 4)}),
                           profile_id=b"%4s%08d" % (host.encode(), number) + bytes(4))
    for thread in range(THREADS):
        frames = [("native", made.mapping("lib%d.so" % k, "%040x" % (k + 1)), 0x1000 + number % 90 * 8) for k in range(5)]
        made.sample(profile, frames, [1, PERIOD], thread="t%d" % thread)
    made.counters(host, "%032x" % (int(host[1:]) + 1), number + 1, number, THREADS * (number + 1))
    return made.bytes()


def delete(server, **parameters):
    parameters = {k.rstrip("_"): v for k, v in parameters.items()}
    status, _, body = server.request("DELETE", "/api/v1/samples?" + urllib.parse.urlencode(parameters))
    return status, json.loads(body)


def refusals(server):
    for parameters, part in (({"from_": "now-1h", "until": "now"}, "all=true"),
                             ({"match": "{}", "from_": "now-1h", "until": "now"}, "all=true"),
                             ({"match": '{host="h1"}', "until": "now"}, "'from'"),
                             ({"match": '{host="h1"}', "from_": "now-1h"}, "'until'"),
                             ({"match": '{host="h1"}', "all": "true", "from_": "now-1h", "until": "now"}, "not both"),
                             ({"match": '{host=}', "from_": "now-1h", "until": "now"}, "match"),
                             ({"match": '{host="h1"}', "from_": "now", "until": "now-1h"}, "after"),
                             ({"match": '{host="h1"}', "typ": "on-cpu", "from_": "now-1h", "until": "now"}, "not known")):
        status, said = delete(server, **parameters)
        check(status == 422 and part in said["error"]["message"], "%s: refused" % parameters, (status, said))


def counts(server, **more):
    shown = {}
    for frames, value in server.folded(group_by="host,process,thread", from_="now-3h", **more):
        key = tuple(frames[:3])
        shown[key] = shown.get(key, 0) + value
    return shown


def check_whole(server, sent, choose, what):
    wanted = {}
    for host, upto in sent.items():
        for n in range(upto):
            for thread in range(THREADS):
                key = (host, "p%d" % (n % 4), "t%d" % thread)
                if choose(key, n):
                    wanted[key] = wanted.get(key, 0) + 1
    equal(counts(server), wanted, what)
    accounting = server.flamegraph(from_="now-3h")["accounting"]
    taken = THREADS * sum(sent.values())
    equal((accounting["taken"], accounting["samples"], accounting["lost_by"].get("deleted", 0),
           accounting["lost_by"]["unexplained"]), (taken, sum(wanted.values()), taken - sum(wanted.values()), 0),
          what + ": the accounting says so")


def deleting():
    server = Server(data="deleting")
    refusals(server)
    sent = {"h1": 60, "h2": 0, "h3": 40}
    for host in ("h1", "h3"):
        for n in range(sent[host]):
            server.post(report(host, n))
    stop = threading.Event()

    def send():
        while not stop.is_set() or not sent["h2"]:
            if server.post(report("h2", sent["h2"]))[0] == 200:
                sent["h2"] += 1

    thread = threading.Thread(target=send)
    thread.start()
    time.sleep(0.5)
    span = {"from_": "now-1h", "until": "now+1m"}
    equal((delete(server, match='{host="h1"}', **span)[1]["deleted_samples"]), 60 * THREADS, "a host, while another sends")
    equal((delete(server, match='{host="h3",process=~"p[01]",thread="t2"}', type="on-cpu", **span)[1]["deleted_samples"]),
          20, "a thread of two processes")
    equal((delete(server, match='{host="h1"}', **span)[1]["deleted_samples"]), 0, "asked again: nothing is left of it")
    stop.set()
    thread.join()

    def stays(key, _):
        return key[0] != "h1" and not (key[0] == "h3" and key[1] in ("p0", "p1") and key[2] == "t2")

    check_whole(server, sent, stays, "afterwards")
    server.kill()
    server.start()
    check_whole(server, sent, stays, "after SIGKILL and a start")
    for n in range(5):
        equal(server.post(report("h1", n))[0], 200, "what was deleted, sent again") if n == 0 else \
            server.post(report("h1", n))
    check_whole(server, sent, stays, "is known and stays away")
    status, said = delete(server, all="true", **span)
    equal(status, 200, "all of it")
    equal(counts(server), {}, "is gone")
    server.stop()


def of_secrets(host, when_ns, frames, seq):
    made = Request(BUILD)
    profile = made.profile(made.resource(**{"host.name": host, "farflame.process": "process-of-" + host}), time_ns=when_ns)
    mapping = made.mapping("library-of-" + host, "%040x" % len(host))
    for i in range(frames):
        made.sample(profile, [("python", "function_of_" + host, "file_of_%s.py" % host, i), ("native", mapping, 64 * i)],
                    [1, PERIOD], thread="thread-of-" + host)
    made.counters(host, "%032x" % len(host), seq, seq - 1, frames * seq, time_ns=when_ns)
    return made.bytes()


def databases(folder):
    """symbols.db has the modules of the whole fleet, whoever ran them."""
    return [path for path in glob.glob(folder + "/*.db*") if "symbols" not in path]


def names_gone():
    """What is deleted leaves no name behind in any database, and what stays keeps its own; the silent agent goes too."""
    os.environ["FAULTS"] = WORK + "/faults"
    environment = shim()
    put("errno", "0")
    put("clock", "-3600")  # the agents were heard an hour ago
    os.environ.update(environment)
    try:
        server = Server(data="secrets", log="early.log")
        now = time.time_ns() - 3600 * 10**9
        for host in ("secret-host", "plain-host"):
            for seq, when in ((1, now - 3 * 86400 * 10**9), (2, now)):
                equal(server.post(of_secrets(host, when, 20, seq))[0], 200, "a report of " + host)
        server.stop()
    finally:
        del os.environ["LD_PRELOAD"]
    folder = WORK + "/secrets"
    server = Server(data="secrets", log="late.log")
    wait_for(lambda: glob.glob(folder + "/hours-*.db"), 10)
    for text in ("secret-host", "function_of_secret", "thread-of-secret", "library-of-secret", "file_of_secret"):
        check(files_with(text, databases(folder)), "before: '%s' is in databases" % text)
    status, said = delete(server, match='{host="secret-host"}', from_="now-9d", until="now")
    equal((status, said.get("deleted_samples")), (200, 40), "all samples of the host, of today's too")
    found = wait_for(lambda: not files_with("secret", databases(folder)), 75)
    check(found, "no name of it is left, in no database", files_with("secret", databases(folder)))
    check(files_with("plain-host", databases(folder)) and files_with("function_of_plain", databases(folder)), "others' are")
    hosts = {row["host"] for row in server.json("/api/v1/agents")["agents"]}
    equal(hosts, {"plain-host"}, "its agent, silent for an hour, is forgotten")
    rows = server.folded(group_by="host", from_="now-9d", until="now")
    equal(sum(value for _, value in rows), 40, "the other host's samples are all there")
    check(any("function_of_plain-host" in frame for frames, _ in rows for frame in frames), "with their names", rows[:3])
    accounting = server.flamegraph(from_="now-9d", until="now")["accounting"]
    equal((accounting["taken"], accounting["samples"] if "samples" in accounting else 40, accounting["lost_by"].get("deleted"),
           accounting["lost_by"].get("unexplained", 0)), (80, 40, 40, 0), "the accounting says what went")
    equal(server.post(of_secrets("secret-host", time.time_ns(), 3, 1))[0], 200, "a host that comes back")
    equal(sum(value for _, value in server.folded(match='{host="secret-host"}', from_="now-9d")), 3, "begins anew")
    server.stop()
    done = subprocess.run([BUILD + "/farflame-server", "--data", folder, "--verify"], capture_output=True, text=True)
    equal(done.returncode, 0, "--verify finds nothing")
    server.start()
    equal(sum(value for _, value in server.folded(from_="now-9d", until="now+1m")), 43, "after a start too")
    server.stop()


if __name__ == "__main__":
    otlp.messages(BUILD)
    run(deleting, names_gone)
