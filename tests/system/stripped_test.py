#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mem-alloc of static programs that are stripped: the server, which has the symbols, says where their functions are. Against
the program's own tally; and what the agent does where the server knows nothing yet, or tells of functions that are not there."""
import os
import struct
import subprocess
import sys

sys.path.insert(0, "tests/system")
import allocation_windows_test as windows
from harness import PROGRAMS, WORK, Agent, Server, build_programs, check, end, equal, need_bpf, note, run, wait_for

SECONDS = 8
OWN = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static unsigned char pool[1 << 20];
static size_t used;
__attribute__((noinline, visibility("hidden"))) void *mi_malloc(size_t bytes)
{
	used = (used + bytes) & 0x7ffff;
	return pool + used;
}
__attribute__((noinline)) static void by_own(size_t bytes) { *(unsigned char *volatile)mi_malloc(bytes) = 1; }
int main(int argc, char **argv)
{
	unsigned long turns = 0;
	time_t end;
	puts("ready");
	fflush(stdout);
	getchar();
	for (end = time(NULL) + atoi(argv[argc - 2]); time(NULL) < end; turns++) {
		by_own(100);
		for (volatile int i = 0; i < 100000; i++)
			;
	}
	printf("by_own %lu\n", 100 * turns);
	return 0;
}
"""
NAMES = ("malloc", "calloc", "realloc", "memalign", "aligned_alloc", "posix_memalign", "reallocarray")


def sh(*arguments):
    return subprocess.run(arguments, capture_output=True, text=True, check=True).stdout


class Stripped:
    """A program with an id of its own and no symbols, and its twin that has them."""

    def __init__(self, name, source=None):
        self.whole, self.bare = os.path.join(WORK, name + ".debug"), os.path.join(WORK, name)
        source = source or os.path.join(PROGRAMS, "takes_static")
        first = sh("readelf", "-n", source).split("Build ID: ")[1].split()[0]
        self.build_id = os.urandom(len(first) // 2).hex()
        text = open(source, "rb").read()
        assert text.count(bytes.fromhex(first)) == 1
        open(self.whole, "wb").write(text.replace(bytes.fromhex(first), bytes.fromhex(self.build_id)))
        sh("strip", "-o", self.bare, self.whole)
        os.chmod(self.bare, 0o755)
        assert not sh("nm", self.bare)
        self.name = name

    def put(self, server):
        return server.request("PUT", "/api/v1/modules/" + self.build_id, open(self.whole, "rb").read())[0]

    def move_functions(self, by):
        """Its symbols lie: each function is some bytes further on."""
        text = bytearray(open(self.whole, "rb").read())
        at, = struct.unpack_from("<Q", text, 40)
        count, = struct.unpack_from("<H", text, 60)
        sections = [struct.unpack_from("<IIQQQQIIQQ", text, at + 64 * i) for i in range(count)]
        moved = 0
        for table in (section for section in sections if section[1] == 2):
            strings = sections[table[6]][4]
            for symbol in range(table[4], table[4] + table[5], 24):
                begin = strings + struct.unpack_from("<I", text, symbol)[0]
                value, = struct.unpack_from("<Q", text, symbol + 8)
                if text[begin:text.index(0, begin)].decode() in NAMES and value:
                    struct.pack_into("<Q", text, symbol + 8, value + by)
                    moved += 1
        open(self.whole, "wb").write(text)
        return moved


def agent_for(programs, server, name):
    agent = Agent("--profile", "mem-alloc", "--report-interval", "1s", "--mem-budget", "20%", "--log-level", "debug", "--pid",
                  ",".join(str(program.process.pid) for program in programs), server=server, log=name + ".log", wait=False)
    check(wait_for(lambda: "info profiling" in agent.text(), 60), "the agent profiles", agent.text())
    return agent


def counters_of(agent):
    lines = [line for line in agent.text().splitlines() if windows.LOG in line]
    counters = dict(word.split("=", 1) for word in lines[-1].split(windows.LOG)[1].split())
    return {name: int(value) for name, value in counters.items() if value.isdigit()}


def with_own_allocator():
    """Linked with the C library, whose functions it does not call."""
    path = os.path.join(WORK, "own.c")
    open(path, "w").write(OWN)
    sh("cc", "-O2", "-fPIE", "-pie", "-Wl,--build-id=sha1", path, "-o", path[:-2] + ".linked")
    return path[:-2] + ".linked"


def sums_of(server, tally, process):
    """{site or None: (bytes, samples)}, of what the server keeps of that process."""
    sums = {}
    for place, value in enumerate(("value", "samples")):
        for frames, count in server.folded(type="mem-alloc", value=value):
            site = next((name for name in tally if name in frames), None)
            if frames[0] == process:
                sums.setdefault(site, [0, 0])[place] += count
    return sums


def tally_of(program):
    return {site: value for site, value in program.tally().items() if site.startswith("by_")}


def test_known():
    """The server's folder has their symbols: of a static program, and of one that has its own allocator."""
    files = [Stripped("known"), Stripped("own", with_own_allocator())]
    folder = os.path.join(WORK, "symbols")
    os.makedirs(folder)
    for file in files:
        os.rename(file.whole, os.path.join(folder, file.name + ".debug"))
    server = Server("--symbol-dir", folder, data="known-data", log="known-server.log")
    programs = [windows.Program(file.name, seconds=SECONDS, path=file.bare) for file in files]
    agent = agent_for(programs, server, "known-agent")
    for program in programs:
        program.go()
    tallies = [tally_of(program) for program in programs]
    end(agent.process)
    counters = counters_of(agent)
    note(str(counters))
    sites = [site for tally in tallies for site in tally]
    server.wait_for_names(lambda rows: rows and all(any(site in frames for site in sites) for frames, _ in rows), 10,
                          type="mem-alloc", value="value")
    for file, program, tally, least in zip(files, programs, tallies, (200, 20)):
        own = "\n".join(line for line in agent.text().splitlines() if "window pid=%d " % program.process.pid in line)
        sums = sums_of(server, tally, file.name)
        check(sum(count for site, (_, count) in sums.items() if site) >= least, "%s: samples" % file.name, sums)
        windows.compare(file.name, sums, tally, windows.Windows(own, {}))
    equal([counters["names_" + what] for what in ("asked", "answered", "unknown", "refused")], [2, 2, 0, 0],
          "the server was asked once of each, and knew them all")
    server.stop()


def test_claims():
    """One whose symbols come later, and one whose symbols are wrong: a probe within an instruction would end it."""
    late, wrong = Stripped("late"), Stripped("wrong")
    moved = wrong.move_functions(1)
    server = Server(data="claims-data", log="claims-server.log")
    equal(wrong.put(server), 201, "a file with %d wrong symbols is uploaded" % moved)
    programs = [windows.Program(file.name, seconds=SECONDS + 5, path=file.bare) for file in (late, wrong)]
    agent = agent_for(programs, server, "claims-agent")
    for program in programs:
        program.go()
    asked = lambda file: [line for line in agent.text().splitlines() if "functions asked for build_id=" + file.build_id in line]
    check(wait_for(lambda: len(asked(late)) >= 2, 6, 0.1), "the unknown one is asked about again", asked(late))
    check("window pid=" not in agent.text(), "nothing is probed by then", agent.text())
    equal(late.put(server), 201, "its symbols come")
    tallies = [tally_of(program) for program in programs]
    equal([program.process.wait() for program in programs], [0, 0], "both programs end well")
    end(agent.process)
    counters = counters_of(agent)
    note(str(counters))
    equal((counters["names_answered"], counters["names_refused"]), (2, moved), "functions that are not there are refused, each")
    check(1 <= counters["names_unknown"] <= 5 and counters["names_asked"] == counters["names_unknown"] + 2,
          "what is not known is asked ever more rarely", counters)
    check("window pid=%d " % programs[0].process.pid in agent.text(), "the one whose symbols came is probed", agent.text())
    check("window pid=%d " % programs[1].process.pid not in agent.text(), "the one whose symbols are wrong is not", agent.text())
    check(all(value for tally in tallies for value in tally.values()), "both did their work", tallies)
    server.stop()


if __name__ == "__main__":
    need_bpf()
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    build_programs("takes_static")
    run(test_known, test_claims)
