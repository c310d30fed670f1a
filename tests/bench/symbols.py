# SPDX-License-Identifier: Apache-2.0
"""Conversion and lookup of debug files beside llvm-gsymutil, llvm-symbolizer, addr2line and, where BLAZECLI names its
program, blazesym: the same file and addresses, one thread each, CPU seconds of the same run. The files are those of
BENCH_SYMBOLS, or the three largest below /usr/lib/debug; what is compared with is said when it is not there."""
import glob
import os
import random
import re
import resource
import shutil
import subprocess
import sys

import ratios

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from agree_with_llvm import Symbols, sections  # noqa: E402
from harness import WORK, symbolize_tool

ADDRESSES = 20000
NEEDED = ("info", "types", "abbrev", "line", "str", "line_str", "str_offsets", "addr", "ranges", "rnglists")
BLAZE = os.environ.get("BLAZECLI", "")
# How many times as many addresses a second as each peer, at least; conversion is not slower than gsymutil's.
LOOKUPS = {"llvm": 10, "addr2line": 4, "blazesym": 2}


def newest(tool):
    """Of LLVM's programs, 19 before others; its name where there is none."""
    names = [tool + "-%d" % version for version in (19, *range(30, 19, -1), *range(18, 13, -1))] + [tool]
    return next((name for name in names if shutil.which(name)), tool)


LLVM, GSYM = newest("llvm-symbolizer"), newest("llvm-gsymutil")


def cost(command, text=""):
    """(CPU seconds, largest resident KiB so far among children, output)"""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, input=text, capture_output=True, text=True, errors="replace")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError("%s: %s" % (command[0], done.stderr.strip()[-200:]))
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout, done.stderr


def files():
    named = os.environ.get("BENCH_SYMBOLS", "").split()
    if named:
        return named
    found = glob.glob("/usr/lib/debug/.build-id/*/*.debug") + glob.glob("/usr/lib/debug/boot/vmlinux*")
    found = [path for path in found if sections(path)]
    return sorted(found, key=os.path.getsize, reverse=True)[:3]


def dwarf_bytes(path):
    """(all of .debug_*, what names and lines need of it), inflated."""
    text = subprocess.run(["objdump", "-hw", path], capture_output=True, text=True).stdout
    sizes = {name: int(size, 16) for name, size in re.findall(r"^\s*\d+ \.z?debug_(\S+)\s+([0-9a-f]+)", text, re.M)}
    return sum(sizes.values()), sum(sizes.get(name, 0) for name in NEEDED)


def addresses_of(path):
    code = sections(path)
    symbols, picked = Symbols(path, code), []
    chance = random.Random(1)
    while len(picked) < ADDRESSES:
        start, size, _ = chance.choices(code, [size for _, size, _ in code])[0]
        address = start + chance.randrange(size)
        if symbols.over(address):
            picked.append("%#x" % address)
    return picked


def per_second(command, addresses, as_arguments=False):
    """Addresses a second beyond the first, so that what is read once at the start does not count."""
    def seconds(some):
        return cost(command + some)[0] if as_arguments else cost(command, "\n".join(some) + "\n")[0]
    if not shutil.which(command[0]):
        return None
    return (len(addresses) - 1) / max(seconds(addresses) - seconds(addresses[:1]), 0.01)


def ours_of(program, option, path):
    text = cost([program, option, path])[1]
    return {key: float(value) for key, value in re.findall(r"(\w+)=([\d.]+)", text)}


def gsym_of(path):
    if not shutil.which(GSYM):
        return None
    out = os.path.join(WORK, "file.gsym")
    seconds, _, said = cost(["/usr/bin/env", "time", "-f", "kb=%M", GSYM, "--convert=" + path, "-o", out, "--num-threads=1", "--quiet"]
                            if shutil.which("time") else [GSYM, "--convert=" + path, "-o", out, "--num-threads=1", "--quiet"])
    memory = re.search(r"kb=(\d+)", said)
    return seconds, int(memory.group(1)) if memory else 0, os.path.getsize(out)


def file_rows(row, program, path):
    name = os.path.basename(path)[:18]
    full, needed = dwarf_bytes(path)
    ours, names = ours_of(program, "--time", path), ours_of(program, "--names", path)
    gsym = gsym_of(path)
    ratios.at_most("%s: conversion beside gsymutil's" % name, ours["convert_s"], gsym and gsym[0], 1)
    memory_budget = 1.6 if os.path.getsize(path) > 200e6 else 4
    row("%s, %d MB: conversion" % (name, os.path.getsize(path) / 1e6), "%.2f s, %.0f MB/s" % (
        ours["convert_s"], full / 1e6 / ours["convert_s"]), "<= gsymutil", gsym and "gsymutil %.2f s, %.2f times ours" % (
            gsym[0], gsym[0] / ours["convert_s"]) or "not run")
    if gsym and gsym[1]:
        ratios.at_most("%s: memory of a conversion beside gsymutil's" % name, ours["resident_kb"], gsym[1], 1)
    row("  memory, of the sections it needs", "%.0f MB, %.2f x" % (ours["resident_kb"] * 1024 / 1e6, ours["resident_kb"] * 1024 / needed),
        "%.1f x" % memory_budget, "%.0f MB" % (gsym[1] * 1024 / 1e6) if gsym and gsym[1] else "")
    row("  table, of the inflated DWARF", "%.2f MB, %.2f %%" % (ours["packed_bytes"] / 1e6, 100 * ours["packed_bytes"] / full),
        "2.2 %, if large", gsym and "%.2f MB" % (gsym[2] / 1e6) or "")
    row("  unpacked and checked; names only, from the file", "%.0f ms; %.0f ms" % (1e3 * ours["unpack_s"], 1e3 * names["convert_s"]))
    picked = addresses_of(path)
    peers = [("llvm", per_second([LLVM, "--obj=" + path, "--no-demangle"], picked)),
             ("addr2line", per_second(["addr2line", "-fie", path], picked))]
    peers.append(("blazesym", per_second([BLAZE, "symbolize", "elf", "--path", path], picked, True) if BLAZE else None))
    for who, rate in peers:
        ratios.at_least("%s: addresses a second beside %s's" % (name, who), ours["texts"], rate, LOOKUPS[who])
    row("  addresses a second, %.1f frames with their texts" % ours["frames"], "%.2f M (bare %.1f M)" % (
        ours["texts"] / 1e6, ours["lookups"] / 1e6), "1 M, 10 x llvm", ", ".join(
            "%s %s" % (who, "not run" if rate is None else "%.0f k (%.0f x)" % (rate / 1e3, ours["texts"] / rate)) for who, rate in peers))


def symbol_rows(row):
    program, found = symbolize_tool(), files()
    if not found:
        row("symbols", "not run: no debug files below /usr/lib/debug")
    if not BLAZE:
        row("blazesym", "not run: BLAZECLI does not name its program")
    for path in found:
        file_rows(row, program, path)
