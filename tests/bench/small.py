# SPDX-License-Identifier: Apache-2.0
"""Small costs that many hosts multiply: a connection of an agent that says nothing now, and the agent's spool.

small_rows() is the part "small" of bench.py."""
import os
import resource
import shutil
import socket
import subprocess
import time

from cost import pss_kib
from harness import BUILD, WORK, Server

CONNECTIONS, REPORTS, BODY = 5000, 2000, 11800


def connect(server):
    """A kept connection on which something was asked and answered."""
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    if b" 200 " not in connection.recv(4096):
        raise RuntimeError("a connection was refused")
    return connection


def connection_row(row):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, CONNECTIONS + 200), max(hard, CONNECTIONS + 200)))
    server = Server(data="small")
    kept = [connect(server) for _ in range(100)]
    before = pss_kib(server.process.pid)
    kept += [connect(server) for _ in range(CONNECTIONS)]
    time.sleep(1)
    row("an idle connection, %d of them" % CONNECTIONS, "%.1f KB" % (
        (pss_kib(server.process.pid) - before) * 1.024 / CONNECTIONS), "12 KB")
    for connection in kept:
        connection.close()
    server.stop()


def spool_rows(row):
    """On the disk that holds the build; one host's report is one each ten seconds."""
    subprocess.run(["make", "-s", "--no-print-directory", "BUILD=" + BUILD, BUILD + "/tests/bench/spool_load"], check=True)
    for sync_ms in (30000, 0):
        directory = WORK + "/spool"
        cpu, wrote, waits, back = map(float, subprocess.run(
            [BUILD + "/tests/bench/spool_load", directory, str(REPORTS), str(BODY), str(sync_ms)], check=True,
            capture_output=True, text=True).stdout.split())
        shutil.rmtree(directory)
        row("the agent's spool, --spool-sync %ds, a report of %.1f KB: CPU, written" % (sync_ms // 1000, BODY / 1e3),
            "%.0f us, %.1f KB" % (cpu, wrote / 1e3), "", "waits %.0f us; read back and removed: CPU %.0f us" % (waits, back))


def small_rows(row):
    connection_row(row)
    spool_rows(row)
