# SPDX-License-Identifier: Apache-2.0
"""One program under gdb and the agent at once, and what came of it: a line of the table of agreement."""
import os
import signal
import subprocess
import time

from unwind_compare import Comparison, read_samples, read_stops

HERE = os.path.dirname(os.path.abspath(__file__))


class Target:
    """argv: what to start; gdb_file: what gdb reads symbols from instead of the program itself; is_child: its
    child is meant; settle_s: how long it starts up; agent: more options; mapped: files it maps itself."""

    def __init__(self, name, argv, gdb_file=None, is_child=False, settle_s=0.2, agent=(), mapped=(), cwd=None,
                 environment=None, why_skip=None):
        self.name, self.argv, self.gdb_file, self.is_child = name, argv, gdb_file, is_child
        self.settle_s, self.agent, self.mapped, self.cwd = settle_s, list(agent), list(mapped), cwd
        self.environment, self.why_skip = environment, why_skip


def child_of(pid, seconds=5):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            children = open("/proc/%d/task/%d/children" % (pid, pid)).read().split()
        except OSError:
            return None
        if children:
            return int(children[0])
        time.sleep(0.02)
    return None


def wait_for_file(path, text, process, seconds):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        if os.path.exists(path) and text in open(path).read():
            return True
        time.sleep(0.02)
    return False


def kill_group(process):
    """The process and what it started: each was started as the leader of a session of its own."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


class Failed(Exception):
    pass


def run_gdb(target, pid, stops, base):
    environment = dict(os.environ, UNWIND_PID=str(pid), UNWIND_OUT=base + ".stops", UNWIND_STOPS=str(stops),
                       UNWIND_MAPPED=" ".join(target.mapped))
    if os.path.exists(base + ".stops"):
        os.unlink(base + ".stops")
    gdb = subprocess.Popen(["gdb", "-nx", "-q", "-batch", "-x", HERE + "/unwind_gdb.py",
                            target.gdb_file or "/proc/%d/exe" % pid],
                           stdin=subprocess.DEVNULL, stdout=open(base + ".gdb.log", "w"),
                           stderr=subprocess.STDOUT, env=environment, start_new_session=True)
    if not wait_for_file(base + ".stops", "ready", gdb, 60):
        kill_group(gdb)
        raise Failed("gdb did not attach: " + open(base + ".gdb.log").read()[-300:])
    return gdb


def compare(target, stops, agent_program, work, seconds=60, frequency=97):
    """Runs the target until gdb has seen so many stops or the time is over; its Comparison."""
    base = os.path.join(work, target.name)
    log = open(base + ".log", "w")
    process = subprocess.Popen(target.argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=target.cwd,
                               env=dict(os.environ, **(target.environment or {})), start_new_session=True)
    gdb = agent = None
    try:
        time.sleep(target.settle_s)
        pid = child_of(process.pid) if target.is_child else process.pid
        if not pid or process.poll() is not None:
            raise Failed("it ended at once: " + open(base + ".log").read()[-300:])
        gdb = run_gdb(target, pid, stops, base)
        agent = subprocess.Popen([agent_program, "--pid", str(pid), "--frequency", str(frequency), "--debug-stop",
                                  "--debug-stacks", base + ".stacks", "--output", base + ".otlp", *target.agent],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=open(base + ".agent.log", "w"), start_new_session=True)
        deadline = time.monotonic() + seconds
        while gdb.poll() is None and time.monotonic() < deadline:
            if agent.poll() is not None:
                raise Failed("the agent ended with %d: %s" % (agent.returncode,
                                                              open(base + ".agent.log").read()[-300:]))
            time.sleep(0.05)
        agent.terminate()
        agent.wait(20)
    except subprocess.TimeoutExpired:
        raise Failed("the agent does not end") from None
    finally:
        for one in (process, gdb, agent):
            if one:
                kill_group(one)
    return finished(target, base)


def finished(target, base):
    stops, names, how = read_stops(base + ".stops")
    comparison = Comparison(read_samples(base + ".stacks"), stops, names)
    comparison.how = how
    return comparison


COLUMNS = "%-18s %6s %6s %9s %9s %8s %8s %6s %6s  %s"


def heading():
    return COLUMNS % ("program", "stops", "equal", "equal %", "complete%", "guessed", "copies", "no tab", "wrong",
                      "else")


def row(name, c):
    others = ["%s %d" % (kind, c.kinds[kind]) for kind in ("delivered", "exec", "cut", "declared", "guessed")
              if c.kinds[kind]]
    others += ["%s %d" % (result, count) for result, count in c.results.items() if result != "complete"]
    others += ["other file %d" % c.other_files] if c.other_files else []
    others += ["unmatched %d" % c.unmatched] if c.unmatched else []
    others += ["false ends %d" % c.false_ends] if c.false_ends else []
    others += ["ends differ %d" % len(c.ends_differ)] if c.ends_differ else []
    return COLUMNS % (name, c.stops, c.kinds["equal"], "%.2f" % (100 * c.share("equal")),
                      "%.2f" % (100 * c.complete()), c.guessed, c.copies, c.kinds["no_table"], c.kinds["wrong"],
                      ", ".join(others))
