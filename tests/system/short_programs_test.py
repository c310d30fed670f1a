# SPDX-License-Identifier: Apache-2.0
"""200 programs of 50 ms CPU each: at least 95 % of the samples their rusage promises arrive with mappings."""
import subprocess
import time

from harness import PROGRAMS, Agent, Server, build_programs, check, need_bpf, note, run

RATE = 499


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
    # With mappings: at least one user frame that lies in a file, by name or as module+0x….
    mapped = sum(value for frames, value in rows
                 if any(not f.endswith("_[k]") and not f.startswith("[") for f in frames[1:]))
    note("rusage promises %.0f samples, %d seen, %d with mappings" % (used * RATE, seen, mapped))
    check(mapped >= 0.95 * used * RATE, "at least 95 % arrive with their mappings",
          "%d of %.0f; without: %s" % (mapped, used * RATE, sorted(
              ((v, ";".join(f)) for f, v in rows
               if all(f_.endswith("_[k]") or f_.startswith("[") for f_ in f[1:])), reverse=True)[:5]))
    named = sum(value for frames, value in rows if "short_work" in frames)
    check(named >= 0.85 * mapped, "most of them in short_work, by name", "%d of %d" % (named, mapped))


need_bpf()
run(short_programs)
