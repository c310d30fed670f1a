# SPDX-License-Identifier: Apache-2.0
"""library_symbols.py BUILD PROFILE DIR: for every library in the profile of which DIR has no file an ELF file
DIR/NAME with its build-id and the functions that the profile's addresses lie in: their names, places and sizes,
and no code. They are read where this host has them: in its debug file (Debian: libc6-dbg), else in what it exports."""
import bisect
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, "tests/tools")
import otlp  # noqa: E402

LIBRARIES = "/usr/lib/x86_64-linux-gnu"
TEXT = 0x4000  # below the first function of any library, above what the linker puts before .text


def functions(name, build_id):
    """[(start, size, name, whether others see it)], in order; of several names of one function the exported, the shortest"""
    debug = "/usr/lib/debug/.build-id/%s/%s.debug" % (build_id[:2], build_id[2:])
    arguments = [debug] if os.path.exists(debug) else ["-D", os.path.join(LIBRARIES, name)]
    listing = subprocess.run(["nm", "-S", "--defined-only", *arguments], capture_output=True, text=True, check=True).stdout
    best = {}
    for part in map(str.split, listing.splitlines()):
        if len(part) == 4 and part[2] in "tTwWiI" and int(part[1], 16) > 0:
            start, size, symbol, is_global = int(part[0], 16), int(part[1], 16), part[3].partition("@")[0], part[2] in "TW"
            rank = not is_global, len(symbol), symbol
            if start not in best or rank < best[start][0]:
                best[start] = rank, (start, size, symbol, is_global)
    return [row for _, (_, row) in sorted(best.items())]


def used(rows, addresses):
    starts = [row[0] for row in rows]
    found = {rows[bisect.bisect_right(starts, address) - 1] for address in addresses}
    return sorted(row for row in found if any(row[0] <= address < row[0] + row[1] for address in addresses))


def write(path, build_id, rows):
    text = [".text"]
    for start, size, name, is_global in rows:
        text += [".org 0x%x" % (start - TEXT), '"%s":' % name, '.type "%s",@function' % name, '.size "%s",%d' % (name, size)]
        text += ['.globl "%s"' % name] * is_global
    end = max(start + size for start, size, _, _ in rows)
    text += [".org 0x%x" % (end - TEXT), ".section .note.GNU-stack,\"\",@progbits", ""]
    with tempfile.TemporaryDirectory() as folder:
        object_file, linked = os.path.join(folder, "symbols.o"), os.path.join(folder, "symbols.so")
        subprocess.run(["as", "-o", object_file, "-"], input="\n".join(text), text=True, check=True)
        subprocess.run(["ld", "-shared", "--build-id=0x" + build_id, "-Ttext=0x%x" % TEXT, "-o", linked,
                        object_file], check=True)
        subprocess.run(["objcopy", "--only-keep-debug", linked, path], check=True)  # the zeros instead of code go
    os.chmod(path, 0o644)


build, profile, out = sys.argv[1:]
addresses, names = {}, {}
for sample in otlp.Reader(otlp.read(build, profile)).samples():
    for frame in sample.frames:
        if frame.kind == "native" and frame.build_id:
            addresses.setdefault(frame.build_id, set()).add(frame.address)
            names[frame.build_id] = os.path.basename(frame.module)
for build_id, name in names.items():
    if not os.path.exists(os.path.join(out, name)):
        write(os.path.join(out, name), build_id, used(functions(name, build_id), addresses[build_id]))
