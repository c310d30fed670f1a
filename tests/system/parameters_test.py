# SPDX-License-Identifier: Apache-2.0
"""Every parameter of every question in openapi.yaml with every bad value we could think of, alone and several at
a time: an answer, or one clear sentence with the right status; never a 500, and the server goes on.

FARFLAME_PARAMETER_SHARE: which part of all pairs of parameter and value is asked, by chance (default 0.1, 1 for
all); FARFLAME_PARAMETER_ROUNDS: how many mixed questions (default 200); FARFLAME_PARAMETER_SEED.
"""
import json
import os
import random
import re
import socket
import sys
import time

from harness import BUILD, Server, check, equal, note, run

sys.path.insert(0, "tests/tools")
from otlp_writer import Request  # noqa: E402

ROUNDS = int(os.environ.get("FARFLAME_PARAMETER_ROUNDS", "200"))
SHARE = float(os.environ.get("FARFLAME_PARAMETER_SHARE", "0.1"))
SEED = int(os.environ.get("FARFLAME_PARAMETER_SEED", "6"))
LONG = 7000
FINE = {"type": "on-cpu", "from": "now-1h", "until": "now", "function": "f", "id": "0" * 16}
ALLOWED = {200, 400, 404, 406, 414, 422, 431, 501}
BAD = [
    "", " ", "0", "-1", "1", "1.5", "1e300", "-1e300", "nan", "inf", "-inf", "NaN", "0x10", "1_000", "９", "+5",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551616", "9" * 400,
    "true", "TRUE", "false", "null", "[]", "{}", "{", "}", "{=}", '{a="b"', '{a="b"}', '{a=~"("}', '{a!~".*"}',
    '{a="b",}', '{,}', '{a="b" b="c"}', '{"a"="b"}', '{a="\\', '{a="\\x"}', '{__name__="x"}', 'up{a="b"}',
    "{" + ",".join('l%d="v"' % i for i in range(300)) + "}", "{" * 1000, '{a=~"' + "(" * 500 + ")" * 500 + '"}',
    '{a=~"(((a{1,1000}){1,1000}){1,1000})"}', '{host=~"(.*)*(.*)*x"}', "(a{1,1000}){1,1000}", "(?:x{1000}){1000}",
    "(((((.*)*)*)*)*)*", "[", "\\", "(?=a)", "(?P<a>b)(?P<a>c)", "a" * 6000, "\\pZZ", "[z-a]", "*", "+", "(?i)X",
    "now", "now-", "now-1", "now-1y", "now-1e9h", "now+100000000000d", "now-99999999999999999h", "1970-01-01T00:00:00Z",
    "2026-02-30T00:00:00Z", "9999-12-31T23:59:59Z", "2026-01-01", "-62135596800", "1e11", "99999999999", "100000000000",
    "json", "JSON", "json,csv", "pprof", "on-cpu", "on-cpu ", "no-such", "..", "../../etc/passwd", "%", "%s%n", "<b>",
    ";", ";;;;", "\\;", "a;" * 1500, "a,b", ",", ",,,", "process,process", ",".join("abcdefghijklmnopqrstuvwxyz"),
    "\u0000", "\u0001", "\u202e", "\ufffe", "\U0001f600", "'", '"', "`", "--", "' OR 1=1 --", "$(id)", "self", "total",
    "raw", "share", "1s", "60s", "1m", "0s", "-1m", "1h30m", "100000d", "simple", "none", "regex", "exact",
]
RAW = ["%", "%2", "%zz", "%00", "a%00b", "%ff%fe", "%c0%80", "%ed%a0%80", "%0d%0aX-Evil:1", "+", "a=b", "&", "=", "#",
       "%u0041", "\x7f", "%25%30%30"]


def questions():
    """{path: {parameter}} of the GET requests in openapi.yaml that take parameters."""
    text = open("schema/rest/openapi.yaml").read()
    shared = dict(re.findall(r"\n    (\w+):(?:\n      | \{ )name: ([\w.]+)(?:\n      |, )in: query",
                             text.split("\n  parameters:", 1)[1]))
    found = {}
    for block in re.split(r"\n  (?=/)", text.split("\npaths:", 1)[1].split("\ncomponents:")[0]):
        path, _, rest = block.strip().partition(":")
        get = re.search(r"\n    get:\n(.*?)(?=\n    \w+:\n|\Z)", rest, re.S)
        if not get:
            continue
        names = [shared[name] for name in re.findall(r"#/components/parameters/(\w+)", get[1]) if name in shared]
        names += re.findall(r"- name: ([\w.]+)\n\s+in: query", get[1])
        names += re.findall(r"- \{ name: ([\w.]+), in: query", get[1])
        if names:
            found[path] = names
    return found


def quote(text):
    return "".join(c if c.isalnum() and c.isascii() or c in "-_.~" else
                   "".join("%%%02X" % b for b in c.encode("utf-8", "surrogatepass")) for c in text)


class Client:
    """A keep-alive connection that sends exactly what it is given."""

    def __init__(self, server):
        self.server, self.file = server, None

    def get(self, target):
        for _ in range(2):
            try:
                if not self.file:
                    self.socket = socket.create_connection(("127.0.0.1", self.server.port), 30)
                    self.file = self.socket.makefile("rb")
                self.socket.sendall(("GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % target).encode())
                return self.read()
            except OSError:
                self.file = None
        if len(target) > LONG:  # 414 was sent, but what we still sent reset the connection before it was read
            return 414, {}, b""
        raise RuntimeError("no answer to " + target[:300])

    def read(self):
        line = self.file.readline()
        if not line:
            raise OSError("closed")
        status, headers, body = int(line.split()[1]), {}, b""
        while (line := self.file.readline()) not in (b"\r\n", b""):
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        if headers.get("transfer-encoding") == "chunked":
            while size := int(self.file.readline(), 16):
                body += self.file.read(size)
                self.file.readline()
            self.file.readline()
        else:
            body = self.file.read(int(headers.get("content-length", 0)))
        if headers.get("connection") == "close" or status in (414, 431):
            self.file = None
        return status, headers, body


def trouble(status, headers, body):
    """What is wrong with the answer, or None."""
    if status not in ALLOWED:
        return "status %d: %r" % (status, body[:200])
    if status in (200, 414, 431):
        return None
    try:
        error = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        return "status %d without a sentence: %r" % (status, body[:200])
    message = error.get("message", "")
    if not 8 <= len(message) <= 8000 or "\n" in message or not error.get("code"):
        return "not one sentence: %r" % error
    return "a header of a stranger's" if "x-evil" in headers else None


def target_of(path, parameters):
    path = path.replace("{name}", "host").replace("{id}", FINE["id"])
    return path + "?" + "&".join(name + "=" + value for name, value in parameters)


def needed(names, but=()):
    return [(name, quote(value)) for name, value in FINE.items() if name in names and name not in but]


def fill(server):
    made = Request(BUILD)
    profile = made.profile(made.resource(**{"host.name": "h", "farflame.process": "p"}),
                           time_ns=time.time_ns() - 60 * 10**9)
    made.sample(profile, [("cpython", "f", "a.py", 1), ("cpython", "g", "a.py", 2)], [5, 50])
    made.counters("h", "ab" * 16, 1, 0, 5, time_ns=time.time_ns() - 60 * 10**9)
    equal(server.post(made.bytes())[0], 200, "a report is taken")
    FINE["id"] = server.json("/api/v1/top", stack_ids="1")["functions"][0]["stack"]


def ask_all(server, client, asked):
    """asked: (path, target). Returns {status: count}; complains of each kind once per path."""
    seen, wrong, slowest = {}, {}, (0, "")
    for path, target in asked:
        begin = time.monotonic()
        status, headers, body = client.get(target)
        slowest = max(slowest, (time.monotonic() - begin, target[:120]))
        seen[status] = seen.get(status, 0) + 1
        why = trouble(status, headers, body)
        if why:
            wrong.setdefault(path, []).append(target[:400] + "\n  " + why)
    note("%d questions: %s; the slowest %.2f s: %s" % (len(asked), seen, *slowest))
    return seen, wrong


def report(wrong, paths, text):
    for path in sorted(paths):
        check(path not in wrong, "%s: %s" % (path, text), "\n".join(wrong.get(path, [])[:10]))


def one_at_a_time(server):
    found, asked = questions(), []
    check(len(found) >= 8 and sum(len(names) for names in found.values()) > 80,
          "openapi.yaml's questions are found", str({path: len(names) for path, names in found.items()}))
    for path, names in found.items():
        for name in names:
            for value in [quote(value) for value in BAD] + RAW:
                asked.append((path, target_of(path, needed(names, [name]) + [(name, value)])))
    asked = random.Random(SEED).sample(asked, int(len(asked) * SHARE))
    seen, wrong = ask_all(server, Client(server), asked)
    report(wrong, found, "parameters with bad values are answered, or refused with a sentence")
    check(seen.get(200, 0) > 0 and seen.get(422, 0) > 100, "some are answered, many are refused", str(seen))


def names_and_shapes(server):
    """Unknown parameters, repeated ones, times that end before they begin."""
    found, asked, client = questions(), [], Client(server)
    for path, names in found.items():
        first = needed(names) or [(names[0], "1")]
        for more in ([("no_such", "1")], [first[0]], [("", "x")], [("from%00", "1")]):
            status, _, body = client.get(target_of(path, first + more))
            if status not in (400, 422) and more[0][0]:
                asked.append("%s %s: %d %r" % (path, more, status, body[:100]))
        if "from" in names:
            status, _, body = client.get(target_of(path, needed(names, ["from", "until"]) +
                                                   [("from", "2000"), ("until", "1000")]))
            if status != 422:
                asked.append("%s until before from: %d %r" % (path, status, body[:100]))
        status, _, _ = client.get(target_of(path, first + [("match", "x" * 70000)]))
        if status not in (414, 431):
            asked.append("%s a long line: %d" % (path, status))
    check(not asked, "unknown and repeated parameters, ranges that end before they begin, lines too long: refused",
          "\n".join(asked))


def several_at_a_time(server):
    chance = random.Random(SEED)
    found, asked = questions(), []
    for _ in range(ROUNDS):
        path = chance.choice(sorted(found))
        names = found[path]
        chosen = chance.sample(names, min(len(names), chance.randint(1, 6)))
        values = [(name, chance.choice(RAW) if chance.random() < 0.1 else quote(chance.choice(BAD))) for name in chosen]
        asked.append((path, target_of(path, needed(names, chosen) + values)))
    _, wrong = ask_all(server, Client(server), asked)
    report(wrong, found, "several at a time (seed %d)" % SEED)


def parameters():
    server = Server("--query-time", "20s")
    fill(server)
    one_at_a_time(server)
    names_and_shapes(server)
    several_at_a_time(server)
    status, _, body = server.get("/api/v1/flamegraph", type="on-cpu", format="folded")
    equal((status, body), (200, b"p;g;f 50\n"), "afterwards the server answers as before")
    equal(server.stop()[0], 0, "and ends well")


run(parameters)
