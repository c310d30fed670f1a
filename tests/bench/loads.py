# SPDX-License-Identifier: Apache-2.0
"""What the profilers are measured on."""
import os
import resource
import shutil
import subprocess
import sys
import time

from harness import CPUS, PROGRAMS, WORK, build_programs, end, program_copy, start

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))

from unwind_targets import JAVA, NODE, PYTHON, written  # noqa: E402

DEEP = "bench-deep"      # 40 functions without frame pointers above main: 44 frames at the innermost
RECURSION = "bench-600"
SHORT = "bench-short"
CLANG = "bench-clang"    # a name of its own: others may compile, too
FOREVER = "3600"

# A compilation of about two seconds, most of it in libLLVM and libclang.
BIG_SOURCE = "#include <iostream>\n#include <map>\n#include <regex>\n#include <string>\n" + "".join(
    "int use_%d(const std::string &s) { std::map<std::string, int> m; std::smatch f; std::regex r(s);\n"
    "  for (auto &c : s) m[std::string(%d, c)]++; return std::regex_search(s, f, r) + (int)m.size(); }\n" % (i, i)
    for i in range(6))


def build():
    build_programs("burn")
    subprocess.run(["sh", "tests/programs/unwind/build.sh", PROGRAMS + "/unwind", "deep", "recursion"], check=True,
                   stdout=sys.stderr)
    for program, name in (("deep", DEEP), ("recursion", RECURSION), ("deep", SHORT)):
        program_copy("unwind/" + program, name)
    os.symlink(os.path.realpath(shutil.which("clang")), path(CLANG))
    written(WORK, "big.cc", BIG_SOURCE)
    written(WORK, "small.c", "int main(void) { return 0; }\n" + "".join(
        "int f%d(int a) { for (int i = 0; i < a; i++) a ^= i * %d; return a; }\n" % (i, i) for i in range(10)))


def path(name):
    return os.path.join(WORK, name)


class Processes:
    """Some that run until they are ended."""

    def __init__(self):
        self.all = []

    def add(self, *arguments):
        self.all.append(start(list(arguments)))
        return self

    def burners(self, count, percent):
        """So much of one CPU all together."""
        for _ in range(count):
            self.add(PROGRAMS + "/burn", "%.3f" % (percent / count), FOREVER)
        return self

    def end(self):
        for process in self.all:
            process.kill()
        for process in self.all:
            end(process)


def fifty():
    """50 processes that keep all CPUs busy: native code without frame pointers, CPython, small ones."""
    load = Processes().add(path(DEEP), FOREVER).add("/usr/bin/python3", "-c", PYTHON, FOREVER)
    return load.burners(48, 100 * CPUS / 4)


def two_hundred(load):
    """Fifty, and a JVM and node and small ones, 200 in all."""
    if shutil.which("java"):
        load.add("java", "-Xmx256m", written(WORK, "Garbage.java", JAVA), FOREVER)
    if shutil.which("node"):
        load.add("node", "-e", NODE, FOREVER)
    return load.burners(200 - len(load.all), 100 * CPUS / 8)


def busy():
    load = Processes()
    for _ in range(CPUS):
        load.add(path(DEEP), FOREVER)
    return load


def children_cpu_s():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def compile_big():
    """(unix time of its start, CPU seconds) of a fresh clang."""
    begin, used = time.time(), children_cpu_s()
    subprocess.run([path(CLANG), "-x", "c++", "-O2", "-c", path("big.cc"), "-o", path("big.o")], check=True)
    return begin, children_cpu_s() - used


def short_programs(count=200, each_s=0.1):
    """CPU seconds of so many programs, one per CPU at a time."""
    used, running = children_cpu_s(), []
    for _ in range(count):
        running.append(subprocess.Popen([path(SHORT), str(each_s)], close_fds=False))
        if len(running) == CPUS:
            running.pop(0).wait()
    for process in running:
        process.wait()
    return children_cpu_s() - used


def storm(seconds, per_second=20):
    """Starts so many programs a second: compilers, each of which starts another."""
    begin, running, count = time.monotonic(), [], 0
    while time.monotonic() - begin < seconds:
        running.append(subprocess.Popen(["cc", "-O1", "-S", path("small.c"), "-o", "/dev/null"], close_fds=False))
        count += 2
        running = [process for process in running if process.poll() is None]
        time.sleep(max(0, begin + count / per_second - time.monotonic()))
    for process in running:
        process.wait()
    return count / (time.monotonic() - begin)
