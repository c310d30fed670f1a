# SPDX-License-Identifier: Apache-2.0
"""Silent and half requests take neither the memory for bodies nor the connections from those who speak."""
import concurrent.futures
import http.client
import resource
import socket
import sys
import time

sys.path.insert(0, "tests/tools")
import otlp_writer  # noqa: E402
from harness import BUILD, Server, check, equal, note, run, wait_for  # noqa: E402

HALF = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Hal"


def report():
    request = otlp_writer.Request(BUILD)
    profile = request.profile(request.resource(**{"host.name": "honest"}))
    request.sample(profile, [("native", request.mapping("m", "%040x" % 7), 0x1000)], [1, 10101010])
    return request.bytes()


class Known:
    """An agent: one connection, kept."""

    def __init__(self, server):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        self.connection.connect()
        self.port = self.connection.sock.getsockname()[1]

    def send(self):
        if not self.connection.sock:
            return "closed"
        self.connection.request("POST", "/v1development/profiles", report(), {"Content-Type": "application/x-protobuf"})
        answer = self.connection.getresponse()
        answer.read()
        return answer.status


def open_one(server, data):
    made = socket.create_connection(("127.0.0.1", server.port), 10)
    made.sendall(data)
    return made


def closed(server):
    found = {}
    for line in server.get("/metrics")[2].decode().splitlines():
        if line.startswith("farflame_server_http_connections_closed_total{"):
            found[line.split('"')[1]] = float(line.split()[1])
    return found


def is_closed(made, seconds):
    made.settimeout(seconds)
    try:
        return made.recv(100) == b""
    except ConnectionError:
        return True
    except socket.timeout:
        return False


def announced_bodies():
    server = Server(data="silent")
    silent = [open_one(server, b"POST /v1development/profiles HTTP/1.1\r\nHost: localhost\r\n"
                       b"Content-Type: application/x-protobuf\r\nContent-Length: 16777216\r\n\r\n") for _ in range(64)]
    time.sleep(0.5)
    begin = time.monotonic()
    equal([server.post(report())[0] for _ in range(5)], [200] * 5, "64 silent bodies of 16 MiB stop no report")
    note("five reports: %.2f s" % (time.monotonic() - begin))
    check(is_closed(silent[0], 20), "a body without a first byte is closed")
    check(time.monotonic() - begin < 18, "after some ten seconds", time.monotonic() - begin)
    check(wait_for(lambda: closed(server)["first_byte"] >= 64, 10), "counted", closed(server))


def stalled_bodies():
    """They bring their bytes, all but the last."""
    server = Server(data="stalled")
    known = Known(server)
    equal(known.send(), 200, "an agent has sent a report")
    bytes_ = bytes(12 << 20)
    stalled = []
    for _ in range(22):
        made = open_one(server, b"POST /v1development/profiles HTTP/1.1\r\nHost: localhost\r\n"
                        b"Content-Type: application/x-protobuf\r\nContent-Length: 16777216\r\n\r\n")
        made.settimeout(5)
        try:
            made.sendall(bytes_)
        except OSError:
            pass
        stalled.append(made)
    equal(known.send(), 200, "264 MB of stalled bodies do not stop a known agent")
    check(wait_for(lambda: server.post(report())[0] == 200, 15), "and a new one soon gets in")
    check(wait_for(lambda: closed(server)["memory"] > 0, 10), "stalled ones are closed, and counted", closed(server))


def half_headers():
    limit = 2000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, limit + 3000)), hard))
    server = Server("--connections", str(limit), data="half")
    known = Known(server)
    equal(known.send(), 200, "an agent has sent a report")
    begin = time.monotonic()
    half = []
    for _ in range(limit + 1000):
        half.append(open_one(server, HALF))
    note("%d half requests in %.1f s" % (len(half), time.monotonic() - begin))
    begin = time.monotonic()
    equal(server.request("GET", "/healthz", timeout=10)[0], 200, "a new client is answered beside them")
    equal(server.post(report(), timeout=10)[0], 200, "a new agent's report is taken")
    equal(known.send(), 200, "the known agent goes on, on its connection")
    took = time.monotonic() - begin
    check(took < 5, "within seconds", took)
    counted = closed(server)
    check(counted["crowded"] + counted["headers"] >= 1000, "those idle for longest went, and are counted", counted)
    begin = time.monotonic()
    check(is_closed(half[-1], 20), "half headers are closed")
    check(time.monotonic() - begin < 18, "after some ten seconds")
    equal(known.send(), 200, "the known agent goes on")
    equal(known.connection.sock.getsockname()[1], known.port, "still on its connection")


def many_from_one_address():
    """As many agents as there are connections, through one proxy: nobody is closed while there is room."""
    limit = 400
    server = Server("--connections", str(limit), data="many")
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        agents = list(pool.map(lambda _: Known(server), range(limit - 5)))
        equal(set(pool.map(Known.send, agents)), {200}, "as many agents of one address as connections send")
        equal(set(pool.map(Known.send, agents)), {200}, "and again, on the same connections")
    counted = closed(server)
    equal(counted["crowded"], 0, "nobody made room")


if __name__ == "__main__":
    run(announced_bodies, stalled_bodies, half_headers, many_from_one_address)
