# SPDX-License-Identifier: Apache-2.0
"""How many stacks come whole while the machine works: a mixed load, the first samples of fresh processes, and
programs that live 100 ms."""
import collections
import os
import resource
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))

from harness import PROGRAMS, WORK, Agent, check, end, need_bpf, note, run, start  # noqa: E402
from unwind_compare import read_samples  # noqa: E402
from unwind_targets import JAVA, NODE, PERL, PYTHON, Target, build_small, real, which, written  # noqa: E402

RATE = 99
SECONDS = 20


def sampled(work, *arguments):
    """Runs work() while the agent runs; (its value, samples)."""
    stacks = os.path.join(WORK, work.__name__ + ".stacks")
    agent = Agent("--frequency", str(RATE), "--debug-stacks", stacks, "--output", stacks + ".otlp",
                  log=work.__name__ + ".log")
    value = work(*arguments)
    time.sleep(1)
    status, _ = agent.stop()
    check(status == 0, "%s: the agent ends with status 0" % work.__name__, agent.text()[-500:])
    return value, read_samples(stacks)


# First sights whose copies a busy host refused, cut or overtook: how many they are is the host's load, so the bench
# counts them; a stack that was walked by its rows has no such excuse.
OF_THE_LOAD = ("not_loaded", "copy_short", "mappings_changed")
COMPILED_LATE = {"node": 0.7, "java": 0.5}  # what their compilers make has no tables; measured 0.95 and 0.8


def shares(name, samples):
    """The share that is complete of all, and of those the load left alone."""
    results = collections.Counter(sample.result for sample in samples)
    whole = results["complete"] / len(samples) if samples else 0
    walked = len(samples) - sum(results[result] for result in OF_THE_LOAD)
    note("%-16s %6d samples, %6.2f %% complete, %d guessed, %d copied; %s" % (
        name, len(samples), 100 * whole, sum(s.is_guessed for s in samples), sum(s.way == "copy" for s in samples),
        ", ".join("%s %d" % r for r in results.most_common() if r[0] != "complete")))
    return whole, results["complete"] / walked if walked else 0


def mixed_load():
    """name → pid of what runs for SECONDS."""
    deep = PROGRAMS + "/unwind/deep"
    processes = {"deep": start([deep, str(SECONDS)]), "deep 2": start([deep, str(SECONDS)])}
    processes["python3"] = start(["/usr/bin/python3", "-c", PYTHON, str(SECONDS)])
    if which("perl"):
        processes["perl"] = start(["perl", "-e", PERL, str(SECONDS)])
    if which("node"):
        processes["node"] = start([which("node"), "-e", NODE, str(SECONDS)])
    if which("java"):
        source = written(WORK, "Garbage.java", JAVA)
        processes["java"] = start([which("java"), "-Xmx256m", source, str(SECONDS)])
    sleepers = [start(["sleep", str(SECONDS)]) for _ in range(50)]
    time.sleep(SECONDS)
    pids = {name: process.pid for name, process in processes.items()}
    for process in list(processes.values()) + sleepers:
        end(process, 5)
    return pids


def load():
    pids, samples = sampled(mixed_load)
    samples = [s for s in samples if s.frames]
    by_pid = collections.defaultdict(list)
    for sample in samples:
        by_pid[sample.pid].append(sample)
    whole = {name: shares(name, by_pid[pid]) for name, pid in pids.items()}
    known = set(pids.values())
    shares("everything else", [s for s in samples if s.pid not in known])
    shares("all", samples)
    for name in ("deep", "deep 2", "python3", "perl"):
        if name in whole:
            check(whole[name][0] >= 0.9 and whole[name][1] >= 0.99,
                  "%s: at least 99 %% of its stacks are complete" % name,
                  "%.2f %%, of what the load left alone %.2f %%" % tuple(100 * part for part in whole[name]))
    for name, least in COMPILED_LATE.items():
        if name in whole:
            check(len(by_pid[pids[name]]) >= 100 and whole[name][1] >= least,
                  "%s: at least %d %% of its stacks are complete" % (name, 100 * least),
                  "%.2f %% of %d" % (100 * whole[name][1], len(by_pid[pids[name]])))


def everyday():
    """Programs that are started more often than those one debugs."""
    python = os.path.realpath("/usr/bin/python3")
    cc1plus = subprocess.run(["g++", "-print-prog-name=cc1plus"], capture_output=True, text=True).stdout.strip()
    source = written(WORK, "fresh.cc", "#include <algorithm>\n#include <map>\n#include <regex>\n#include <string>\n"
                     "int use(std::string s) { std::map<std::string, std::regex> m; return m.count(s); }\n")
    for argv in (["objdump", "-d", python], ["readelf", "-aW", cc1plus], [cc1plus, "-O2", "-quiet", source, "-o", "/dev/null"],
                 ["awk", "BEGIN { while (1) x[i++ % 1000] = x[i % 7] i }"], ["strings", "-a", python, cc1plus],
                 ["sh", "-c", "while :; do i=$((i + 1)); case $i in *9) : ;; esac; done"],
                 ["sha256sum", "/dev/zero"], ["grep", "-cE", "(a|b)+c.*[0-9]{9}", cc1plus, python]):
        program = which(argv[0])
        yield Target(os.path.basename(argv[0]), [program or argv[0], *argv[1:]],
                     why_skip=None if program else argv[0] + " is not installed")


def fresh_processes():
    """[(name, pid)] of programs started one after the other, each for two seconds at most."""
    started = []
    for target in [*real(WORK, 2), *everyday()]:
        if target.why_skip or target.is_child or target.name in ("java", "node"):
            continue
        process = start(target.argv, cwd=target.cwd, env=dict(os.environ, **(target.environment or {})))
        started.append((target.name, process.pid))
        time.sleep(0.7)
        end(process, 5, 9)
    return started


def first_samples():
    started, samples = sampled(fresh_processes)
    first = []
    for name, pid in started:
        mine = [s for s in samples if s.pid == pid and s.frames][:10]
        shares(name, mine)
        first += mine
    whole, walked = shares("first ten of all", first)
    check(len(first) >= 60 and whole >= 0.8 and walked >= 0.95,
          "of the first ten samples of fresh processes 95 % are complete",
          "%.2f %% of %d, of what the load left alone %.2f %%" % (100 * whole, len(first), 100 * walked))


def short_lives():
    """(pids, seconds of CPU) of 200 programs of 100 ms."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    pids = set()
    for _ in range(200):
        process = subprocess.Popen([PROGRAMS + "/unwind/deep", "0.1"], close_fds=False)
        pids.add(process.pid)
        process.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return pids, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def short_programs():
    (pids, used_s), samples = sampled(short_lives)
    mine = [s for s in samples if s.pid in pids]
    whole, walked = shares("200 short ones", mine)
    note("rusage promises %.0f samples, %d arrived" % (used_s * RATE, len(mine)))
    check(len(mine) >= 0.95 * used_s * RATE, "of 200 programs of 100 ms at least 95 % of the samples arrive",
          "%d of %.0f" % (len(mine), used_s * RATE))
    check(whole >= 0.8 and walked >= 0.95, "and 95 % of those are complete",
          "%.2f %%, of what the load left alone %.2f %%" % (100 * whole, 100 * walked))


need_bpf()
build_small(os.path.join(PROGRAMS, "unwind"))
run(load, first_samples, short_programs)
