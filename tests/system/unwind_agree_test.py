# SPDX-License-Identifier: Apache-2.0
"""The programs of tests/programs/unwind under gdb: at every stop the agent has exactly gdb's frames.

UNWIND_STOPS=N: stops of each (25); UNWIND_PROGRAMS=real: programs of this machine instead, =all: both. make
check-unwind does both with many stops and prints the table."""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))

from harness import BUILD, PROGRAMS, WORK, check, need_bpf, note, run, skip, skip_all  # noqa: E402
from unwind_run import Failed, compare, heading, row  # noqa: E402
from unwind_targets import build_small, real, small, which  # noqa: E402

STOPS = int(os.environ.get("UNWIND_STOPS", "25"))
WHICH = os.environ.get("UNWIND_PROGRAMS", "small")
ONLY = os.environ.get("UNWIND_ONLY", "").split()
# Equal stacks of all stops; and of those of one program, few as they are. Code without any table, 32-bit code and the
# JIT compilers' is counted apart: there the rule is that nothing wrong is called complete.
EQUAL_ALL = 0.999
DECLARED = {"no_table", "compat", "java", "node"}


def targets():
    if WHICH in ("small", "all"):
        programs = os.path.join(PROGRAMS, "unwind")
        check(build_small(programs), "the programs can be built")
        yield from small(programs)
    if WHICH in ("real", "all"):
        yield from real(WORK)


def stacks_are_gdbs():
    agent = BUILD + "/farflame-agent"
    all_stops = all_equal = all_complete = 0
    note(heading())
    for target in targets():
        if ONLY and target.name not in ONLY:
            continue
        if target.why_skip:
            skip("%s: %s" % (target.name, target.why_skip))
            continue
        begin = time.monotonic()
        try:
            result = compare(target, STOPS, agent, WORK, seconds=30 + STOPS // 4)
        except Failed as error:
            check(False, "%s can be compared" % target.name, str(error))
            continue
        note(row(target.name, result) + "  %.1f s" % (time.monotonic() - begin))
        enough = result.stops >= STOPS * 0.6
        check(enough and not result.kinds["wrong"],
              "%s: nothing wrong is called complete" % target.name,
              "%d stops matched of %d, %s; %s\n%s" % (result.stops, STOPS, result.how, dict(result.kinds),
                                                      result.shown()))
        for sample, stop in result.ends_differ[:2]:
            note("%s: %s, gdb ends %s at %s" % (target.name, sample.result, stop.end,
                                               result.names.get(stop.frames[-1])))
        if target.name not in DECLARED:
            all_stops += result.stops
            all_equal += result.kinds["equal"] + result.kinds["delivered"]
            all_complete += result.results["complete"]
            if result.examples:
                note(result.shown().replace("\n", "\n# "))
    share = all_equal / all_stops if all_stops else 0
    note("%d of %d stops equal, %.3f %%; complete %.3f %%" % (all_equal, all_stops, 100 * share,
                                                             100 * all_complete / max(all_stops, 1)))
    check(share >= EQUAL_ALL, "at least %.1f %% of all stacks are gdb's, frame by frame" % (100 * EQUAL_ALL),
          "%d of %d" % (all_equal, all_stops))


if not which("gdb"):
    skip_all("gdb is not installed")
need_bpf()
run(stacks_are_gdbs)
