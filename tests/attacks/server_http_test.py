# SPDX-License-Identifier: Apache-2.0
"""Heads that a proxy could read another way, foreign names and sites, and names that no text may show."""
import socket
import sys

sys.path.insert(0, "tests/tools")
import otlp_writer  # noqa: E402
from harness import BUILD, Server, check, equal, run, wait_for  # noqa: E402

POST = b"POST /api/v1/modules HTTP/1.1\r\n"
HOST = b"Host: localhost\r\nContent-Type: text/plain\r\n"
SECOND = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def raw(server, data):
    """The statuses of all answers, and whether the connection was closed."""
    with socket.create_connection(("127.0.0.1", server.port), 10) as made:
        made.sendall(data)
        made.settimeout(1)
        answer = b""
        try:
            while True:
                got = made.recv(65536)
                if not got:
                    return statuses(answer), True
                answer += got
        except socket.timeout:
            return statuses(answer), False
        except ConnectionError:
            return statuses(answer), True


def statuses(answer):
    return [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:] if part[:3].isdigit()]


def smuggling():
    server = Server(data="smuggling")
    equal(raw(server, POST + HOST + b"Content-Length: 0\r\n\r\n" + SECOND), ([200, 200], False), "two requests are two")
    for what, head in (
            ("both lengths", b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
            ("two lengths", b"Content-Length: 0\r\nContent-Length: %d\r\n" % len(SECOND)),
            ("a blank before the colon", b"Content-Length : %d\r\n" % len(SECOND)),
            ("a folded line", b"X: 1\r\n Content-Length: %d\r\n" % len(SECOND)),
            ("a bare line feed", b"X: 1\nContent-Length: 0\r\n"),
            ("a bare carriage return", b"X: 1\rY: 2\r\nContent-Length: 0\r\n"),
            ("an unknown coding", b"Transfer-Encoding: xchunked\r\n")):
        equal(raw(server, POST + HOST + head + b"\r\n" + SECOND), ([400], True), what + ": 400 and closed")
    equal(raw(server, POST + HOST + b"Content-Length: 0\r\n\n" + SECOND), ([400], True), "a bare line feed at the end")
    equal(raw(server, POST + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SECOND), ([200], True),
          "nothing comes after chunks")


def names():
    server = Server("--allow-host", "profiles.example", data="names")
    for name, status in (("localhost", 200), ("127.0.0.1:%d" % server.port, 200), (socket.gethostname(), 200),
                         ("profiles.example", 200), ("PROFILES.example:443", 200), ("evil.example", 421),
                         ("localhost.evil.example", 421), ("192.0.2.7", 421)):
        equal(server.request("GET", "/api/v1/agents", headers={"Host": name})[0], status, "Host: " + name)
    for headers, status in (({}, 200), ({"Origin": server.url}, 200), ({"Origin": "https://profiles.example"}, 200),
                            ({"Origin": "http://evil.example"}, 403), ({"Origin": "null"}, 403),
                            ({"Sec-Fetch-Site": "cross-site"}, 403)):
        equal(server.request("POST", "/api/v1/modules", b"aabbccdd gnu x\n", dict({"Content-Type": "text/plain"}, **headers))[0],
              status, "a POST with %s" % headers)
    equal(server.request("DELETE", "/api/v1/samples?match=%7B%7D", headers={"Origin": "http://evil.example"})[0], 403,
          "a DELETE from another site")
    equal(server.request("PUT", "/api/v1/modules/aabb", b"x", {"Content-Type": "text/plain"})[0], 415, "a body of a form's type")
    policy = server.get("/")[1]["Content-Security-Policy"]
    check("unsafe" not in policy and policy.count("'sha256-") == 2, "the page's policy names script and style", policy)


HOSTILE = ["esc\x1b[31m", "bell\x07", "c1\u009b31m", "bidi\u202eexe.txt", "isolate\u2066x", "mark\u200fx", "alm\u061cx",
           "a;=cmd|calc", "\uff1d1+1", "\uff0bx", "\uff0dx", "\uff20x", "tab\tx", "line\nx"]


def hidden(text):
    return [c for c in text if 0x80 <= ord(c) < 0xa0 or ord(c) in (0x61c, 0x200e, 0x200f, 0x1b, 7, 0x7f) or
            0x202a <= ord(c) <= 0x202e or 0x2066 <= ord(c) <= 0x2069]


def texts():
    server = Server(data="texts")
    request = otlp_writer.Request(BUILD)
    profile = request.profile(request.resource(**{"host.name": "h\u202eh"}))
    for number, name in enumerate(HOSTILE):
        request.sample(profile, [("cpython", name, name, number + 1)], [1, 10101010], thread=name)
    equal(server.post(request.bytes())[0], 200, "a report with hostile names is taken")
    check(wait_for(lambda: "calc" in server.get("/api/v1/flamegraph", type="on-cpu", format="folded")[2].decode(), 20),
          "and its names come back")
    for format_ in ("csv", "folded", "md", "json", "svg", "html", "speedscope"):
        status, _, body = server.get("/api/v1/flamegraph", type="on-cpu", format=format_, from_="now-15m", until="now")
        text = body.decode("utf-8")
        check(status == 200 and not hidden(text), format_ + " shows none of them", "%d %r" % (status, hidden(text)))
    cells = server.get("/api/v1/flamegraph", type="on-cpu", format="csv")[2].decode()
    check('a;=cmd' not in cells.replace('"a;=cmd|calc"', "").replace('"a;=cmd|calc (a;=cmd|calc)"', ""), "CSV quotes the semicolon", cells[:600])
    check("\"'\uff1d1+1" in cells and ",\uff1d" not in cells, "and what begins as a formula in full width", cells[:600])


if __name__ == "__main__":
    run(smuggling, names, texts)
