# SPDX-License-Identifier: Apache-2.0
"""Agents with --spool: the server away, the agent killed, disks full and free again, a limit that is too small,
clocks that are set. What the agents took and dropped is read from their logs, what the server has is asked of the
server."""
import os
import re
import shutil
import signal
import struct
import subprocess
import time

from harness import (BUILD, PROGRAMS, WORK, Agent, Server, build_programs, check, end, equal, free_port, need_bpf,
                     note, run, skip, spool_of, spooled_bytes, spooled_reports, start, wait_for)

OPTIONS = ["--frequency", "199", "--report-interval", "1s", "--timeout", "2s", "--upload", "never"]


def agent(name, url, *more, **how):
    return Agent(*OPTIONS, "--spool", spool_of(name), *more, server=url, log=name + ".log", **how)


def refused(name, status, words):
    done = subprocess.run([BUILD + "/farflame-agent", "--server", "http://127.0.0.1:1", "--spool", spool_of(name)],
                          capture_output=True, text=True, timeout=30)
    check(done.returncode == status and words in done.stderr, "it says '%s'" % words, (done.returncode, done.stderr))


def is_whole(server, what, **parameters):
    accounting = server.flamegraph(**parameters)["accounting"]
    equal(accounting["taken"], accounting["samples"] + accounting["lost"], what + ": taken = samples + lost")
    return accounting


def minutes(server):
    """Samples by minute of the day, as the server has them."""
    now = int(time.time()) // 60 * 60
    found = {}
    for begin in range(now - 600, now + 60, 60):
        accounting = server.flamegraph(from_=str(begin), until=str(begin + 59))["accounting"]
        if accounting["taken"] or accounting["samples"]:
            found[begin] = (accounting["taken"], accounting["samples"] + accounting["lost"])
    return found


def away():
    """No server for as long as two runs of the agent, one killed and one stopped; then it comes."""
    build_programs("burn")
    start([PROGRAMS + "/burn", "60", "120"])
    port = free_port()
    url = "http://127.0.0.1:%d" % port
    one = agent("away", url)
    check(wait_for(lambda: spooled_bytes("away") > 20000, 20), "reports go to disk", one.text()[-800:])
    refused("away", 1, "another agent")
    end(one.process, how=signal.SIGKILL)
    killed = spooled_bytes("away")
    one = agent("away", url, "--duration", "1500ms", wait=False)
    begin = time.monotonic()
    equal(one.process.wait(30), 0, "it ends without a server")
    note("%.1f s with its 1.5 s of profiling" % (time.monotonic() - begin))
    check(spooled_bytes("away") > killed and "samples not sent" not in one.text(), "and throws nothing away",
          one.text()[-500:])
    stopped = int(re.findall(r"taken=(\d+)", one.text())[-1])
    server = Server(port=port, data="away-data")
    one = agent("away", url)
    check(wait_for(lambda: not spooled_reports("away"), 40), "the server comes: the spool becomes empty", one.text()[-800:])
    equal(one.stop()[0], 0, "SIGTERM ends it")
    agents = server.json("/api/v1/agents")["agents"]
    accounting = is_whole(server, "all together")
    equal(accounting["lost"], 0, "nothing is lost")
    check(accounting["samples"] > agents[0]["taken"] + stopped, "the killed run's samples are there", (accounting, agents))
    for minute, (taken, rest) in minutes(server).items():
        equal(taken, rest, "and in each minute")
    check(abs(agents[0]["skew_ms"]) < 5000, "no skew, however late", agents)


def limited():
    """A spool that is too small for what comes: the oldest go, to the sample. Of the first run nothing is left
    but its counters."""
    port = free_port()
    build_programs("burn")
    start([PROGRAMS + "/burn", "60", "120"])
    os.symlink("/root", spool_of("limited-link"))
    refused("limited-link", 2, "symbolic link")
    # Facts of some 60 KB make each record large.
    big = [part for i in range(28) for part in ("--label", "l%d=%s" % (i, "x" * 2000))]
    url = "http://127.0.0.1:%d" % port
    one = agent("limited", url, "--spool-limit", "256K", *big)
    check(wait_for(lambda: spooled_bytes("limited") > 100000, 15), "reports go to disk")
    end(one.process, how=signal.SIGKILL)
    one = agent("limited", url, "--spool-limit", "256K", *big)
    check(wait_for(lambda: one.text().count("the_spool_is=full") >= 2, 40), "the oldest are dropped", one.text()[-800:])
    check(spooled_bytes("limited") <= 256 << 10, "the limit holds", spooled_bytes("limited"))
    server = Server(port=port, data="limited-data")
    check(wait_for(lambda: not spooled_reports("limited"), 60), "the rest arrives", one.text()[-800:])
    accounting = is_whole(server, "after dropping")
    one.stop()
    dropped = int(re.findall(r"lost_spool=(\d+)", one.text())[-1])
    equal(is_whole(server, "in the end")["lost_by"].get("spool", 0), dropped,
          "what was dropped is lost_by spool, to the sample")


def too_old():
    """Reports that the server refuses for good do not hold up what is behind them, and are counted."""
    port = free_port()
    server = Server(port=port, data="old-data")
    clock_start()
    clock_set(-9 * 86400)
    one = shimmed(agent, "old", server.url)
    check(wait_for(lambda: "server refuses reports" in one.text(), 15), "reports of nine days ago are refused",
          one.text()[-500:])
    check("older than what is kept" in one.text(), "with a sentence", one.text()[-500:])
    clock_set(0)
    check(wait_for(lambda: "server takes reports" in one.text(), 15), "the clock is set: the next ones arrive",
          one.text()[-500:])
    time.sleep(1.5)
    one.stop()
    refused_samples = int(re.findall(r"lost_refused=(\d+)", one.text())[-1])
    agents = server.json("/api/v1/agents")["agents"]
    check(refused_samples > 0, "the agent counts them")
    equal(agents[0]["lost_by"].get("refused", 0), refused_samples, "and the server shows them")
    accounting = is_whole(server, "with refused ones", from_="now-5d")
    equal(accounting["lost_by"].get("unexplained", 0), 0, "nothing is unexplained")
    check(not spooled_reports("old"), "nothing is left in the spool")


def mount(name, options):
    os.makedirs(spool_of(name), mode=0o700)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options + ",mode=0700", "tmpfs", spool_of(name)],
                          capture_output=True)
    return done.returncode == 0


def full(name="full", options="size=2m", bytes_each=1 << 16):
    """The disk fills up and gets free again."""
    if not mount(name, options):
        return skip("mounting a small tmpfs is not permitted here")
    ballast = spool_of(name) + "/ballast"
    try:
        port = free_port()
        one = agent(name, "http://127.0.0.1:%d" % port)
        check(wait_for(lambda: spooled_bytes(name), 15), "reports go to disk")
        os.mkdir(ballast)
        try:
            for number in range(100000):
                with open("%s/%d" % (ballast, number), "wb", 0) as file:
                    file.write(bytes(bytes_each))
        except OSError:
            pass
        check(wait_for(lambda: "spool does not take reports now" in one.text(), 60),
              "the disk is full: said once, reports wait in memory", one.text()[-500:])
        time.sleep(1.2)
        before = spooled_bytes(name)
        shutil.rmtree(ballast)
        check(wait_for(lambda: spooled_bytes(name) > before, 30), "room again: they go to disk", one.text()[-500:])
        server = Server(port=port, data=name + "-data")
        check(wait_for(lambda: not spooled_reports(name), 40), "and arrive")
        equal(is_whole(server, "all of them")["lost"], 0, "none is lost")
        equal(one.text().count("spool does not take"), 1, "the log says it once")
        one.stop()
        server.stop()
    finally:
        subprocess.run(["umount", "-l", spool_of(name)])


def no_inodes():
    """There is room for bytes, and none for files."""
    full("inodes", "size=16m,nr_inodes=100", 0)


SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static volatile long *seconds;

__attribute__((constructor)) static void start(void)
{
	int fd = open(getenv("CLOCK_FILE"), O_RDONLY);
	void *map = mmap(NULL, sizeof *seconds, PROT_READ, MAP_SHARED, fd, 0);

	seconds = map == MAP_FAILED ? NULL : map;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	static int (*next)(clockid_t, struct timespec *);
	int failed;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "clock_gettime");
	failed = next(clock, now);
	if (!failed && clock == CLOCK_REALTIME && seconds)
		now->tv_sec += *seconds;
	return failed;
}
"""


def clock_set(seconds):
    with open(WORK + "/clock", "r+b") as file:
        file.write(struct.pack("l", seconds))


def clock_start():
    """A library between programs and the C library that moves CLOCK_REALTIME by what a file says."""
    with open(WORK + "/shim.c", "w") as file:
        file.write(SHIM)
    with open(WORK + "/clock", "wb") as file:
        file.write(struct.pack("l", 0))
    subprocess.run(["cc", "-shared", "-fPIC", "-o", WORK + "/shim.so", WORK + "/shim.c", "-ldl"], check=True)


def shimmed(begin, *arguments, **how):
    os.environ.update(LD_PRELOAD=WORK + "/shim.so", CLOCK_FILE=WORK + "/clock")
    try:
        return begin(*arguments, **how)
    finally:
        del os.environ["LD_PRELOAD"]


def clocks():
    """The agent's clock is set ahead, and back."""
    server = Server(data="clock-data")
    clock_start()
    one = shimmed(Agent, *OPTIONS, server=server, log="clock.log")

    def skew():
        agents = server.json("/api/v1/agents")["agents"]
        return agents and agents[0].get("skew_ms", 0)

    check(wait_for(lambda: abs(skew() or 0) < 5000 and skew() is not None, 15), "at first there is no skew", skew())
    clock_set(300)
    check(wait_for(lambda: 295000 < (skew() or 0) < 305000, 15), "set ahead: the server shows it", skew())
    time.sleep(1.5)  # the log holds back what comes twice in a second
    clock_set(0)
    wait_for(lambda: one.text().count("clock was set") == 2, 15)
    check(wait_for(lambda: 200000 < (skew() or 0) < 299500, 15), "set back: the agent's clock does not go back with it",
          skew())
    equal(one.text().count("clock was set"), 2, "the log says both")
    check(wait_for(lambda: server.json("/api/v1/agents")["agents"][0]["clock_jumps"] == 2, 15), "and so does the server")
    one.stop()
    is_whole(server, "whatever the clock", until="now+10m")


if __name__ == "__main__":
    need_bpf()
    run(away, limited, full, no_inodes, clocks, too_old)
