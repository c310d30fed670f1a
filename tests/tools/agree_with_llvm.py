#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""agree_with_llvm.py TOOL FILE [COUNT [SEED]]: random addresses inside of FILE's functions, asked from
llvm-symbolizer and from TOOL (tests/tools/symbolize_addresses); prints the shares that agree as
"addresses=… lines=… names=…" and up to ten differences as comments on stderr. Exit 0 always.

lines: the same number of frames with the same file base names and line numbers.
names: the same functions in every frame. llvm's linkage names are demangled by c++filt -p without
compiler suffixes; for the outermost frame any symbol at the function's own start is the same name."""
import random
import re
import subprocess
import sys

LLVM = "llvm-symbolizer-19"
SUFFIX = re.compile(r"\.(cold|isra|part|constprop|lto_priv|llvm|localalias|warm|hot|unlikely|clone|cfi_jt)(\.\d+)?$")


def bare(name):
    name = name.split("@")[0] or name
    while SUFFIX.search(name):
        name = SUFFIX.sub("", name)
    return name


def symbols(path):
    """Sized functions as (address, size, name); from .symtab or .dynsym, as readelf prints them."""
    found = set()
    text = subprocess.run(["readelf", "-sW", path], capture_output=True, text=True).stdout
    for line in text.splitlines():
        field = line.split()
        if len(field) >= 8 and field[3] in ("FUNC", "IFUNC") and field[6] != "UND":
            size = int(field[2], 0)
            if size:
                found.add((int(field[1], 16), size, field[7]))
    return sorted(found)


def ask(command, addresses):
    text = subprocess.run(command, input="\n".join(f"{a:#x}" for a in addresses) + "\n",
                          capture_output=True, text=True, errors="replace").stdout
    answers = []
    for block in text.rstrip("\n").split("\n\n"):
        lines = block.split("\n")
        frames = []
        for name, place in zip(lines[0::2], lines[1::2]):
            path, line = place.split(":")[:2] if place.count(":") < 2 else place.rsplit(":", 2)[:2]
            # Of a frame without a line, llvm names the unit's file and others do not.
            frames.append((name, path.rsplit("/", 1)[-1] if int(line or 0) else "", int(line or 0)))
        answers.append(frames)
    return answers


def demangle(names):
    names = sorted(names)
    text = subprocess.run(["c++filt", "-p"], input="\n".join(names) + "\n", capture_output=True,
                          text=True, errors="replace").stdout
    return dict(zip(names, text.split("\n")))


def same_function(theirs, ours):
    """Where the compiler left no linkage name, llvm has the bare name and we have its scopes too."""
    return ours == theirs or ours.endswith("::" + theirs)


def main():
    tool, path = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 2000
    random.seed(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    functions = symbols(path)
    weights = [size for _, size, _ in functions]
    picked = random.choices(functions, weights, k=count)
    addresses = [start + random.randrange(size) for start, size, _ in picked]
    theirs = ask([LLVM, f"--obj={path}", "--output-style=LLVM", "--no-demangle"], addresses)
    ours = ask([tool, path], addresses)
    if len(theirs) != count or len(ours) != count:
        sys.exit(f"{len(theirs)} answers from llvm, {len(ours)} from us, for {count} addresses")
    plain = demangle({bare(f[0]) for chain in theirs for f in chain} |
                     {bare(name) for _, _, name in functions})
    aliases = {}
    for start, _, name in functions:
        aliases.setdefault(start, set()).add(plain[bare(name)])
    same_names = {}
    for group in aliases.values():
        for name in group:
            same_names.setdefault(name, set()).update(group)
    lines_ok = names_ok = shown = 0
    for address, llvm, mine in zip(addresses, theirs, ours):
        lines = [f[1:] for f in llvm] == [f[1:] for f in mine]
        a, b = [plain[bare(f[0])] for f in llvm], [f[0] for f in mine]
        names = len(a) == len(b) and all(same_function(x, y) for x, y in zip(a[:-1], b[:-1])) and (
            same_function(a[-1], b[-1]) or b[-1] in same_names.get(a[-1], ()))
        lines_ok += lines
        names_ok += names
        if (not lines or not names) and shown < 10:
            shown += 1
            print(f"# {address:#x}\n#   llvm {llvm}\n#   ours {mine}", file=sys.stderr)
    print(f"addresses={count} lines={100 * lines_ok / count:.3f} names={100 * names_ok / count:.3f}")


main()
