#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Threads that call execve() though they are not their process' first: their own numbers end without an exit. Whether
the execve() succeeds or fails when there is no way back, the table of threads does not keep them."""
import json
import os
import shutil
import struct
import subprocess

from harness import WORK, Agent, check, need_bpf, note, run, skip_all, wait_for

TIMES = 150
SOURCE = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static char **again;
static void *become(void *unused)
{
	usleep(1000); /* so that it is followed */
	execv(again[0], again);
	_exit(1);
	return unused;
}
static void storm(char **arguments)
{
	pthread_t thread;
	again = arguments;
	pthread_create(&thread, NULL, become, NULL);
	pause();
}
int main(int count, char **arguments)
{
	char number[16];
	int times = atoi(arguments[1]);
	if (count > 2) /* of what cannot be loaded */
		for (; times; times--) {
			if (!fork())
				storm((char *[]){arguments[2], NULL});
			wait(NULL);
		}
	else if (times--) {
		snprintf(number, sizeof number, "%d", times);
		storm((char *[]){arguments[0], number, NULL});
	}
	return 0;
}
"""


def unloadable(path):
    """An ELF file whose only segment lies where the kernel has its own: seen after the old program is gone."""
    with open(path, "wb") as file:
        file.write(struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, os.uname().machine == "x86_64" and 62 or 183, 1,
                               0x400000, 64, 0, 0, 64, 56, 1, 0, 0, 0))
        file.write(struct.pack("<IIQQQQQQ", 1, 5, 0, 0xffff000000000000, 0, 120, 120, 4096) + bytes(4096))
    os.chmod(path, 0o755)


def followed():
    """tids in the kernel's table"""
    listed = json.loads(subprocess.run(["bpftool", "-j", "map", "show", "name", "threads"], capture_output=True, check=True).stdout)
    listed = listed if isinstance(listed, list) else [listed]
    dump = subprocess.run(["bpftool", "-j", "map", "dump", "id", str(max(map["id"] for map in listed))], capture_output=True)
    return [int.from_bytes(bytes(int(byte, 16) for byte in entry["key"]), "little") for entry in json.loads(dump.stdout or "[]")]


def gone():
    return [tid for tid in followed() if not os.path.exists("/proc/%d" % tid)]


def storm(*arguments):
    subprocess.run([os.path.join(WORK, "storm"), *arguments], timeout=60)


def test_none_is_kept():
    with open(os.path.join(WORK, "storm.c"), "w") as file:
        file.write(SOURCE)
    subprocess.run(["cc", "-O1", "-pthread", WORK + "/storm.c", "-o", WORK + "/storm"], check=True)
    unloadable(WORK + "/unloadable")
    agent = Agent("--output", WORK + "/storm.otlp", "--profile", "on-cpu,off-cpu")
    check(len(followed()) > 10, "threads are followed")
    for text, arguments in (("that succeed", [str(TIMES)]), ("from which there is no way back", [str(TIMES), WORK + "/unloadable"])):
        storm(*arguments)
        check(wait_for(lambda: len(gone()) < TIMES / 10, 10), "no thread that is gone is kept after execve()s " + text,
              "%d are" % len(gone()))
    note("%d followed, %d of them gone" % (len(followed()), len(gone())))
    agent.stop()


need_bpf()
if not shutil.which("bpftool"):
    skip_all("no bpftool")
run(test_none_is_kept)
