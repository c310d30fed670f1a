#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Windows in allocators with what the shipped unit leaves the agent: its capabilities and its number of tasks. They are enough,
and where they are not, the agent says so, in its log and to the server. `make check-units` boots the unit itself."""
import configparser
import os
import shutil
import subprocess

import harness
from harness import PROGRAMS, Agent, Server, build_programs, check, end, equal, need_bpf, note, run, skip, skip_all, wait_for

UNIT = "deploy/systemd/farflame-agent.service"
WINDOWS = 6


def unit():
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str
    parser.read(UNIT)
    return dict(parser["Service"])


class Tasks:
    """A limit on tasks, as TasksMax makes one. None where no group can be made."""

    def __init__(self):
        lines = [line.strip().split(":", 2) for line in open("/proc/self/cgroup")]
        roots = [("/sys/fs/cgroup/pids", path) for _, names, path in lines if "pids" in names.split(",")]
        roots += [("/sys/fs/cgroup", path) for _, names, path in lines if not names]
        self.path = None
        for root, path in roots:
            for parent in (root + path, root):
                made = "%s/farflame-test-%d" % (parent, os.getpid())
                try:
                    os.mkdir(made)
                except OSError:
                    continue
                if os.path.exists(made + "/pids.max"):
                    self.path = made
                    return
                os.rmdir(made)

    def limit(self, count):
        with open(self.path + "/pids.max", "w", encoding="ascii") as file:
            file.write(str(count))

    def count(self):
        return int(open(self.path + "/pids.current", encoding="ascii").read())

    def prefix(self):
        return ["sh", "-c", 'echo $$ > %s/cgroup.procs && exec "$@"' % self.path, "sh"]

    def close(self):
        wait_for(lambda: not self.count(), 10)
        os.rmdir(self.path)


def rights(without=()):
    names = [name.removeprefix("CAP_").lower() for name in unit()["CapabilityBoundingSet"].split()]
    wanted = ",".join(["-all", *("+" + name for name in names if name not in without)])
    return ["setpriv", "--bounding-set", wanted, "--inh-caps", "-all", "--no-new-privs"]


def is_realtime_possible():
    return subprocess.run(["chrt", "-f", "1", "true"], capture_output=True).returncode == 0


def windowed(name, prefix, has_enough=None, spoil=None):
    """An agent whose windows are in two programs, until it has had some. (its log, what it lacks by /agents)"""
    server = Server()
    programs = [subprocess.Popen([PROGRAMS + "/takes", "300", "40000"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
                for _ in range(2)]
    harness._started.extend(programs)
    agent = Agent("--profile", "mem-alloc", "--mem-budget", "20%", "--log-level", "debug", "--report-interval", "2s",
                  "--host", name, "--pid", ",".join(str(program.pid) for program in programs), server=server, log=name + ".log", prefix=prefix)
    if spoil:
        spoil()
    for program in programs:
        program.stdin.write(b"\n")
        program.stdin.flush()
    has_enough = has_enough or (lambda text: text.count("debug window pid=") >= WINDOWS)
    is_enough = wait_for(lambda: has_enough(agent.text()), 90)
    found = {}

    def reported():
        of = [one for one in server.json("/api/v1/agents")["agents"] if one["host"] == name]
        found.update(of[0]["lacks"] if of else {})
        return of and (found or "agent lacks" not in agent.text())

    wait_for(reported, 30)
    text = agent.text()
    for process in (agent.process, *programs, server.process):
        end(process)
    check(is_enough, "%s: it comes to that" % name, text[-3000:])
    return text, found


def test_unit():
    """What the other tests emulate a part of, and what they do not."""
    service = unit()
    check("RestrictRealtime" not in service, "the unit lets the agent be first at a window's ends", service)
    check("CAP_SYS_NICE" in service["CapabilityBoundingSet"], "and has the capability for it")
    words = service["SystemCallFilter"].split()
    check("@system-service" in words and not [word for word in words if word.startswith("~")],
          "and the calls: sched_setscheduler() and sched_setaffinity() are of @system-service", words)


def test_enough():
    tasks = Tasks()
    if not tasks.path or not is_realtime_possible():
        return skip("this machine has no real-time priority for anybody, or no groups with a limit of tasks")
    tasks.limit(int(unit()["TasksMax"]))
    text, lacks = windowed("shipped", [*tasks.prefix(), *rights()])
    tasks.close()
    equal(lacks, {}, "the agent lacks nothing by what it tells the server")
    check("agent lacks" not in text, "nor by its log", [line for line in text.splitlines() if "lacks" in line])
    note([line for line in text.splitlines() if "debug window " in line][-1])


def test_no_realtime():
    text, lacks = windowed("restricted", rights(without=("sys_nice",)))
    check("agent lacks something what=realtime " in text, "without real-time priority the log says what that means", text[-3000:])
    check(lacks.get("realtime", 0) > 0, "and so does the server", lacks)


def test_few_tasks():
    """As many as it had at its start, and two."""
    tasks = Tasks()
    if not tasks.path:
        return skip("no groups with a limit of tasks")
    text, lacks = windowed("crowded", tasks.prefix(), lambda text: "what=threads " in text,
                           lambda: tasks.limit(tasks.count() + 2))
    tasks.close()
    check("agent lacks something what=threads " in text, "without tasks the log says what that means", text[-3000:])
    check(lacks.get("threads", 0) > 0, "and so does the server", lacks)


if __name__ == "__main__":
    need_bpf()
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    if not shutil.which("setpriv") or not shutil.which("chrt"):
        skip_all("there is no setpriv or chrt")
    build_programs("takes")
    run(test_unit, test_enough, test_no_realtime, test_few_tasks)
