# SPDX-License-Identifier: Apache-2.0
"""DELETE /api/v1/samples while reports come: what is selected goes, all else stays exactly, the accounting says so, a
start after SIGKILL brings nothing back; what was not clearly meant is refused."""
import json
import sys
import threading
import time
import urllib.parse

from harness import BUILD, Server, check, equal, run

sys.path.insert(0, "tests/tools")
import otlp  # noqa: E402
from otlp_writer import Request  # noqa: E402

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


if __name__ == "__main__":
    otlp.messages(BUILD)
    run(deleting)
