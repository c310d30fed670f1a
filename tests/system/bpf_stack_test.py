#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No chain of calls in our BPF programs takes more stack than kernels before 6.12 allow: 512 bytes, each function's
rounded up to 32. Newer ones give some programs more, so that a host may not notice."""
import collections
import glob
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, "tests/tools")
from harness import BUILD, check, note, run, skip_all  # noqa: E402

LIMIT, STEP = 512, 32
DISASSEMBLERS = ("llvm-objdump", "llvm-objdump-14", "llvm-objdump-19")


def functions(path):
    """{function: [bytes of its own, functions that it calls]}, from its references to r10, the frame's upper end."""
    tool = next(tool for tool in DISASSEMBLERS if shutil.which(tool))
    text = subprocess.run([tool, "-d", "-r", "--no-show-raw-insn", path], capture_output=True, text=True,
                          check=True).stdout
    found, name, moved = collections.defaultdict(lambda: [0, set()]), None, set()
    for line in text.splitlines():
        begins = re.match(r"[0-9a-f]+ <((?!LBB)[^>]+)>:", line)
        if begins:
            name = begins.group(1)
            found[name][0] += 0
        below = [int(number, 0) for number in re.findall(r"r10 - (0x[0-9a-f]+|\d+)", line)]
        copied = re.search(r"(r\d) = r10$", line.strip())
        added = re.search(r"(r\d) \+= (-\d+)$", line.strip())
        if added and added.group(1) in moved:
            below.append(-int(added.group(2)))
        moved = {copied.group(1)} if copied else moved - {added.group(1)} if added else moved
        if below:
            found[name][0] = max(found[name][0], *below)
        call = re.search(r"R_BPF_64_32\s+(\S+)", line)
        if call:
            found[name][1].add(call.group(1))
    return found


def deepest(found, name):
    """(bytes, the chain)"""
    own, calls = found[name]
    below = max((deepest(found, call) for call in calls if call in found), default=(0, []))
    return max(STEP, -(-own // STEP) * STEP) + below[0], ["%s %d" % (name, own)] + below[1]


def test_stacks():
    objects = sorted(glob.glob(BUILD + "/bpf/*.bpf.o"))
    check(objects, "there are BPF programs")
    for path in objects:
        found = functions(path)
        called = {call for _, calls in found.values() for call in calls}
        roots = [deepest(found, name) for name in found if name not in called]
        most, chain = max(roots)
        note("%s: %d bytes" % (os.path.basename(path), most))
        check(most <= LIMIT and any(own for own, _ in found.values()),
              "%s: no chain of calls has more than %d bytes of stack" % (os.path.basename(path), LIMIT), chain)


if __name__ == "__main__":
    if not any(shutil.which(tool) for tool in DISASSEMBLERS):
        skip_all("no llvm-objdump")
    run(test_stacks)
