# SPDX-License-Identifier: Apache-2.0
"""Stripped Go programs have the names, files, lines and inlined calls that llvm-symbolizer and Go's own addr2line say
of the same program with its debug information; by every Go found here, position-independent, without section headers,
and with cgo."""
import collections
import glob
import os
import random
import re
import shutil
import subprocess

from harness import WORK, check, run, skip, skip_all, symbolize_tool

ADDRESSES = int(os.environ.get("ADDRESSES", "3000"))
LLVM = next((tool for tool in ("llvm-symbolizer-19", "llvm-symbolizer") if shutil.which(tool)), None)
ENV = dict(os.environ, GOENV="off", GOFLAGS="", GOTOOLCHAIN="local", CGO_ENABLED="0")

MAIN = """package main

type shape interface{ area(k int) int }
type square struct{ side int }

func (s square) area(k int) int { return twice(s.side) * k }

type named struct{ square }

func twice(x int) int { return add(x, x) }
func add(a, b int) int { return bits(a) + b }
func bits(a int) int { return a ^ a>>3 }

//go:noinline
func deep(x int) int {
	y := twice(x)
	f := func(z int) int {
		defer func() { y += bits(z) }()
		return func() int { return twice(z) + y }()
	}
	return f(x) + twice(y)
}

type list[T any] struct{ items []T }

func (l *list[T]) clone() *list[T] { return &list[T]{append([]T(nil), l.items...)} }

//go:noinline
func total[T ~int | ~float64](items []T) (sum T) {
	for _, item := range items {
		sum += item
	}
	return
}

func main() {
	s := []shape{square{2}, &named{square{3}}}
	l := (&list[int]{[]int{1, 2}}).clone()
	println(s[0].area(deep(4)), s[1].area(2), total(l.items), total([]float64{1}))
}
"""
CGO = MAIN.replace("package main\n", """package main

// static int __attribute__((noinline)) c_sum(int n) { int s = 0; while (n > 0) s += n-- ^ s; return s; }
import "C"
""").replace("deep(4)", "deep(int(C.c_sum(4)))")


def compilers():
    found = {}
    for path in ["/usr/local/go/bin/go", *sorted(glob.glob("/usr/lib/go*/bin/go")), shutil.which("go")]:
        if path and os.access(path, os.X_OK):
            done = subprocess.run([path, "version"], env=ENV, capture_output=True, text=True)
            version = re.match(r"go version go(\d+)\.(\d+)", done.stdout)
            if version and (int(version[1]), int(version[2])) >= (1, 18):
                found.setdefault(done.stdout.split()[2], path)
    return found


def build(go, source, name, *arguments, **extra):
    """The program with and without its debug information, or None and why not."""
    folder = os.path.join(WORK, name)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "main.go"), "w") as file:
        file.write(source)
    with open(os.path.join(folder, "go.mod"), "w") as file:
        file.write("module farflame.test/names\n\ngo 1.18\n")
    for flags, output in (("-compressdwarf=false", "full"), ("-s -w", "stripped")):
        done = subprocess.run([go, "build", "-ldflags=" + flags, *arguments, "-o", output, "."], cwd=folder,
                              env=dict(ENV, **extra), capture_output=True, text=True)
        if done.returncode:
            return None, done.stderr[:200]
    return os.path.join(folder, "full"), os.path.join(folder, "stripped")


def random_addresses(path):
    text = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True).stdout
    address, size = re.search(r"\] \.text\s+PROGBITS\s+(\S+) \S+ (\S+)", text).groups()
    random.seed(1)
    return [int(address, 16) + random.randrange(int(size, 16)) for _ in range(ADDRESSES)]


def ask(command, addresses):
    text = subprocess.run(command, input="".join(f"{a:#x}\n" for a in addresses), capture_output=True, text=True,
                          errors="replace").stdout
    chains = []
    for block in text.rstrip("\n").split("\n\n"):
        lines = block.split("\n")
        chains.append([frame(name, place) for name, place in zip(lines[0::2], lines[1::2])])
    return chains


def frame(name, place):
    """.symtab has '.' for '·' and the calling convention in assembler's names, and llvm prefers it; before Go 1.21 the
    table has "[...]" for what stands in brackets; llvm puts "./" before relative paths."""
    path, line = re.match(r"(.*?):(\d+)(?::\d+)?$", place).groups()
    name = re.sub(r"\[.*\]", "[...]", re.sub(r"\.abi(0|internal)$", "", name.replace("·", ".")))
    return name, re.sub(r"^\./", "", path) if int(line) else "", int(line)


def addr2line(go, path, addresses):
    """Only what inlined code is at the address: its file and line."""
    text = subprocess.run([go, "tool", "addr2line", path], input="".join(f"{a:#x}\n" for a in addresses), env=ENV,
                          capture_output=True, text=True).stdout.split("\n")
    return [place.rsplit(":", 1) for place in text[1::2]]


def difference(theirs, ours, go_says):
    """What llvm and we differ in: "" nothing; a name that is not ours to give is "wrong name"."""
    if theirs == ours:
        return ""
    if ours[0][0] == "??":
        # C code, whose names went with .symtab; and what the linker puts behind the text.
        name, path, _ = theirs[-1]
        is_c = path.endswith((".c", ".h", ".S", "cgo-gcc-prolog")) or "." not in name and (
            not path or path.endswith("/main.go"))  # written into a Go file's comment
        return "" if is_c or name in ("runtime.etext", "runtime.text") else "no name"
    if theirs[0][0] == "??":
        return "wrong name"
    if theirs[-1][0] == ours[0][0] and ours[0][1:] == ("", 0) and theirs[-1][1].endswith((".c", ".h", ".S")):
        return ""  # C code that .dynsym names; its lines went with the debug information
    if theirs[-1][0] != ours[-1][0]:
        return "" if "(.text)" in theirs[-1][0] else "wrong name"
    if len(theirs) < len(ours):
        # Debug information of Go 1.16 to 1.19 leaves out what is inlined into wrappers.
        return "" if ours[-1][1] == "<autogenerated>" and theirs[0][1:] == ours[0][1:] else "depth"
    if [f[0] for f in theirs] != [f[0] for f in ours]:
        return "wrong name"
    if theirs[1:] == ours[1:]:
        return "" if [ours[0][1], str(ours[0][2])] == go_says else "line"
    return "call line"


def compare(go, title, full, stripped):
    addresses = random_addresses(full)
    theirs = ask([LLVM, "--obj=" + full, "--output-style=LLVM", "--no-demangle"], addresses)
    ours = ask([symbolize_tool(), stripped], addresses)
    if not check(len(theirs) == len(ours) == ADDRESSES, title + ": every address is answered", f"{len(theirs)} {len(ours)}"):
        return
    kinds, shown = collections.Counter(), []
    for address, a, b, c in zip(addresses, theirs, ours, addr2line(go, full, addresses)):
        kind = difference(a, b, c)
        kinds[kind] += 1
        if kind:
            shown.append(f"{kind} {address:#x}\n  llvm {a}\n  ours {b}")
    inlined = sum(len(chain) > 1 for chain in ours)
    good = kinds[""] / ADDRESSES
    # The table since Go 1.20 has the call's line only where the parent has an instruction of it; reflect.TypeFor in
    # a package's init has none.
    check(kinds["wrong name"] + kinds["no name"] == 0, title + ": every name is right", "\n".join(shown))
    check(good >= 0.999, f"{title}: {100 * good:.2f} % agree, {inlined} of {ADDRESSES} in inlined code", "\n".join(shown))
    check(inlined > ADDRESSES / 20, title + ": inlined code is found")


def every_version():
    for version, go in FOUND.items():
        full, stripped = build(go, MAIN, version)
        if full:
            compare(go, version, full, stripped)
        else:
            skip(f"{version} does not build here: {stripped}")


def every_form():
    for version, go in list(FOUND.items())[:1]:
        full, stripped = build(go, MAIN, version + "_pie", "-buildmode=pie")
        if full:
            compare(go, version + " -buildmode=pie", full, stripped)
        else:
            skip(f"position-independent: {stripped}")
        if full and not subprocess.run(["llvm-objcopy-19", "--strip-sections", stripped, stripped + ".bare"],
                                       capture_output=True).returncode:
            compare(go, version + " without section headers", full, stripped + ".bare")
        else:
            skip("without section headers: llvm-objcopy-19 is not there")
        full, stripped = build(go, CGO, version + "_cgo", "-buildmode=pie", CGO_ENABLED="1")
        if full:
            compare(go, version + " with cgo and -buildmode=pie", full, stripped)
        else:
            skip(f"with cgo: {stripped}")


def names():
    every_version()
    every_form()


FOUND = compilers()
if not LLVM or not FOUND:
    skip_all("it needs llvm-symbolizer and a Go of 1.18 or later")
run(names)
