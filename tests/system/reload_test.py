#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""SIGHUP while the agent profiles: every type begins and ends with it, under one process id; nothing of what was
taken is lost or told twice, not even while the server is away and reports wait in the spool."""
import os
import re
import signal
import subprocess
import time

from harness import (BUILD, PROGRAMS, WORK, Agent, Server, build_programs, check, end, equal, fd_links, need_bpf, note, run,
                     start, wait_for)

need_bpf()
build_programs("burn")
CONFIG = os.path.join(WORK, "agent.conf")
LONG = os.environ.get("RELOAD_LONG")
SPOOL = os.path.join(WORK, "spool")
# It burns, is preempted, waits, is woken, touches new pages, and takes and gives back memory.
BUSY = """
import mmap, time
while True:
    for _ in range(20):
        time.sleep(0.002)
        with mmap.mmap(-1, 1 << 20) as memory:
            for at in range(0, len(memory), 4096):
                memory[at] = 1
"""


def offered():
    """The types of --help."""
    text = subprocess.run([BUILD + "/farflame-agent", "--help"], capture_output=True, text=True, check=True).stdout
    listed = re.search(r"what to profile: ((?:[a-z-]+, )*[a-z-]+), separated", " ".join(text.split()))
    return listed.group(1).split(", ")


def profile(types):
    with open(CONFIG + ".new", "w") as file:
        file.write("profile = %s\n" % ",".join(types))
    os.replace(CONFIG + ".new", CONFIG)


def reload(agent, types):
    """Seconds until it samples again; None: it does not."""
    begun = agent.text().count("info profiling")
    profile(types)
    begin = time.monotonic()
    agent.process.send_signal(signal.SIGHUP)
    again = wait_for(lambda: agent.text().count("info profiling") > begun, 30)
    return time.monotonic() - begin if again and agent.process.poll() is None else None


def spool_is_empty():
    return not [name for name in os.listdir(SPOOL) if name.endswith(".spool")]


def started(server, types, log, *processes):
    """Of these processes only: on a busy host everything, without a budget, is more than the rings take."""
    pids = ",".join(str(process.pid) for process in processes)
    agent = Agent("--config", CONFIG, "--pid", pids, "--report-interval", "1s", "--spool", SPOOL, "--frequency", "199",
                  "--upload", "never", "--off-cpu-budget", "100%", "--page-fault-budget", "100%", "--log-level", "info",
                  server=server, log=log)
    check(types and agent.process.poll() is None, "it profiles %s" % ", ".join(types))
    return agent


def seen(server, kind):
    return sum(value for _, value in server.folded(type=kind, value="samples"))


def cpu_s(pid):
    return int(open("/proc/%d/schedstat" % pid).read().split()[0]) / 1e9


def taken_of_all(agent):
    """What each run under this process id said last; a run begins with "profiling"."""
    runs = agent.text().split("info profiling ")[1:]
    said = [re.findall(r" taken=(\d+) ", part) for part in runs]
    return [int(numbers[-1]) if numbers else None for numbers in said]


def test_types():
    """Each type: not there before, there after it is switched on, no more of it after it is switched off. What is
    still-blocked takes more than ten seconds: it is waited for with RELOAD_LONG=1."""
    server = Server("--symbol-dir", PROGRAMS)
    types = offered()
    others = [name for name in types if name != "on-cpu"]
    profile(["on-cpu"])
    busy = start(["/usr/bin/python3", "-c", BUSY])
    sleeper = start(["/bin/sleep", "300"])
    burner = start([PROGRAMS + "/burn", "60", "300"])
    agent = started(server, ["on-cpu"], "types.log", busy, sleeper, burner)
    pid = agent.process.pid
    check(wait_for(lambda: seen(server, "on-cpu"), 20), "on-cpu at first")
    equal({kind: seen(server, kind) for kind in others}, {kind: 0 for kind in others}, "and nothing else")
    paused = reload(agent, types)
    check(paused is not None, "all types are switched on")
    note("%s s until it profiles again" % paused)
    expected = [kind for kind in others if not kind.startswith("mem-") and (LONG or kind != "still-blocked")]
    missing = lambda: [kind for kind in expected if not seen(server, kind)]  # noqa: E731
    wait_for(lambda: not missing(), 40)
    equal(missing(), [], "each of them has samples")
    paused = reload(agent, ["page-fault"])
    check(paused is not None, "all but one are switched off")
    time.sleep(1.5)  # what was on its way is there
    before = {kind: seen(server, kind) for kind in types}
    check(wait_for(lambda: seen(server, "page-fault") > before["page-fault"], 20), "the one goes on")
    after = {kind: seen(server, kind) for kind in types}
    equal({kind: after[kind] - before[kind] for kind in types if kind != "page-fault"},
          {kind: 0 for kind in types if kind != "page-fault"}, "nothing comes of the others")
    links = fd_links(pid)
    check(links and not any("bpf_link" in link or "raw_tracepoint" in link for link in links), "no tracepoint is left", links)
    for wanted in (["page-fault"], types, ["on-cpu"]):
        profile(wanted)
        agent.process.send_signal(signal.SIGHUP)
        time.sleep(0.3)
    before = seen(server, "on-cpu")
    check(wait_for(lambda: seen(server, "on-cpu") > before, 30), "of several changes at once the last holds")
    equal(agent.stop()[0], 0, "SIGTERM ends it")
    equal(agent.process.pid, pid, "all under one process id")
    for kind in types:
        answer = server.flamegraph(type=kind)["accounting"]
        equal((answer["taken"], answer["lost_by"].get("unexplained", 0)), (answer["samples"] + answer["lost"], 0),
              "%s: taken = samples + lost" % kind)
    for process in (busy, sleeper, burner):
        end(process)
    server.stop()


def test_spool():
    """The server is away while options change, back and forth."""
    server = Server("--symbol-dir", PROGRAMS, data="spool-data")
    profile(["on-cpu"])
    burner = start([PROGRAMS + "/burn", "60", "300"])
    agent = started(server, ["on-cpu"], "spool.log", burner)
    begin, began = cpu_s(burner.pid), time.monotonic()
    check(wait_for(lambda: seen(server, "on-cpu"), 20), "reports come")
    early = seen(server, "on-cpu")
    server.stop()
    pauses = []
    for types in (offered(), ["on-cpu", "page-fault"], ["on-cpu"]):
        pauses.append(reload(agent, types))
        time.sleep(1.5)
    check(None not in pauses, "options change while the server is away", agent.text()[-800:])
    equal("samples not sent" in agent.text(), False, "nothing is thrown away")
    server.start()
    check(wait_for(spool_is_empty, 40), "the server is back: the spool becomes empty", agent.text()[-800:])
    agent.stop()
    used, lasted = cpu_s(burner.pid) - begin, time.monotonic() - began
    taken = taken_of_all(agent)
    equal(len(taken), 4, "it began four times")
    accounting = server.flamegraph()["accounting"]
    note("taken %s, pauses %s, %s" % (taken, pauses, accounting))
    check(None not in taken and accounting["taken"] == sum(taken), "the server has what all four say they took, once",
          (taken, accounting))
    equal(accounting["taken"], accounting["samples"] + accounting["lost"], "taken = samples + lost")
    equal(accounting["lost_by"].get("unexplained", 0), 0, "nothing is unexplained")
    samples = seen(server, "on-cpu")
    share = max(0, lasted - sum(pauses)) / lasted
    check(early < samples and 0.6 * share * used <= samples / 199 <= 1.15 * used + 0.3,
          "what a program used of its CPU is there once", "%d samples at 199 Hz, %.2f s, paused for %s" % (samples, used, pauses))
    end(burner)


run(test_types, test_spool)
