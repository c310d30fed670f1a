# SPDX-License-Identifier: Apache-2.0
"""SIGKILL while eight clients send: what was answered 200 is there exactly once afterwards, whatever was retried.
KILLS=100 (make check-kill) is the long form."""
import http.client
import os
import random
import sys
import threading
import time

from harness import BUILD, Server, check, equal, note, run, wait_for

sys.path.insert(0, "tests/tools")
from otlp_writer import Request  # noqa: E402

KILLS = int(os.environ.get("KILLS", "6"))
CLIENTS = 8
PERIOD = 10101010


def report(client, number):
    """One report of one sample under a thread name of its own, with the agent's counters."""
    made = Request(BUILD)
    resource = made.resource(**{"host.name": "host%d" % client, "farflame.process": "p%d" % client})
    profile = made.profile(resource, profile_id=b"%04d%08d" % (client, number) + bytes(4))
    frames = [("native", made.mapping("lib%d.so" % (number % 7), "%040x" % (number % 7 + 1)), 0x100 + number % 50)]
    made.sample(profile, frames, [1, PERIOD], thread="r%d" % number)
    made.counters("host%d" % client, "%032x" % (client + 1), number + 1, number, number + 1)
    return made.bytes()


class Client(threading.Thread):
    """Sends reports one after the other, each again and again until it is answered 200."""

    def __init__(self, number, port, stop):
        super().__init__()
        self.number, self.port, self.stop = number, port, stop
        self.acknowledged, self.retries, self.strange = 0, 0, []

    def run(self):
        while not self.stop.is_set():
            body = report(self.number, self.acknowledged)
            while not self.send(body):
                self.retries += 1
                time.sleep(0.02)
            self.acknowledged += 1

    def send(self, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request("POST", "/v1development/profiles", body, {"Content-Type": "application/x-protobuf"})
            answer = connection.getresponse()
            answer.read()
            if answer.status not in (200, 429, 503):
                self.strange.append(answer.status)
            return answer.status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def killed():
    random.seed(11)
    server = Server(data="killed")
    stop = threading.Event()
    clients = [Client(i, server.port, stop) for i in range(CLIENTS)]
    for client in clients:
        client.start()
    slowest = 0
    for _ in range(KILLS):
        time.sleep(random.uniform(0.05, 0.8))
        server.kill()
        begin = time.monotonic()
        server.start()
        slowest = max(slowest, time.monotonic() - begin)
    stop.set()
    for client in clients:
        client.join()
    note("%d kills, %d reports, %d retries, slowest start %.2f s" % (
        KILLS, sum(c.acknowledged for c in clients), sum(c.retries for c in clients), slowest))
    equal([c.strange for c in clients if c.strange], [], "no answer but 200, 429 and 503")
    for restarted in (False, True):
        if restarted:
            server.stop()
            server.start()
        compare(server, clients, "after a clean restart" if restarted else "after the last kill")


def compare(server, clients, when):
    shown = {}
    for frames, value in server.folded(group_by="process,thread", from_="now-3h"):
        shown[tuple(frames[:2])] = shown.get(tuple(frames[:2]), 0) + value
    wanted = {("p%d" % c.number, "r%d" % n): 1 for c in clients for n in range(c.acknowledged)}
    missing = sorted(set(wanted) - set(shown))
    twice = sorted(k for k, v in shown.items() if v > 1)
    unasked = sorted(set(shown) - set(wanted))
    check(not missing, when + ": every acknowledged report is there", "%d missing: %s" % (len(missing), missing[:10]))
    check(not twice, when + ": none is there twice", twice[:10])
    check(not unasked, when + ": nothing else is there", unasked[:10])
    accounting = server.flamegraph(from_="now-3h")["accounting"]
    equal((accounting["taken"], accounting["lost"], accounting["lost_by"]["unexplained"]), (len(wanted), 0, 0),
          when + ": the accounting closes")
    agents = {a["host"]: a["taken"] for a in server.json("/api/v1/agents")["agents"]}
    equal(agents, {"host%d" % c.number: c.acknowledged for c in clients}, when + ": so do the agents' counts")


if __name__ == "__main__":
    run(killed)
