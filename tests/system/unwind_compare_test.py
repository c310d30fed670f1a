# SPDX-License-Identifier: Apache-2.0
"""The comparison with gdb sees what it is for: planted mistakes get their kind."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))

from harness import WORK, equal, run  # noqa: E402
from unwind_compare import Comparison, read_samples, read_stops  # noqa: E402

STACK = [0x1000, 0x2000, 0x3000, 0x4000, 0x5000]
CODE = [[0x1000, 0x9000, 0, "[vdso]"]]


def compared(frames, result="complete", guessed=0, stack=STACK, signal=(), code=CODE, end="outermost"):
    """The kinds of one pair."""
    with open(WORK + "/stacks", "w") as out:
        out.write("sample 100 pid 1 tid 2 cpu 0 result %s guessed %d from bpf frames %d\n" % (
            result, guessed, len(frames)))
        out.writelines("%x file+0x%x\n" % (pc, pc) for pc in frames)
        out.write("\nsample 900 pid 1 tid 2 cpu 0 result complete guessed 0 from bpf frames 3\n1 a")
    with open(WORK + "/stops", "w") as out:
        for line in ({"ready": True}, {"time_ns": 200, "tid": 2, "frames": list(stack), "signal": list(signal),
                                       "names": {"5000": "x!_start"}, "end": end, "code": code}):
            out.write(json.dumps(line) + "\n")
    stops, names, _ = read_stops(WORK + "/stops")
    comparison = Comparison(read_samples(WORK + "/stacks"), stops, names)
    return dict(comparison.kinds), len(comparison.ends_differ)


def file_with_table():
    """An object whose one segment and one FDE cover 0x1000 to 0x9000."""
    path = WORK + "/with_table"
    with open(path + ".s", "w") as out:
        out.write(".globl _start\n_start: .cfi_startproc\n.fill 0x8000, 1, 0x90\n.cfi_endproc\n")
    subprocess.run(["cc", "-nostdlib", "-static", "-Wl,-Ttext=0x1000", "-Wl,-z,max-page-size=0x1000", path + ".s", "-o",
                    path], check=True)
    return path


def kinds():
    equal(compared(STACK), ({"equal": 1}, 0), "the same frames are equal")
    equal(compared([0xffe] + STACK[1:]), ({"equal": 1}, 0), "a system call's leaf may be the instruction before")
    equal(compared([0x1001] + STACK[1:]), ({"wrong": 1}, 0), "another leaf is not")
    equal(compared(STACK[:4]), ({"wrong": 1}, 0), "the outermost frame missing, called complete, is wrong")
    equal(compared(STACK[:2] + STACK[3:]), ({"wrong": 1}, 0), "a frame left out is wrong")
    equal(compared(STACK[:2] + [0x2800] + STACK[2:]), ({"wrong": 1}, 0), "a frame too many is wrong")
    equal(compared(STACK + [0x6000]), ({"wrong": 1}, 0), "a frame beyond the outermost is wrong")
    equal(compared(STACK[:3], "read_fault"), ({"cut": 1}, 0), "the first frames, declared incomplete, are cut")
    equal(compared(STACK[:2] + [0x7000], "not_code"), ({"declared": 1}, 0), "others, declared incomplete, are declared")
    equal(compared(STACK[:2] + STACK[3:], guessed=1), ({"guessed": 1}, 0), "a guess that missed says so")
    bare = [[0x1000, 0x9000, 0, ""]]
    equal(compared(STACK[:2] + STACK[3:], guessed=1, code=bare), ({"no_table": 1}, 0), "a guess in code without a table")
    equal(compared(STACK[:2] + STACK[3:], code=bare), ({"wrong": 1}, 0), "one that is called certain is wrong there too")
    equal(compared(STACK, "read_fault"), ({"equal": 1}, 1), "whole but called incomplete: the ends differ")
    equal(compared(STACK[:4], stack=STACK[:4], end="not code: 0x0"), ({"equal": 1}, 1),
          "called complete where gdb knows no start: the ends differ")
    equal(compared([0xa000, 0xb000]), ({"exec": 1}, 0), "code of a program that an exec has replaced")
    lost = "not code: 0x7"
    equal(compared(STACK, stack=STACK[:3], end=lost, code=bare), ({"no_table": 1}, 0),
          "frames beyond gdb's, which has lost its way in code without a table")
    with_table = [[0x1000, 0x9000, 0x1000, file_with_table()]]
    equal(compared(STACK, stack=STACK[:3], end=lost, code=with_table), ({"wrong": 1}, 0),
          "frames beyond gdb's are wrong where there is a table")
    handler = [0x1000, 0x2000, 0x3000, 0x4000]
    equal(compared([0x1000, 0x2001, 0x3001, 0x4000], stack=handler, signal=[1]), ({"equal": 1}, 0),
          "a trampoline and what it interrupted are given plus one")
    equal(compared(handler, stack=handler, signal=[1]), ({"wrong": 1}, 0), "without it they differ")
    equal(compared([0x3000, 0x4000], stack=handler, signal=[1]), ({"delivered": 1}, 0),
          "a handler entered between the sample and the stop")


run(kinds)
