# SPDX-License-Identifier: Apache-2.0
"""check_stacks.py BUILD PROFILE CONSOLE: are the stacks a guest's agent took right? Addresses are named by
nm from the program files, kernel functions by what the guest's own kallsyms said on its console."""
import os
import re
import subprocess
import sys

sys.path.insert(0, "tests/tools")
import otlp  # noqa: E402

build, profile, console = sys.argv[1:]
CHAIN = ["leaf", "level_4", "level_3", "level_2", "level_1", "chain_run"]
DEEP = ["level_%d" % level for level in range(41)]


def build_id(path):
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True).stdout
    return re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)


class Namer:
    """Function names by nm: address ranges of the symbols, as the linker wrote them."""

    def __init__(self, path):
        self.functions = []
        for line in subprocess.run(["nm", "-S", path], capture_output=True, text=True).stdout.splitlines():
            part = line.split()
            if len(part) == 4 and part[2] in "tT":
                start = int(part[0], 16)
                self.functions.append((start, start + int(part[1], 16), part[3]))

    def name(self, address):
        return next((name for start, end, name in self.functions if start <= address < end), "?")


def say(good, text):
    print("ok" if good else "not ok", text)


def check_chain(samples, program, last):
    path = os.path.join(build, "programs", program)
    wanted_id = build_id(path)
    namer = Namer(path)
    all_count = right = 0
    example = ""
    for sample in samples:
        if sample.process != program or is_early(sample):
            continue
        names = [namer.name(f.address) if f.build_id == wanted_id else f.module
                 for f in sample.frames if f.kind != "kernel"]
        if not names:
            continue  # nothing but kernel: the program being started
        wanted = CHAIN + [last]
        all_count += sample.count
        # A tick between two calls of the chain sees a shorter stack with the same callers.
        cut = names[:names.index(last) + 1] if last in names else names
        if cut and wanted[-len(cut):] == cut:
            right += sample.count
        elif not example:
            example = " < ".join(names)
    say(all_count >= 50, "%s: %d samples" % (program, all_count))
    say(all_count and right >= 0.99 * all_count,
        "%s: %d of %d stacks are exactly the chain" % (program, right, all_count))
    if example:
        print("one that is not:", example)


def is_early(sample):
    """Taken before the code's rows were loaded, which takes an emulated machine seconds: not copied, or not all."""
    return sample.incomplete.startswith(("first sight of this code", "deeper than the part of the stack"))


def names_of(sample, wanted_id, namer):
    return [namer.name(f.address) if f.build_id == wanted_id else f.module for f in sample.frames if f.kind != "kernel"]


def check_whole(samples, program, is_right):
    """Without frame pointers, from the leaf to _start."""
    path = os.path.join(build, "programs", program)
    wanted_id = build_id(path)
    namer = Namer(path)
    all_count = right = 0
    wrong = {}
    for sample in samples:
        names = names_of(sample, wanted_id, namer)
        if sample.process != program[:15] or not names or is_early(sample):
            continue
        all_count += sample.count
        if not sample.incomplete and names[-1] == "_start" and is_right(names):
            right += sample.count
        else:
            what = "%s: %s" % (sample.incomplete, " < ".join(names))
            wrong[what] = wrong.get(what, 0) + sample.count
    say(all_count >= 50, "%s: %d samples" % (program, all_count))
    say(all_count and right >= 0.98 * all_count,
        "%s: %d of %d stacks are whole and right" % (program, right, all_count))
    for what in sorted(wrong, key=wrong.get)[-3:]:
        print("one that is not:", wrong[what], what)


def is_deep(names):
    """Every level is called by the next one, the last by main."""
    levels = [name for name in names if name in DEEP]
    if not levels:
        return "main" in names
    first = DEEP.index(levels[0])
    at = names.index(levels[0])
    return levels == DEEP[first:] and names[at:at + len(levels) + 1] == levels + ["main"]


def is_signalled(names):
    """What the signal hit is below its handler, and on to main."""
    return "main" in names and names.count("main") == 1 and (
        not {"on_timer", "on_raise"} & set(names) or names.index("main") > max(
            i for i, name in enumerate(names) if name in ("on_timer", "on_raise")) + 1)


def check_kernel_frames(samples):
    text = None
    ranges = {}
    pending = None
    for line in open(console, errors="replace"):
        if not line.startswith("kallsyms "):
            continue
        _, address, _, name = line.split()[:4]
        address = int(address, 16)
        if name == "_text":
            text = address
            continue
        if pending:
            ranges[pending[0]] = (pending[1], address)
            pending = None
        if re.fullmatch(r"__(x64|arm64)_sys_getdents64|vfs_read|ksys_read", name):
            pending = (name, address)
    seen = dict.fromkeys(ranges, 0)
    for sample in samples:
        if sample.process != "syscall_loop":
            continue
        for frame in sample.frames:
            if frame.kind != "kernel" or frame.base != "_text":
                continue
            for name, (start, end) in ranges.items():
                if start - text <= frame.address < end - text:
                    seen[name] += sample.count
    say(text is not None and len(ranges) > 0, "the guest's kallsyms could be read")
    say(any(seen.values()), "kernel frames lie in the functions kallsyms names: %s" %
        ", ".join("%s %d" % item for item in sorted(seen.items())))


def main():
    reader = otlp.Reader(otlp.read(build, profile))
    samples = list(reader.samples())
    counters = reader.counters()
    check_chain(samples, "chain_pie", "main")
    check_chain(samples, "chain_static", "main")
    check_chain(samples, "chain_thread", "thread_main")
    check_whole(samples, "deep", is_deep)
    check_whole(samples, "deep_static", is_deep)
    check_whole(samples, "signals", is_signalled)
    check_kernel_frames(samples)
    early = sum(sample.count for sample in samples if is_early(sample))
    print("taken before the rows were there: %d of %d" % (early, sum(sample.count for sample in samples)))
    stored = sum(sample.count for sample in samples)
    lost = sum(v for k, v in counters.items() if k.startswith("farflame.lost."))
    taken = counters.get("farflame.taken", -1)
    say(taken == stored + lost, "taken %d = in the file %d + lost %d" % (taken, stored, lost))


main()
