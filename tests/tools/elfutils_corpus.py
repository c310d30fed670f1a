#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""elfutils_corpus.py TOOL DIR [COUNT]: elfutils' own test files (DIR: its tests/ folder), each converted by TOOL
(tests/tools/symbolize_addresses) and asked for COUNT (1000) addresses, uniform over its executable sections. Not a part
of the tests: the files are elfutils'.

No single tool reads all of them (old kinds of compressed sections, MiniDebugInfo, split and dwz files, objects of nine
machines), so an answer is held against everybody's: llvm-symbolizer, addr2line, eu-addr2line, and readelf's symbols over
the address, also of the file inside of .gnu_debugdata. Per file:

  name   ours is nobody's: a wrong name
  lost   we have no name, and readelf has a symbol over the address or two of the three have one
  line   ours is nobody's, or we have none and two of the three have the same one
  depth  as many inlined functions as neither llvm-symbolizer nor addr2line has

A line per file that has any, with an example; those in KNOWN with the reason. Exit 1 for what is not explained."""
import bisect
import bz2
import collections
import lzma
import os
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import agree_with_llvm as agree  # noqa: E402

# Files that go with one: its debug file, its dwz file, its .dwo. NAME.debug goes with NAME.
TOGETHER = {
    "testfile17": ["testfile17.debug"],
    "testfilebazmdb": ["testfilebazdbg.debug"],
    "testfilebazmdbppc64": ["testfilebazdbgppc64.debug"],
    "testfile-splitdwarf-4": ["testfile-hello4.dwo", "testfile-world4.dwo"],
    "testfile-splitdwarf-5": ["testfile-hello5.dwo", "testfile-world5.dwo"],
    "testfilesplitranges4.debug": ["testfile-ranges-hello.dwo", "testfile-ranges-world.dwo"],
    "testfilesplitranges5.debug": ["testfile-ranges-hello5.dwo", "testfile-ranges-world5.dwo"],
    "testfile-splitdwarf4-not-split4.debug": ["splitdwarf4-not-split4.dwo"],
    "testfile_multi_main": ["testfile_multi.dwz"],
    "libtestfile_multi_shared.so": ["testfile_multi.dwz"],
    "testfile-dwzstr": ["testfile-dwzstr.multi"],
    "test-offset-loop": ["test-offset-loop.alt"],
}

# Why a file's answers are nobody else's, as readelf shows it.
KNOWN = {
    "testfile-ppc64-min-instr": "stubs among .text have no size; functions behind them are in .opd, where readelf's extents do not look",
    "testfilebazdbgppc64": "stubs among .text have no size; functions behind them are in .opd, where readelf's extents do not look",
    "testfilebazmdbppc64": "stubs among .text have no size; functions behind them are in .opd, where readelf's extents do not look",
    "testfilebaztabppc64": "stubs among .text have no size; functions behind them are in .opd, where readelf's extents do not look",
    "testfileppc64": "stubs among .text have no size; functions behind them are in .opd, where readelf's extents do not look",
    "testfile-splitdwarf-4": "with the .dwo files that the others look for where they were compiled: more inlined functions",
    "testfile-splitdwarf-5": "with the .dwo files that the others look for where they were compiled: more inlined functions",
    "testfilesplitranges4.debug": "with the .dwo files that the others look for where they were compiled: more inlined functions",
    "testfilesplitranges5.debug": "with the .dwo files that the others look for where they were compiled: more inlined functions",
    "testfilebazdbg_pl": "prelinked: its debug file has the addresses from before; the names that it has itself are right",
    "testfilebazdbg_plr": "prelinked: its debug file has the addresses from before; the names that it has itself are right",
}


def unpack(folder, work):
    names = []
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".bz2"):
            continue
        data = bz2.decompress(open(os.path.join(folder, name), "rb").read())
        if data[:4] == b"\x7fELF":
            names.append(name[:-4])
            open(os.path.join(work, name[:-4]), "wb").write(data)
    return names


def run(*command, text=None):
    return subprocess.run(command, input=text, capture_output=True, text=True, errors="replace").stdout


def is_core(path):
    return re.search(r"Type:\s+CORE", run("readelf", "-hW", path)) is not None


def inner_file(path):
    """The ELF file packed into .gnu_debugdata, unpacked beside it; None without one."""
    section = re.search(r"\.gnu_debugdata\s+PROGBITS\s+[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+)", run("readelf", "-SW", path))
    if not section:
        return None
    data = open(path, "rb").read()[int(section[1], 16):][:int(section[2], 16)]
    open(path + ".inner", "wb").write(lzma.decompress(data))
    return path + ".inner"


def ask_eu(path, addresses):
    """(symbol, line) of each address."""
    lines = run("eu-addr2line", "-S", "-e", path, text="".join("%#x\n" % a for a in addresses)).split("\n")
    answers = []
    for name, place in zip(lines[0::2], lines[1::2]):
        number = place.rsplit(":", 2)[1] if place.count(":") > 1 else place.rsplit(":", 1)[-1]
        name = re.sub(r"(\+0x[0-9a-f]+)?( \(\S*\))?$", "", name)
        answers.append((name, int(number) if number.isdigit() else 0))
    return answers + [("", 0)] * (len(addresses) - len(answers))


class Symbols:
    """readelf's symbols of code by their own extents, of several files that are parts of one. Without a size up to the
    next symbol of the section, unless a sized one is over its start: then it is a label."""

    def __init__(self, paths):
        rows, self.rows = set(), []
        for path in paths:
            rows |= self.read(path)
        starts, reach = sorted({row[0] for row in rows}), 0
        for start, size, end, name in sorted(rows, key=lambda row: (row[0], -row[1])):
            if size:
                self.rows.append((start, start + size, name))
                reach = max(reach, start + size)
            elif start >= reach:
                after = bisect.bisect_right(starts, start)
                self.rows.append((start, min([end] + starts[after:after + 1]), name))
        self.names = {row[3] for row in rows}

    @staticmethod
    def read(path):
        header, rows = run("readelf", "-hW", path), set()
        mask = ~1 if re.search(r"Machine:\s+(ARM|MIPS)", header) else ~0
        ends = {number: start + size for start, size, number in agree.sections(path)}
        for table in ("--syms", "--dyn-syms"):
            for line in run("readelf", table, "-W", path).split("\n"):
                field = re.sub(r" \[[^]]*\]", "", line).split()
                if len(field) < 8 or field[3] not in ("FUNC", "IFUNC", "NOTYPE") or field[6] not in ends or \
                        is_label(field[7]) or int(field[1], 16) >= ends[field[6]]:
                    continue
                name = field[7][1:] if "PowerPC64" in header and field[7][0] == "." else field[7]
                rows.add((int(field[1], 16) & mask, int(field[2], 0), ends[field[6]], name))
        return rows

    def over(self, address):
        return {name for start, end, name in self.rows if start <= address < end}


def is_label(name):
    """A tool's own, or of data and code on ARM; a section in brackets is eu-addr2line's way to say "no symbol"."""
    return re.match(r"\$[adtx](\.|$|rv)|\.L|\.annobin|\(|\?\?$|$", name) is not None


class Truth:
    def __init__(self, path, files, addresses):
        self.path = path
        inner = inner_file(path)
        self.symbols = Symbols(files + ([inner] if inner else []))
        self.is_object = re.search(r"Type:\s+REL", run("readelf", "-hW", path)) is not None
        self.llvm = agree.ask([agree.LLVM, f"--obj={path}", "--output-style=LLVM", "--no-demangle"], addresses)
        self.gnu = agree.ask_addr2line(path, addresses)
        self.eu = ask_eu(path, addresses)
        unknown = [[("??", "", 0)]] * len(addresses)
        self.llvm = self.llvm if len(self.llvm) == len(addresses) else unknown
        self.gnu = self.gnu if len(self.gnu) == len(addresses) else unknown
        self.stubs = agree.stubs(path)
        names = {f[0] for chain in self.llvm + self.gnu for f in chain} | {name for name, _ in self.eu}
        names |= self.symbols.names
        names |= {name[:-4] for _, name in self.stubs}
        self.plain = agree.demangle({agree.bare(name) for name in names})

    def name(self, name):
        return self.plain.get(agree.bare(name), name)

    def over(self, address):
        return {self.name(name) for name in self.symbols.over(address)}

    def is_stub(self, address, name):
        under = [stub for start, stub in self.stubs if start <= address < start + 16]
        return name.endswith("@plt") and (not self.stubs or any(
            name[:-4] == self.name(stub[:-4]) or "*ABS*" in stub for stub in under))

    def judge(self, i, address, mine):
        llvm, gnu, eu = self.llvm[i], self.gnu[i], self.eu[i]
        over = self.over(address)
        outer = mine[-1][0]
        theirs = [self.name(n).lstrip(".") for n in (llvm[-1][0], gnu[-1][0], eu[0]) if not is_label(n)]
        lines = [n for n in (llvm[0][2], gnu[0][2], eu[1]) if n]
        if outer == "??":
            # Of an object all sections begin at 0: what llvm names there may be of another one.
            return "lost" if over or (len(theirs) > 1 and lines and not self.is_object) else ""
        if outer not in over and not any(agree.same_function(name, outer) for name in theirs) \
                and not self.is_stub(address, outer):
            return "name"
        if mine[0][2] and mine[0][2] not in lines:
            return "line"
        if not mine[0][2] and any(n > 1 for n in collections.Counter(lines).values()):
            return "line"
        return "" if len(mine) in (len(llvm), len(gnu), self.eu_depth(address)) else "depth"

    def eu_depth(self, address):
        return len(run("eu-addr2line", "-i", "-e", self.path, "%#x" % address).split("\n")) - 1


def compare(tool, work, name, count):
    """(counts, example, our own words); None: it has no code."""
    path = os.path.join(work, name)
    files = [path] + [os.path.join(work, other) for other in [name + ".debug"] + TOGETHER.get(name, [])]
    files = [file for file in files if os.path.exists(file)]
    code = agree.sections(path)
    if is_core(path) or not code:
        return None
    random.seed(1)
    picked = random.choices(code, [size for _, size, _ in code], k=count)
    addresses = [start + random.randrange(size) for start, size, _ in picked]
    done = subprocess.run([tool, *files], input="".join("%#x\n" % a for a in addresses), capture_output=True,
                          text=True, errors="replace", timeout=60)
    truth = Truth(path, files, addresses)
    ours = [agree.frames_of(block) for block in done.stdout.rstrip("\n").split("\n\n")]
    if len(ours) != count:
        named = sum(bool(truth.over(address)) for address in addresses)
        return {"lost": named} if named else {}, "", done.stderr.strip() or "status %d" % done.returncode
    counts, example = collections.Counter(), ""
    for i, (address, mine) in enumerate(zip(addresses, ours)):
        what = truth.judge(i, address, mine)
        if what:
            counts[what] += 1
            example = example or "%s %#x ours %s llvm %s addr2line %s eu %s readelf %s" % (
                what, address, mine, truth.llvm[i], truth.gnu[i], truth.eu[i], sorted(truth.over(address)))
    return counts, example, done.stderr.strip()


def main():
    tool, folder = os.path.abspath(sys.argv[1]), sys.argv[2]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 1000
    bad = compared = 0
    with tempfile.TemporaryDirectory() as work:
        for name in unpack(folder, work):
            result = compare(tool, work, name, count)
            if result is None:
                continue
            counts, example, said = result
            compared += 1
            why = KNOWN.get(name)
            if counts or "quality" not in said:
                words = " ".join("%s=%d" % row for row in sorted(counts.items()))
                bad += bool(counts) and not why
                print("%-10s %-38s %s (%s) %s" % ("explained" if why else "DIFFERENT" if counts else "equal", name, words,
                                                 said, why or ""), flush=True)
                if counts and not why:
                    print("    " + example, flush=True)
    print("%d files with code, %d with unexplained differences" % (compared, bad))
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
