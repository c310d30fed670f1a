# SPDX-License-Identifier: Apache-2.0
"""What the server costs: reports taken in, memory, a flame graph, a new program's way to its name."""
import gzip
import os
import re
import socket
import statistics
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))

import otlp  # noqa: E402
from cost import cpu_ns, pss_kib  # noqa: E402
from harness import BUILD, CPUS, PROGRAMS, Agent, Server, build_programs, end, start, wait_for  # noqa: E402


def distinct(messages, count):
    """As many reports as asked for, each with profile ids of its own."""
    parsed = []
    for body in messages[-8:]:
        request = otlp.messages(BUILD).ExportProfilesServiceRequest()
        request.ParseFromString(body)
        parsed.append(request)
    made = []
    for i in range(count):
        request = parsed[i % len(parsed)]
        for resource_profiles in request.resource_profiles:
            for scope in resource_profiles.scope_profiles:
                for profile in scope.profiles:
                    profile.profile_id = os.urandom(16)
        made.append(gzip.compress(request.SerializeToString(), 1))
    return made


def answer_status(connection, rest):
    """(status, bytes after the answer) of one answer on a kept connection."""
    while b"\r\n\r\n" not in rest:
        rest += connection.recv(65536)
    head, rest = rest.split(b"\r\n\r\n", 1)
    length = int(re.search(rb"(?i)content-length: *(\d+)", head).group(1))
    while len(rest) < length:
        rest += connection.recv(65536)
    return int(head.split()[1]), rest[length:]


def post_all(server, bodies, connections=64):
    """Posts all of them over keep-alive connections, written by hand so that the client is not what is
    measured; the latencies in seconds, and refusals."""
    queue = [b"POST /v1development/profiles HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\n"
             b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body) for body in bodies]
    took, refused = [], []

    def work():
        connection, rest = socket.create_connection(("127.0.0.1", server.port), timeout=60), b""
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while queue:
            try:
                request = queue.pop()
            except IndexError:
                break
            begin = time.monotonic()
            connection.sendall(request)
            status, rest = answer_status(connection, rest)
            took.append(time.monotonic() - begin)
            if status != 200:
                refused.append(status)
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(took), refused


def server_rows(row, messages):
    """messages: reports of an agent of ours."""
    server = Server(data="bench")
    pid = server.process.pid
    if CPUS > 1:  # the server on one core, its clients on the others
        for task in os.listdir("/proc/%d/task" % pid):
            os.sched_setaffinity(int(task), {0})
        os.sched_setaffinity(0, set(range(1, CPUS)))
    bodies = distinct(messages, 2000)
    begin, cpu = time.monotonic(), cpu_ns(pid)
    took, refused = post_all(server, bodies)
    elapsed = time.monotonic() - begin
    used = cpu_ns(pid) - cpu
    row("server ingest of recorded reports (%d KB each), one core" % (len(bodies[0]) // 1024),
        "%.0f /s" % (len(bodies) / elapsed), "1000 /s", refused and "%d refused" % len(refused) or "")
    row("  CPU per report, all threads / latency median, p99", "%.2f ms / %.1f, %.1f ms" % (
        used / len(bodies) / 1e6, took[len(took) // 2] * 1e3, took[int(len(took) * 0.99)] * 1e3), "0.7 ms / 100 ms")
    if CPUS > 1:
        os.sched_setaffinity(0, set(range(CPUS)))
        for task in os.listdir("/proc/%d/task" % pid):
            os.sched_setaffinity(int(task), set(range(CPUS)))
    time.sleep(2)
    row("server memory after that (PSS of all processes)", "%.1f MB" % (pss_kib(pid) / 1024), "300 MB")
    times = []
    for _ in range(20):
        begin = time.monotonic()
        server.get("/api/v1/flamegraph", type="on-cpu", from_="now-1h", until="now", format="json")
        times.append(time.monotonic() - begin)
    row("flame graph query, all of it", "%.1f ms" % (statistics.median(times) * 1e3), "50 ms")
    server.stop()


def sample_to_name(row):
    build_programs("chain_pie")
    server = Server(data="latency")
    agent = Agent("--frequency", "99", "--report-interval", "1s", server=server, log="latency.log")
    time.sleep(5)
    begin = time.monotonic()
    program = start([PROGRAMS + "/chain_pie", "30"])
    named = wait_for(lambda: any("leaf" in f for f, _ in server.folded(match='{process="chain_pie"}')), 30, 0.05)
    row("first sample of a new program to its name in the flame graph", "%.1f s" % (time.monotonic() - begin) if named else "never",
        "", "report interval 1 s")
    end(program)
    agent.stop()
    server.stop()
