# SPDX-License-Identifier: Apache-2.0
"""The agent's stacks against gdb's. Every sample stops its thread (--debug-stop), so gdb sees the state that was
sampled: the n-th stop of a thread belongs to the last sample of that thread before it.

    python3 tests/tools/unwind_compare.py STACKS STOPS      # of --debug-stacks and unwind_gdb.py

A pair is equal when it has the same number of frames and the same addresses in all of them. What is not equal gets
one kind of KINDS; "wrong" is the one that must not be: other frames than gdb's, and nothing says so. Kinds that blame
gdb or missing tables need a proof: no FDE covers the frame from which on the two differ.
"""
import bisect
import collections
import json
import os
import re
import subprocess
import sys

KINDS = [
    ("equal", "the same frames"),
    ("delivered", "a signal's handler was entered or left before the stop; what it interrupted is the same"),
    ("exec", "the sample was in an exec: of the program before, or without a user part"),
    ("no_table", "they differ from a frame on that no call frame information covers (gdb guesses, too)"),
    ("cut", "gdb's frames up to where the agent says it is incomplete"),
    ("declared", "other frames than gdb's, and the agent says that it is incomplete"),
    ("guessed", "other frames than gdb's, and the agent says that it guessed"),
    ("wrong", "other frames than gdb's, called complete"),
]
# Where a thread's stack begins. clone's child and the coroutine's first frame have no other end in every libc.
START = re.compile(r"!(_start|_dl_start_user|__?clone3?|__start_context|runtime\.(clone|mcall|morestack))$")
INJECTED = re.compile(r"!runtime\.(asyncPreempt|sigpanic0?|debugCallV\d)$")


# --- what was recorded ---

class Sample:
    def __init__(self, head):
        words = head.split()
        fields = dict(zip(words[2::2], words[3::2]))
        self.time_ns = int(words[1])
        self.pid, self.tid = int(fields["pid"]), int(fields["tid"])
        self.result, self.way = fields["result"], fields["from"]
        self.is_guessed = fields["guessed"] == "1"
        self.frames, self.places = [], []


def read_samples(path):
    """In the order of their time; one that the end of the file cuts is left out."""
    samples, current = [], None
    for line in open(path, errors="replace"):
        if line.startswith("sample "):
            current = Sample(line)
        elif line.startswith("interpreter "):
            continue  # frames of no native stack
        elif line.strip() and current:
            address, _, place = line.strip().partition(" ")
            current.frames.append(0 if address == "-" else int(address, 16))  # "-": interpreted, of Java
            current.places.append(place)
        elif current:
            samples.append(current)
            current = None
    return sorted(samples, key=lambda sample: sample.time_ns)


class Stop:
    """expected: gdb's frames as the agent gives them: a trampoline and what was interrupted, by a signal or by a call
    that Go's runtime injects, plus one."""

    def __init__(self, record, code, names):
        self.time_ns, self.tid = record["time_ns"], record["tid"]
        self.frames, self.end, self.code = record["frames"], record["end"], code
        self.signals = record["signal"]
        exact = set(self.signals) | {i + 1 for i in self.signals}
        exact |= {i + 1 for i, pc in enumerate(self.frames) if INJECTED.search(names.get(pc, ""))}
        self.expected = [pc + (i in exact and i > 0) for i, pc in enumerate(self.frames)]
        self.leaf_name = names.get(self.frames[0], "")


def read_stops(path):
    """(stops, {pc: name}, how it ended)"""
    stops, names, code, how = [], {}, [], "it did not end"
    for line in open(path):
        record = json.loads(line)
        how = record.get("exit", how)
        code = record.get("code", code)
        names.update({int(pc, 16): name for pc, name in record.get("names", {}).items()})
        if "frames" in record:
            stops.append(Stop(record, code, names))
    return stops, names, how


# --- which code has a table ---

class Tables:
    """Of the files of one process: is an address covered by an FDE, or is it in a stripped Go program?"""

    def __init__(self, root="/"):
        self.root = root
        self.files = {}

    def load(self, path):
        """(segments [(offset, size, address)], sorted FDE starts, their ends, whether it is Go's)"""
        if path in self.files:
            return self.files[path]
        real = path.removesuffix(" (deleted)")
        segments, starts, ends, is_go = [], [], [], False
        if os.path.isfile(real):
            text = subprocess.run(["readelf", "-lSW", real], capture_output=True, text=True).stdout
            for fields in (line.split() for line in text.splitlines()):
                if fields and fields[0] == "LOAD":
                    segments.append((int(fields[1], 16), int(fields[4], 16), int(fields[2], 16)))
            is_go = ".gopclntab" in text and "debug_frame" not in text
            starts, ends = read_fdes(real)
        self.files[path] = segments, starts, ends, is_go
        return self.files[path]

    def has_table(self, code, address):
        """None: cannot be told (the vDSO, a file that is gone)."""
        for start, end, offset, path in code:
            if start <= address < end:
                if not path.startswith("/"):
                    return None if path == "[vdso]" else False
                segments, starts, ends, is_go = self.load(path)
                if not segments:
                    return None
                in_file = address - start + offset
                for segment_offset, size, elf in segments:
                    if segment_offset <= in_file < segment_offset + size:
                        at = in_file - segment_offset + elf
                        i = bisect.bisect_right(starts, at) - 1
                        return is_go or (i >= 0 and at < ends[i])
        return False


def read_fdes(path):
    """Starts and ends of all FDEs, as readelf lists them."""
    pieces = set()
    done = subprocess.Popen(["readelf", "--debug-dump=frames", "-W", path], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True, errors="replace")
    for line in done.stdout:
        found = " FDE " in line and re.search(r"pc=([0-9a-f]+)\.\.([0-9a-f]+)", line)
        if found:
            pieces.add((int(found.group(1), 16), int(found.group(2), 16)))
    done.wait()
    ordered = sorted(pieces)
    return [p[0] for p in ordered], [p[1] for p in ordered]


# --- pairs ---

def same_leaf(got, want, name=""):
    """Inside a system call the agent gives the instruction that made it, gdb the next, or that one when it will
    be made again. gdb itself has a breakpoint in the dynamic linker, whose trap is one byte long."""
    return 0 <= want - got <= 2 or got == want + name.endswith("!_dl_debug_state")


def is_equal(sample, stop):
    return (len(sample.frames) == len(stop.expected) > 0 and sample.frames[1:] == stop.expected[1:]
            and same_leaf(sample.frames[0], stop.expected[0], stop.leaf_name))


def is_delivered(sample, stop):
    """A signal came or went between the sample and the stop. Came: the stop is in a handler's first instructions,
    and what lies behind its trampoline is the sample. Went: the sample is in the system call with which a
    handler's trampoline ends, the stop in what was interrupted."""
    ours, gdbs = sample.frames, stop.expected
    is_whole = sample.result == "complete"
    if len(gdbs) > 2 and stop.signals[:1] == [1] and ours:
        behind = gdbs[3:] if is_whole else gdbs[3:len(ours) + 2]
        if same_leaf(ours[0], gdbs[2] - 1) and ours[1:] == behind:
            return True
    return len(ours) == len(gdbs) + 1 and same_leaf(ours[1] - 1, gdbs[0]) and ours[2:] == gdbs[1:]


def pairs(samples, stops):
    """[(sample or None, stop)] and the samples left over. Of several since the last stop (a second tick before the
    first one's signal was seen), the one that is equal, else the last."""
    by_tid = collections.defaultdict(list)
    for sample in samples:
        by_tid[sample.tid].append(sample)
    done, found = collections.Counter(), []
    for stop in stops:
        mine = by_tid[stop.tid]
        end = begin = done[stop.tid]
        while end < len(mine) and mine[end].time_ns <= stop.time_ns:
            end += 1
        candidates = mine[begin:end]
        done[stop.tid] = end
        best = next((s for s in candidates if is_equal(s, stop)), candidates[-1] if candidates else None)
        found.append((best, stop))
    return found


def difference(sample, stop):
    """The first frame that is not the same."""
    for i, (got, want) in enumerate(zip(sample.frames, stop.expected)):
        if got != want and not (i == 0 and same_leaf(got, want, stop.leaf_name)):
            return i
    return min(len(sample.frames), len(stop.expected))


def kind_of(sample, stop, tables):
    if is_equal(sample, stop):
        return "equal"
    if is_delivered(sample, stop):
        return "delivered"
    if not sample.frames or not any(start <= sample.frames[0] < end for start, end, _, _ in stop.code):
        return "exec"
    at = difference(sample, stop)
    if at == len(stop.frames) and stop.end.startswith("not code"):
        return "wrong" if tables.has_table(stop.code, stop.frames[-1] - 1) else "no_table"
    if sample.result == "complete" and not sample.is_guessed:
        return "wrong"
    # The frame whose caller they disagree about is the one before.
    before = max(at - 1, 0)
    if before < len(stop.frames):
        pc = stop.frames[before] - (before > 0 and before - 1 not in stop.signals and before not in stop.signals)
        if tables.has_table(stop.code, pc) is False:
            return "no_table"
    if sample.result != "complete":
        return "cut" if at == len(sample.frames) else "declared"
    return "guessed"


def files_differ(sample, stop):
    """Does a frame that is right lie in another file than the agent says?"""
    for pc, place, got, want in zip(stop.frames, sample.places, sample.frames, stop.expected):
        path = next((path for start, end, _, path in stop.code if start <= pc < end), None)
        if got == want and path and "+0x" in place:
            name = os.path.basename(path.removesuffix(" (deleted)"))
            if name != os.path.basename(place.rpartition("+0x")[0].removesuffix(" (deleted)")):
                return True
    return False


class Comparison:
    def __init__(self, samples, stops, names):
        self.names, self.tables = names, Tables()
        self.kinds, self.results, self.examples = collections.Counter(), collections.Counter(), []
        self.guessed = self.unmatched = self.copies = self.other_files = 0
        self.ends_differ = []
        self.false_ends = 0  # called complete, and gdb knows no start there although its last frame has a table
        matched = 0
        for sample, stop in pairs(samples, stops):
            if sample is None:
                self.unmatched += 1
                continue
            matched += 1
            self.add(sample, stop)
        self.stops, self.samples = matched, len(samples)

    def add(self, sample, stop):
        kind = kind_of(sample, stop, self.tables)
        self.kinds[kind] += 1
        self.results[sample.result] += 1
        self.guessed += sample.is_guessed
        self.copies += sample.way == "copy"
        if kind not in ("equal", "delivered", "exec"):
            self.examples.append((kind, sample, stop))
        self.other_files += files_differ(sample, stop)
        is_start = stop.end == "outermost" or bool(START.search(self.names.get(stop.frames[-1], "")))
        if kind == "equal" and is_start != (sample.result == "complete"):
            self.ends_differ.append((sample, stop))
            self.false_ends += not is_start and bool(self.tables.has_table(stop.code, stop.frames[-1] - 1))

    def share(self, *kinds):
        return sum(self.kinds[kind] for kind in kinds) / self.stops if self.stops else 0.0

    def complete(self):
        return self.results["complete"] / self.stops if self.stops else 0.0

    def describe(self, kind, sample, stop, around=2):
        """The frames around the first difference, both sides."""
        at = difference(sample, stop)
        lines = ["%s: tid %d, result %s%s, from %s: frame %d of %d, gdb has %d and ends: %s" % (
            kind, sample.tid, sample.result, ", guessed" if sample.is_guessed else "", sample.way, at,
            len(sample.frames), len(stop.frames), stop.end)]
        for i in range(max(at - around, 0), at + around):
            ours = "%x %s" % (sample.frames[i], sample.places[i]) if i < len(sample.frames) else "-"
            gdbs = "%x %s" % (stop.expected[i], self.names.get(stop.frames[i], "?")) if i < len(stop.frames) else "-"
            lines.append("  %3d %-60s gdb: %s" % (i, ours, gdbs))
        return "\n".join(lines)

    def shown(self, limit=3):
        """One example of each way to differ."""
        seen, lines = set(), []
        for kind, sample, stop in sorted(self.examples, key=lambda e: [k for k, _ in KINDS].index(e[0]), reverse=True):
            at = difference(sample, stop)
            key = kind, sample.result, self.names.get(stop.frames[max(at - 1, 0)] if at <= len(stop.frames) else 0)
            if key not in seen and len(seen) < limit:
                seen.add(key)
                lines.append(self.describe(kind, sample, stop))
        return "\n".join(lines)


def main():
    stops, names, how = read_stops(sys.argv[2])
    result = Comparison(read_samples(sys.argv[1]), stops, names)
    print("%d stops, %d matched, %d samples, %s; %s; results %s; guessed %d; copies %d; ends differ %d" % (
        len(stops), result.stops, result.samples, how, dict(result.kinds), dict(result.results), result.guessed,
        result.copies, len(result.ends_differ)))
    print(result.shown(10))
    for sample, stop in result.ends_differ[:3]:
        print("end: %s, gdb: %s at %s" % (sample.result, stop.end, result.names.get(stop.frames[-1])))


if __name__ == "__main__":
    main()
