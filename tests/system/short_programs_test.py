# SPDX-License-Identifier: Apache-2.0
"""200 programs of 50 ms CPU each: at least 95 % of the samples their rusage promises arrive with mappings. A storm of
them, more at once than there are CPUs, each under a name of its own: none remains without a name."""
import collections
import os
import subprocess
import time

from harness import CPUS, PROGRAMS, WORK, Agent, Server, build_programs, check, equal, need_bpf, note, run

RATE = 499
STORM_S = 12


def is_mapped(frames):
    """At least one user frame that lies in a file, by name or as module+0x…."""
    return any(not f.endswith("_[k]") and not f.startswith("[") for f in frames[1:])


def short_programs():
    build_programs("short_life")
    server = Server()
    agent = Agent("--frequency", str(RATE), "--report-interval", "2s", server=server)
    done = subprocess.run([PROGRAMS + "/short_life", "200"], capture_output=True, text=True, timeout=240, check=True)
    used = float(done.stdout)
    time.sleep(0.2)
    check(agent.stop()[0] == 0, "the agent ends with status 0", agent.text()[-500:])
    # The launcher waits all the time: samples under this name are the programs'.
    rows = server.wait_for_names(lambda rows: any("short_work" in f for f, _ in rows), match='{process="short_life"}')
    seen = sum(value for _, value in rows)
    mapped = sum(value for frames, value in rows if is_mapped(frames))
    note("rusage promises %.0f samples, %d seen, %d with mappings" % (used * RATE, seen, mapped))
    check(mapped >= 0.95 * used * RATE, "at least 95 % arrive with their mappings",
          "%d of %.0f; without: %s" % (mapped, used * RATE, sorted(
              ((v, ";".join(f)) for f, v in rows if not is_mapped(f)), reverse=True)[:5]))
    named = sum(value for frames, value in rows if "short_work" in frames)
    check(named >= 0.85 * mapped, "most of them in short_work, by name", "%d of %d" % (named, mapped))


def storm():
    """Many a first sample falls into execve(), before there is a user frame."""
    server = Server(data="storm")
    agent = Agent("--frequency", str(RATE), "--report-interval", "2s", server=server, log="storm.log")
    os.makedirs(WORK + "/storm", exist_ok=True)
    begin, running, started = time.monotonic(), set(), 0
    while time.monotonic() < begin + STORM_S or running:
        while time.monotonic() < begin + STORM_S and len(running) < 4 * CPUS:
            path = WORK + "/storm/storm%05d" % started
            if not os.path.exists(path):
                os.link(PROGRAMS + "/short_life", path)
            running.add(os.posix_spawn("/usr/bin/env", ["env", path], os.environ))
            started += 1
        running.discard(os.wait()[0])
    time.sleep(0.2)
    check(agent.stop()[0] == 0, "the agent ends with status 0", agent.text()[-500:])
    seen, mapped, nameless = collections.Counter(), collections.Counter(), collections.Counter()
    for frames, value in server.folded():
        if frames[0].startswith("storm"):
            seen[frames[0]] += value
            mapped[frames[0]] += value if is_mapped(frames) else 0
            nameless[frames[-1] if frames[-1].startswith("[") else ""] += value
    note("%d programs, %d seen, %d samples; ends: %s" % (started, len(seen), seen.total(), nameless.most_common(4)))
    check(len(seen) > started / 2, "most programs are seen", "%d of %d" % (len(seen), started))
    without = [(name, count) for name, count in seen.items() if count > 3 and not mapped[name]]
    equal(without, [], "no program of more than three samples is without a frame")


need_bpf()
run(short_programs, storm)
