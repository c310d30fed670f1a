# SPDX-License-Identifier: Apache-2.0
"""The agent against servers that are away, slow, refuse or answer garbage: it goes on, in bounded memory, says
a change of state once, and ends within 3 s of SIGTERM."""
import gzip
import os
import re
import sys
import time

sys.path.insert(0, "tests/tools")
from harness import PROGRAMS, Agent, Server, build_programs, check, equal, free_port, need_bpf, note, run, start, wait_for  # noqa: E402
from post_server import PostServer  # noqa: E402


def resident_kib(agent):
    """Of the agent and its children."""
    total = 0
    for pid in [agent.process.pid] + children(agent.process.pid):
        try:
            total += int(re.search(r"^Pss:\s+(\d+)", open("/proc/%d/smaps_rollup" % pid).read(), re.M).group(1))
        except OSError:
            pass
    return total


def children(pid):
    found = []
    for task in os.listdir("/proc/%d/task" % pid):
        found += [int(p) for p in open("/proc/%d/task/%s/children" % (pid, task)).read().split()]
    return found


class FakeServer(PostServer):
    """Answers as told; counts what it is asked."""

    def __init__(self, answer):
        self.answer, self.requests = answer, []
        super().__init__(self.take)

    def take(self, handler, body):
        self.requests.append((time.monotonic(), handler.path, dict(handler.headers), body))
        self.answer(handler)

    def reports(self):
        return [r for r in self.requests if r[1].endswith("/v1development/profiles")]


def reply(status, body=b"", **headers):
    def answer(handler):
        handler.send_response(status)
        for key, value in headers.items():
            handler.send_header(key.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
    return answer


def stop_in_time(agent, what):
    status, seconds = agent.stop()
    check(seconds <= 3.2, "%s: SIGTERM ends it within 3 s" % what, "%.1f s, status %s" % (seconds, status))
    return status


def change_lines(agent):
    return [line for line in agent.text().splitlines() if re.search(r"reach|unavailable|server", line)]


def away():
    build_programs("burn")
    start([PROGRAMS + "/burn", "90", "120"])
    port = free_port()
    agent = Agent("--frequency", "199", "--report-interval", "1s", server="http://127.0.0.1:%d" % port, log="away.log")
    time.sleep(8)
    check(agent.process.poll() is None, "server away: it goes on", agent.text()[-500:])
    lines = change_lines(agent)
    check(1 <= len(lines) <= 4, "server away: said once, not with every try", "\n".join(lines))
    server = Server(port=port, data="away", log="away-server.log")
    check(wait_for(lambda: server.folded(), 40), "the server comes: what was waiting arrives")
    time.sleep(2)
    stop_in_time(agent, "server back")
    accounting = server.flamegraph()["accounting"]
    equal(accounting["taken"], accounting["samples"] + accounting["lost"], "nothing is missing afterwards")
    equal(accounting["lost"], 0, "and nothing was lost: the queue held it")


def away_all_the_time():
    agent = Agent("--frequency", "999", "--report-interval", "1s", "--queue-limit", "64K",
                  server="http://127.0.0.1:%d" % free_port(), log="away-all.log")
    time.sleep(3)
    begin = resident_kib(agent)
    time.sleep(10)
    grown = resident_kib(agent) - begin
    check(grown < 4096, "server away all the time: memory stays bounded", "grown by %d KiB from %d" % (grown, begin))
    stop_in_time(agent, "server away")


def refusing():
    fake = FakeServer(reply(400, b'{"error":{"code":"bad","message":"I do not like it"}}', Content_Type="application/json"))
    agent = Agent("--frequency", "99", "--report-interval", "1s", server=fake.url, log="refusing.log")
    wait_for(lambda: len(fake.reports()) >= 4, 15)
    check(len(fake.reports()) >= 4, "400: each report is sent, none again and again", len(fake.reports()))
    bodies = [gzip.decompress(r[3]) for r in fake.reports()]
    equal(len(set(bodies)), len(bodies), "400: no report twice")
    stop_in_time(agent, "400")
    fake.close()


def busy():
    fake = FakeServer(reply(429, Retry_After="3"))
    agent = Agent("--frequency", "99", "--report-interval", "1s", server=fake.url, log="busy.log")
    wait_for(lambda: len(fake.reports()) >= 3, 20)
    times = [r[0] for r in fake.reports()]
    gaps = [b - a for a, b in zip(times, times[1:])]
    check(gaps and min(gaps) >= 2.9, "429 with Retry-After: 3 is heeded", gaps)
    stop_in_time(agent, "429")
    fake.close()


def garbage():
    def answer(handler):
        handler.wfile.write(b"\x00\xffnonsense without end " * 1000)
        handler.close_connection = True

    fake = FakeServer(answer)
    agent = Agent("--frequency", "99", "--report-interval", "1s", server=fake.url, log="garbage.log")
    time.sleep(6)
    check(agent.process.poll() is None, "garbage: it goes on", agent.text()[-500:])
    check(fake.reports(), "garbage: it tries")
    note("%d tries in 6 s" % len(fake.reports()))
    check(len(fake.reports()) < 20, "garbage: it backs off", len(fake.reports()))
    stop_in_time(agent, "garbage")
    fake.close()


def slow():
    def answer(handler):
        time.sleep(60)

    fake = FakeServer(answer)
    agent = Agent("--frequency", "99", "--report-interval", "1s", server=fake.url, log="slow.log")
    time.sleep(6)
    check(agent.process.poll() is None, "a server that does not answer: it goes on", agent.text()[-500:])
    stop_in_time(agent, "a server that does not answer")
    fake.close()


need_bpf()
run(away, away_all_the_time, refusing, busy, garbage, slow)
