# SPDX-License-Identifier: Apache-2.0
"""Programs of nobody with memory and files that are never served, and one with maps of many megabytes: the agent goes
on with the others, and ends when it is asked to."""
import atexit
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from harness import Agent, Server, check, end, need_bpf, note, run, skip_all, start, wait_for

NOBODY = 65534
SPIN = """
#include <time.h>
__attribute__((noinline)) void work(void)
{
	for (volatile unsigned i = 0; i < 4000000; i++)
		;
	nanosleep(&(struct timespec){0, 10000000}, 0);
}
int main(void)
{
	for (;;)
		work();
}
"""
# Waits with its stack in the file, or publishes a context whose bytes lie there and goes on.
STRANGER = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
struct header { char signature[8]; uint32_t version, bytes; uint64_t at, payload; };
int main(int argc, char **argv)
{
	int file = open(argv[2], O_RDONLY), context = memfd_create("OTEL_CTX", 0);
	char *data = mmap(0, 1 << 20, PROT_READ, MAP_PRIVATE, file, 0);
	struct header *header;
	if (data == MAP_FAILED)
		return 1;
	if (!strcmp(argv[1], "stack")) {
#ifdef __x86_64__
		__asm__ volatile("mov %0, %%rsp; mov $34, %%eax; syscall" : : "r"(data + (1 << 19)));
#endif
		return 0;
	}
	ftruncate(context, 4096);
	header = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, context, 0);
	*header = (struct header){"", 2, 4096, 1, (uintptr_t)data};
	memcpy(header->signature, "OTEL_CTX", 8);
	for (volatile unsigned i = 0;; i++)
		if (i % 4000000 == 0)
			nanosleep(&(struct timespec){0, 10000000}, 0);
}
"""
# Page after page of one file with a long path, each a mapping of its own that may be executed.
FLOOD = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	char name[201];
	int file, count = 0;
	memset(name, 'x', 200);
	name[200] = 0;
	for (int i = 0; i < 18; i++)
		if ((mkdir(name, 0755) && 0) || chdir(name))
			return 1;
	file = open(name, O_RDWR | O_CREAT, 0755);
	if (file < 0 || ftruncate(file, 8192))
		return 1;
	while (count < atoi(argv[1]) && mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, count % 2 * 4096) != MAP_FAILED)
		count++;
	printf("%d\\n", count);
	fflush(stdout);
	for (;;) {
		void *more = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
		for (volatile int i = 0; i < 3000000; i++)
			;
		if (more != MAP_FAILED)
			munmap(more, 4096);
	}
}
"""
AGENT = ["--frequency", "99", "--report-interval", "1s", "--log-level", "debug", "--profile", "on-cpu,off-cpu"]
state = {}


def place(*names):
    return os.path.join(state["folder"], *names)


def build(name, source):
    open(place(name + ".c"), "w").write(source)
    subprocess.run(["cc", "-g", "-O1", "-w", place(name + ".c"), "-o", place(name)], check=True)
    return place(name)


def stranger(*arguments, **more):
    return start(list(arguments), "programs.log", user=NOBODY, group=NOBODY, extra_groups=[], **{"cwd": "/", **more})


def prepare():
    state["folder"] = tempfile.mkdtemp(prefix="farflame-reads-", dir="/tmp")
    atexit.register(shutil.rmtree, state["folder"], True)
    os.chmod(state["folder"], 0o755)
    for name, source in (("honest", SPIN), ("spin", SPIN), ("stranger", STRANGER), ("flood", FLOOD)):
        build(name, source)


def unmount():
    ctypes.CDLL(None).umount2(os.fsencode(place("never")), 2)  # MNT_DETACH


def mount():
    """The file system's server; None: it cannot be mounted here."""
    os.mkdir(place("never"))
    server = start([sys.executable, "tests/tools/never_served.py", place("never"), place("spin")], "fuse.log",
                   stdout=subprocess.PIPE)
    if server.stdout.readline() != b"ready\n":
        return None
    atexit.register(unmount)
    return server


def summary(agent, name, key):
    """A number of the agent's last line of that name."""
    lines = [line for line in agent.text().splitlines() if " %s " % name in line + " " and " %s=" % key in line]
    return int(lines[-1].split(" %s=" % key)[1].split()[0]) if lines else 0


def reports(agent):
    """The last one's number: not every line is written."""
    lines = [line for line in agent.text().splitlines() if " report " in line and " seq=" in line]
    return int(lines[-1].split(" seq=")[1].split()[0]) if lines else 0


def test_never_served():
    server, honest = Server(), start([place("honest")], "programs.log")
    agent, fuse = Agent(*AGENT, server=server), mount()
    if not fuse:
        skip_all("no FUSE here")
    strangers = [stranger(place("stranger"), kind, place("never", "data")) for kind in ("context", "stack") * 3]
    strangers.append(stranger(place("never", "program")))
    wait_for(lambda: agent.text().count("a stranger keeps the agent waiting") >= 2, 8)
    before, begin = reports(agent), time.monotonic()
    time.sleep(6)
    made, seconds = reports(agent) - before, time.monotonic() - begin
    check(made >= 0.6 * seconds, "reports go on", "%d in %.1f s" % (made, seconds))
    check(honest.poll() is None and all(process.poll() is None for process in strangers), "all of them run")
    begin = time.monotonic()
    agent.process.send_signal(signal.SIGTERM)
    ended = wait_for(lambda: agent.process.poll() is not None, 6)
    check(ended and agent.process.returncode == 0, "it ends when it is asked to, with what is not served being held",
          "after %.1f s: %s" % (time.monotonic() - begin, agent.process.returncode))
    fuse.kill()
    fuse.wait()
    check(summary(agent, "strangers", "hung") >= 2, "what hung is counted", agent.text()[-600:])
    note("hung=%d stalled_ms=%d refused=%d" % tuple(summary(agent, "strangers", key)
                                                    for key in ("hung", "stalled_ms", "refused")))
    for process in strangers + [honest]:
        end(process, 5, signal.SIGKILL)


def whole(frames):
    return {"main", "_start"} <= set(frames) or {"main", "__libc_start_call_main"} <= set(frames)


def test_flood():
    """With as many mappings as a process may have."""
    server = Server(log="server2.log", data="data2")
    honest = [start([place("honest")], "programs.log") for _ in range(2)]
    os.mkdir(place("deep"))
    os.chown(place("deep"), NOBODY, NOBODY)
    flood = stranger(place("flood"), "60000", cwd=place("deep"), stdout=subprocess.PIPE)
    note("mappings: %s" % flood.stdout.readline().decode().strip())
    agent = Agent("--frequency", "49", "--report-interval", "1s", "--log-level", "debug", server=server, log="agent2.log")
    time.sleep(8)
    check(agent.stop()[0] == 0, "the agent ends well", agent.text()[-600:])
    good, bad = summary(agent, "stacks", "complete"), summary(agent, "stacks", "incomplete")
    lost, taken = summary(agent, "samples", "lost_ring_full"), summary(agent, "samples", "taken")
    note("complete=%d incomplete=%d taken=%d lost=%d" % (good, bad, taken, lost))
    made = reports(agent)
    check(made >= 5, "reports go on", "%d in 8 s" % made)
    check(lost <= taken / 100, "no samples are lost", "%d of %d" % (lost, taken))
    own = [(frames, count) for frames, count in server.folded() if frames[0] == "honest"]
    good, all_own = (sum(count for frames, count in own if whole(frames)), sum(count for _, count in own))
    check(all_own > 50 and good >= 0.9 * all_own, "stacks of others stay whole", "%d of %d" % (good, all_own))
    check(summary(agent, "strangers", "maps_cut") >= 1, "what was not read is counted")
    for process in honest + [flood]:
        end(process, 5, signal.SIGKILL)


need_bpf()
prepare()
run(test_never_served, test_flood)
