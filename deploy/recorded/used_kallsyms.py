# SPDX-License-Identifier: Apache-2.0
"""used_kallsyms.py BUILD PROFILE DIR: for every kernel image in the profile a file DIR/BUILD-ID in the form the
server takes (PUT /api/v1/modules/BUILD-ID): the functions its addresses lie in, and the symbol after each,
so that their extents are right. Offsets from _text: nothing tells where this host's kernel lies."""
import bisect
import os
import sys

sys.path.insert(0, "tests/tools")
import otlp  # noqa: E402

build, profile, out = sys.argv[1:]
symbols, text = [], 0
for line in open("/proc/kallsyms"):
    part = line.split()
    if len(part) == 3 and part[1] in "tTwW":
        symbols.append((int(part[0], 16), part[1], part[2]))
        if part[2] == "_text":
            text = int(part[0], 16)
symbols.sort()
starts = [address for address, _, _ in symbols]
used = {}
for sample in otlp.Reader(otlp.read(build, profile)).samples():
    for frame in sample.frames:
        if frame.kind == "kernel" and frame.base == "_text":
            used.setdefault(frame.build_id, set()).add(frame.address + text)
os.makedirs(out, exist_ok=True)
for build_id, addresses in used.items():
    wanted = set()
    for address in addresses:
        start = starts[bisect.bisect_right(starts, address) - 1]
        first, after = bisect.bisect_left(starts, start), bisect.bisect_right(starts, start)
        wanted.update(range(first, min(after + 1, len(starts))))
    with open(os.path.join(out, build_id), "w") as file:
        file.write("farflame-kallsyms 1\n")
        for i in sorted(wanted):
            address, kind, name = symbols[i]
            file.write("%x %s %s\n" % (address - text, kind, name))
