#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""agree_with_llvm.py TOOL FILE [COUNT [SEED]]: random addresses, uniform over FILE's executable sections as readelf gives
them (of a relocatable object, over .text), asked from llvm-symbolizer and from TOOL (tests/tools/symbolize_addresses).
Prints the shares that agree as "addresses=… lines=… names=… wrong=…" and every class of difference with its count; up to
SHOW=2 of each on stderr, with addr2line's answer and whose side it takes. Exit 0 always.

lines: the same number of frames with the same file base names and line numbers.
names: the same functions in every frame. llvm's linkage names are demangled by c++filt -p without compiler suffixes.
wrong: we have a name where llvm has none and readelf shows no such symbol over the address.

Classes. Equal, but said:
  alias    outermost names differ and readelf shows both as symbols of one address
  symbol   llvm has no name; the one we have is of a symbol that readelf shows over the address
  plt      ours is name@plt, objdump has the same, and llvm has none or what is before the stubs
  padding  llvm has a name and we have none; readelf shows no symbol over the address, nor is it a function of DWARF
Different:
  unknown (llvm has a name, we have none), wrong, depth (of inlining), line, file, inner (name), outer (name)"""
import bisect
import os
import random
import re
import subprocess
import sys

LLVM = "llvm-symbolizer-19"
SUFFIX = re.compile(r"\.(cold|isra|part|constprop|lto_priv|llvm|localalias|warm|hot|unlikely|clone|cfi_jt)(\.\d+)?$")
EQUAL = ("alias", "symbol", "plt", "padding")
LINES, NAMES = ("depth", "line", "file", "unknown", "wrong"), ("depth", "inner", "outer", "unknown", "wrong")


def bare(name):
    name = name.split("@")[0] or name
    while SUFFIX.search(name):
        name = SUFFIX.sub("", name)
    return name


def sections(path):
    """Executable sections as (address, size, number)."""
    text = subprocess.run(["readelf", "-hSW", path], capture_output=True, text=True).stdout
    is_object = re.search(r"Type:\s+REL", text) is not None
    found = []
    for number, name, address, size, flags in re.findall(
            r"^\s*\[\s*(\d+)\] (\S*)\s+(?:PROGBITS|NOBITS)\s+([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+) \S+\s+([A-Zoplp]+)\s", text, re.M):
        if "X" in flags and "A" in flags and int(size, 16) and (not is_object or name == ".text"):
            found.append((int(address, 16), int(size, 16), number))
    return found


class Symbols:
    """Symbols of code, as readelf prints them: those without a size last until the next one of their section."""

    def __init__(self, path, code):
        self.by_start, sized, open_ended = {}, [], set()
        ends = {number: start + size for start, size, number in code}
        for table in ("--syms", "--dyn-syms"):
            text = subprocess.run(["readelf", table, "-W", path], capture_output=True, text=True).stdout
            for line in text.splitlines():
                field = line.split()
                if len(field) < 8 or field[3] not in ("FUNC", "IFUNC", "NOTYPE", "OBJECT") or field[6] not in ends:
                    continue
                start, size = int(field[1], 16), int(field[2], 0)
                self.by_start.setdefault(start, set()).add(field[7])
                if size:
                    sized.append((start, start + size))
                else:
                    open_ended.add((start, field[6]))
        starts = sorted(self.by_start)
        for start, number in open_ended:
            after = bisect.bisect_right(starts, start)
            sized.append((start, min([ends[number]] + starts[after:after + 1])))
        self.ranges = sorted(set(sized))
        self.starts = [low for low, _ in self.ranges]
        self.longest = max((high - low for low, high in self.ranges), default=0)

    def over(self, address):
        """Names of all symbols over the address."""
        names = set()
        for i in range(bisect.bisect_right(self.starts, address) - 1, -1, -1):
            low, high = self.ranges[i]
            if address - low >= self.longest:
                break
            if address < high:
                names |= self.by_start[low]
        return names


def stubs(path):
    """Stubs of the procedure linkage table as objdump names them, or llvm's, of machines it does not know: sorted
    (address, "name@plt")."""
    for program in "objdump", "llvm-objdump-19":
        text = subprocess.run([program, "-d", "--no-show-raw-insn", "-j", ".plt", "-j", ".plt.sec", "-j", ".plt.got", path],
                              capture_output=True, text=True).stdout
        found = sorted((int(address, 16), name) for address, name in re.findall(r"^([0-9a-f]+) <(\S+@plt)>:$", text, re.M))
        if found:
            return found
    return []


def frames_of(block):
    lines, frames = block.split("\n"), []
    for name, place in zip(lines[0::2], lines[1::2]):
        place = re.sub(r" \(discriminator \d+\)$", "", place)
        path, line = place.split(":")[:2] if place.count(":") < 2 else place.rsplit(":", 2)[:2]
        number = int(line) if line.isdigit() else 0
        # Of a frame without a line, llvm names the unit's file and others do not.
        frames.append((name, path.rsplit("/", 1)[-1] if number else "", number))
    return frames


def ask(command, addresses):
    text = subprocess.run(command, input="\n".join(f"{a:#x}" for a in addresses) + "\n",
                          capture_output=True, text=True, errors="replace").stdout
    return [frames_of(block) for block in text.rstrip("\n").split("\n\n")]


def ask_addr2line(path, addresses):
    text = subprocess.run(["addr2line", "-afie", path] + [f"{a:#x}" for a in addresses],
                          capture_output=True, text=True, errors="replace").stdout
    return [frames_of(block.split("\n", 1)[1].rstrip("\n")) for block in re.split(r"^0x(?=[0-9a-f]{16}$)", text, flags=re.M)[1:]]


def is_rust(name):
    return re.match(r"_R|_ZN.*17h[0-9a-f]{16}E$", name) is not None


def demangle(names):
    """c++filt -p; of Rust's without the hashes, which differ from build to build (-i)."""
    plain = {}
    for option, wanted in ("-p", sorted(n for n in names if not is_rust(n))), ("-pi", sorted(filter(is_rust, names))):
        text = subprocess.run(["c++filt", option], input="\n".join(wanted) + "\n", capture_output=True,
                              text=True, errors="replace").stdout
        plain.update(zip(wanted, text.split("\n")))
    return plain


def same_function(theirs, ours):
    """Where the compiler left no linkage name, llvm has the bare name and we have its scopes too."""
    return ours == theirs or ours.endswith("::" + theirs)


class Judge:
    def __init__(self, path, symbols, names):
        self.symbols, self.path, self.stubs = symbols, path, None
        names = {bare(n) for n in names}
        for group in symbols.by_start.values():
            names |= {bare(n) for n in group}
        self.plain = demangle(names)
        self.starts_of = {}
        for start, group in symbols.by_start.items():
            for name in group:
                self.starts_of.setdefault(self.plain[bare(name)], set()).add(start)

    def name(self, name):
        return self.plain.get(bare(name), name)

    def classes(self, address, llvm, mine):
        if llvm[0][0] == "??" or mine[0][0] == "??":
            return self.one_unknown(address, llvm, mine)
        if len(llvm) != len(mine):
            return {"depth"}
        found = set()
        for i, ((theirs, file, line), (ours, own_file, own_line)) in enumerate(zip(llvm, mine)):
            if line != own_line:
                found.add("line")
            elif file != own_file:
                found.add("file")
            if theirs == ours:  # a method of Go's may be called what the compilers' clones are
                continue
            theirs = self.name(theirs)
            if same_function(theirs, ours):
                continue
            if self.is_stub(address, ours):  # llvm has "_init", of no size and of another section
                found.add("plt")
                continue
            if i < len(mine) - 1:
                found.add("inner")
            else:
                same = self.starts_of.get(theirs, set()) & self.starts_of.get(ours, set())
                found.add("alias" if same else "outer")
        return found

    def one_unknown(self, address, llvm, mine):
        if llvm[0][0] == mine[0][0]:
            return set()
        over = {self.name(name) for name in self.symbols.over(address)}
        if llvm[0][0] == "??" and len(mine) == 1 and self.is_stub(address, mine[0][0]):
            return {"plt"}
        if llvm[0][0] == "??":
            return {"symbol" if len(mine) == 1 and mine[0][0] in over else "wrong"}
        return {"unknown" if over or len(llvm) > 1 or llvm[0][2] else "padding"}


    def is_stub(self, address, name):
        if not name.endswith("@plt"):
            return False
        if self.stubs is None:
            self.stubs = stubs(self.path)
        i = bisect.bisect_right(self.stubs, (address, "\x7f"))
        theirs = re.sub(r"@.*@", "@", self.stubs[i - 1][1]) if i else ""
        resolver = re.match(r"\*ABS\*\+0x([0-9a-f]+)@plt$", theirs)  # of an IFUNC, whose name readelf has
        ifuncs = self.symbols.by_start.get(int(resolver[1], 16), ()) if resolver else ()
        if theirs.startswith("_"):
            theirs = demangle({theirs[:-4]})[theirs[:-4]] + "@plt"
        return theirs == name or name[:-4] in {self.name(n) for n in ifuncs}


def side(judge, address, llvm, mine, third):
    def agrees(chain):
        return not third or not [c for c in judge.classes(address, third, chain) if c not in EQUAL]
    ours, theirs = agrees([(judge.name(f[0]), *f[1:]) for f in mine]), agrees([(judge.name(f[0]), *f[1:]) for f in llvm])
    return "both" if ours and theirs else "ours" if ours else "llvm's" if theirs else "neither"


def report(path, judge, found):
    """Every difference, or the first 1000, is asked from addr2line as well."""
    show = int(os.environ.get("SHOW", "2"))
    asked = [row for row in found if not set(row[1]) <= set(EQUAL)][:1000]
    third = dict(zip((row[0] for row in asked), ask_addr2line(path, [row[0] for row in asked]) if asked else ()))
    counts, sides, shown = {}, {}, {}
    for address, classes, llvm, mine in found:
        key = "+".join(sorted(classes))
        counts[key] = counts.get(key, 0) + 1
        answer = side(judge, address, llvm, mine, third[address]) if address in third else ""
        sides.setdefault(key, {}).setdefault(answer, 0)
        sides[key][answer] += 1
        if shown.setdefault((key, answer), 0) < show:
            shown[key, answer] += 1
            print(f"# {key} {address:#x}\n#   llvm {llvm}\n#   ours {mine}", file=sys.stderr)
            if address in third:
                print(f"#   addr2line, {answer} {third[address]}", file=sys.stderr)
    return " ".join("%s=%d%s" % (key, count, "".join(f"({answer}:{n})" for answer, n in sorted(sides[key].items()) if answer))
                    for key, count in sorted(counts.items(), key=lambda item: -item[1]))


def main():
    tool, path = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 2000
    random.seed(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    code = sections(path)
    picked = random.choices(code, [size for _, size, _ in code], k=count)
    addresses = [start + random.randrange(size) for start, size, _ in picked]
    theirs = ask([LLVM, f"--obj={path}", "--output-style=LLVM", "--no-demangle"], addresses)
    ours = ask([tool, path], addresses)
    if len(theirs) != count or len(ours) != count:
        sys.exit(f"{len(theirs)} answers from llvm, {len(ours)} from us, for {count} addresses")
    judge = Judge(path, Symbols(path, code), {f[0] for chain in theirs for f in chain})
    found = [(a, judge.classes(a, llvm, mine), llvm, mine) for a, llvm, mine in zip(addresses, theirs, ours)]
    found = [row for row in found if row[1]]

    def share(classes):
        return 100 - 100 * sum(1 for row in found if not row[1].isdisjoint(classes)) / count
    wrong = sum("wrong" in row[1] for row in found)
    print(f"addresses={count} lines={share(LINES):.3f} names={share(NAMES):.3f} wrong={wrong} "
          f"sections={len(code)} {report(path, judge, found)}")


if __name__ == "__main__":
    main()
