# SPDX-License-Identifier: Apache-2.0
"""Small costs that many hosts multiply: a connection of an agent that says nothing now, and the agent's spool.

small_rows() is the part "small" of bench.py."""
import os
import resource
import shutil
import socket
import statistics
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


def malloc_program():
    """One of 10 million mallocs a second."""
    program = WORK + "/malloc_load"
    subprocess.run(["cc", "-O2", "-fno-builtin", "tests/bench/malloc_load.c", "-o", program], check=True)
    return program


def malloc_peers(row, program):
    """The samplers of other allocators, each against the same without it."""
    peers = "/usr/lib/x86_64-linux-gnu/"
    tcmalloc, jemalloc = {"LD_PRELOAD": peers + "libtcmalloc.so.4"}, {"LD_PRELOAD": peers + "libjemalloc.so.2"}
    malloc_row(row, "gperftools' sampling", program, ({**tcmalloc, "TCMALLOC_SAMPLE_PARAMETER": "0"},
                                                      {**tcmalloc, "TCMALLOC_SAMPLE_PARAMETER": "524288"}), "")
    malloc_row(row, "jemalloc's sampling", program, (jemalloc, {**jemalloc, "MALLOC_CONF": "prof:true,lg_prof_sample:19"}), "")


def malloc_rows(row):
    """What the allocation library costs a program of 10 million mallocs a second, beside the peers' samplers: each
    against the same without it. An object that is loaded moves all others about, so that ours is held against an
    empty one, and many short interleaved runs are compared pair by pair."""
    program, empty = malloc_program(), WORK + "/empty.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "/dev/null", "-o", empty], check=True)
    ours = {"LD_PRELOAD": BUILD + "/libfarflame-malloc.so"}
    pair = ({"LD_PRELOAD": empty}, ours)
    malloc_row(row, "the allocation library", program, pair, "1 %")
    malloc_peers(row, program)
    agent = subprocess.Popen([BUILD + "/farflame-agent", "--profile", "mem-alloc,mem-inuse", "--output", WORK + "/malloc.otlp",
                              "--report-interval", "600s"], stderr=subprocess.DEVNULL)
    keeper = subprocess.Popen(["sleep", "600"], env={**os.environ, **ours})
    time.sleep(5)
    malloc_row(row, "the allocation library, an agent listens", program, pair, "1 %")
    for process in (keeper, agent):
        process.terminate()
        process.wait()


def malloc_row(row, name, program, pair, asked):
    if any("LD_PRELOAD" in more and not os.path.exists(more["LD_PRELOAD"]) for more in pair):
        row(name + ", 10 M mallocs/s", "not installed")
        return
    runs = [[float(subprocess.run([program, "1"], env={**os.environ, **more}, check=True, capture_output=True,
                                  text=True).stdout.split()[0]) for more in pair] for _ in range(80)]
    row(name + ", 10 M mallocs/s: CPU", "%+.1f %%, %.1f ns" % (
        (statistics.median(with_it / without for without, with_it in runs) - 1) * 100,
        statistics.median(with_it - without for without, with_it in runs)), asked)


def small_rows(row):
    connection_row(row)
    malloc_rows(row)
    spool_rows(row)
