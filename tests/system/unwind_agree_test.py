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
# Of the stacks that are not cut where the agent says so. Not asked of these programs how many are whole: code without
# any table, 32-bit code, just-in-time compilers, addresses whose code changes all the
# time, frames larger than any copy, goroutines that are on another stack at first sight.
AGREE = 0.999
# The short form's thousand stops cannot tell 0.1 % from chance, nor from a debugger on a busy machine.
AGREE_SHORT = 0.995
CUT = 0.03  # of all
COMPLETE = 0.97
NOT_WHOLE = {"no_table", "compat", "java", "node", "remap", "plugins", "big_frame", "go", "go_pie",
             "go_stripped", "go_cgo", "rustc"}


def targets():
    if WHICH in ("small", "all"):
        programs = os.path.join(PROGRAMS, "unwind")
        check(build_small(programs), "the programs can be built")
        yield from small(programs)
    if WHICH in ("real", "all"):
        yield from real(WORK)


class Sum:
    stops = equal = cut = others = whole_of = whole = 0

    def add(self, name, result):
        self.stops += result.stops
        self.equal += result.kinds["equal"] + result.kinds["delivered"]
        self.cut += result.kinds["cut"]
        self.others += sum(result.kinds[kind] for kind in ("declared", "guessed", "wrong"))
        self.others += result.false_ends
        self.others += result.kinds["exec"] if name not in ("exec_again", "spawn") else 0
        if name not in NOT_WHOLE:
            self.whole_of += result.stops
            self.whole += result.results["complete"]


def show(name, result, seconds):
    note(row(name, result) + "  %.1f s" % seconds)
    enough = result.stops >= STOPS * 0.6
    text = result.shown()
    check(enough and not result.kinds["wrong"], "%s: nothing wrong is called complete" % name,
          "%d stops matched of %d, %s; %s\n%s" % (result.stops, STOPS, result.how, dict(result.kinds), text))
    for line in text.splitlines() if not result.kinds["wrong"] else ():
        note(line)
    for sample, stop in result.ends_differ[:2]:
        note("%s: %s, gdb ends %s at %s" % (name, sample.result, stop.end, result.names.get(stop.frames[-1])))


def stacks_are_gdbs():
    total = Sum()
    note(heading())
    for target in targets():
        if ONLY and target.name not in ONLY:
            continue
        if target.why_skip:
            skip("%s: %s" % (target.name, target.why_skip))
            continue
        begin = time.monotonic()
        try:
            result = compare(target, STOPS, BUILD + "/farflame-agent", WORK, seconds=30 + STOPS // 4)
        except Failed as error:
            check(False, "%s can be compared" % target.name, str(error))
            continue
        show(target.name, result, time.monotonic() - begin)
        total.add(target.name, result)
    compared = total.equal + total.cut + total.others
    note("%d stops: %d equal, %d cut where it is said, %d other, %d in code without tables" % (
        total.stops, total.equal, total.cut, total.others, total.stops - compared))
    agree = AGREE if STOPS >= 100 else AGREE_SHORT
    check(compared and total.equal >= agree * (compared - total.cut),
          "at least %.1f %% of all stacks that are not cut agree with gdb's frame by frame" % (100 * agree),
          "%d of %d do not" % (total.others, compared - total.cut))
    check(total.cut <= CUT * compared, "at most %d %% are cut where it is said" % (100 * CUT),
          "%d of %d" % (total.cut, compared))
    whole = total.whole / max(total.whole_of, 1)
    check(whole >= COMPLETE, "at least %d %% are whole: %.2f %% of %d" % (100 * COMPLETE, 100 * whole,
                                                                         total.whole_of))


if not which("gdb"):
    skip_all("gdb is not installed")
need_bpf()
run(stacks_are_gdbs)
