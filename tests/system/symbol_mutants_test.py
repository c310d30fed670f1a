# SPDX-License-Identifier: Apache-2.0
"""Damaged and hostile debug files through the real server and its worker: mutants of a C++, a Rust and a Go program by
flipped bytes, and bombs that unpack, nest or repeat without end. Each ends in a state with a reason, no conversion
crashes or asks for what is forbidden, the server answers all along and its memory stays what it was. MUTANTS=400 of each
is the long form."""
import hashlib
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import time
import zlib

from harness import WORK, Server, check, equal, note, run, skip, wait_for

MUTANTS = int(os.environ.get("MUTANTS", "40"))
SECONDS = int(os.environ.get("MUTANTS_SECONDS", "0")) or 60 + MUTANTS // 2
BUSY = ("wanted", "fetching", "converting")
PLAIN_ID = hashlib.sha1(b"plain").digest()

CXX = r"""
#include <map>
#include <string>
#include <vector>
#include <algorithm>
namespace deep { struct part { int v; int run() const { return v * 3; } }; }
template <class T> static T sum(const std::vector<T> &v) { T t{}; for (auto &x : v) t = t + x; return t; }
int main(int c, char **)
{
	std::map<std::string, std::vector<int>> m;
	for (int i = 0; i < 100; i++)
		m["k" + std::to_string(i % 7)].push_back(deep::part{i}.run());
	for (auto &p : m)
		std::sort(p.second.begin(), p.second.end(), [&](int a, int b) { return a * c > b * c; });
	return sum(m["k1"]);
}
"""
RUST = r"""
use std::collections::HashMap;
fn main() {
    let mut m: HashMap<String, Vec<u64>> = HashMap::new();
    for i in 0..100u64 { m.entry(format!("k{}", i % 7)).or_default().push(i); }
    let mut v: Vec<_> = m.into_iter().collect();
    v.sort_by(|a, b| b.0.cmp(&a.0));
    println!("{:?}", v);
}
"""
GO = "package main\nimport \"os\"\ntype t[T any] struct{ v T }\nfunc (x t[T]) get() T { return x.v }\n" \
     "func main() { x := t[int]{len(os.Args)}; println(x.get()) }\n"


# --- mutants ---

def build(name, text, suffix, *command):
    source, program = os.path.join(WORK, name + suffix), os.path.join(WORK, name)
    open(source, "w").write(text)
    if not shutil.which(command[0]):
        return None
    done = subprocess.run([*command, program, source], capture_output=True, text=True, cwd=WORK,
                          env=dict({"GOCACHE": os.path.join(WORK, "go-cache")}, **os.environ, GO111MODULE="off"))
    return open(program, "rb").read() if done.returncode == 0 else None


def interesting(path):
    """Places of the sections that are read: DWARF, symbols, Go's table."""
    text = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True).stdout
    return [(int(offset, 16), int(size, 16)) for offset, size in re.findall(
        r"\] \.(?:debug_\w+|symtab|strtab|dynsym|dynstr|gopclntab|go\.buildinfo|eh_frame)\s+\S+\s+[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+)", text)
        if int(size, 16)]


def mutant(plain, places, seed):
    """Up to eight bytes are another; half of the time one bit of them."""
    chance, bytes_ = random.Random(seed), bytearray(plain)
    for _ in range(chance.randint(1, 8)):
        start, size = chance.choice(places) if chance.random() < 0.9 else (64, len(plain) - 64)
        # the beginnings of tables are their headers
        at = start + (chance.randrange(min(size, 64)) if chance.random() < 0.3 else chance.randrange(size))
        bytes_[at] = bytes_[at] ^ 1 << chance.randrange(8) if chance.random() < 0.5 else chance.choice((0, 1, 0x7f, 0x80, 0xff))
    return bytes_


def with_id(bytes_, old, name):
    new = hashlib.sha1(name.encode()).digest()
    return new.hex(), bytes(bytes_).replace(old, new)


# --- bombs ---

def uleb(value):
    out = bytearray()
    while True:
        out.append(value & 0x7f | (0x80 if value > 0x7f else 0))
        value >>= 7
        if not value:
            return bytes(out)


def elf(id_, sections):
    """An x86-64 program of one function; sections: name, bytes, and the size that an inflated one claims or None."""
    text = bytes(4096)
    note_ = struct.pack("<III4s", 4, 20, 3, b"GNU\0") + id_
    strings = b"\0victim\0"
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 0x12, 0, 1, 0x401000, 4096)
    rows = [(b".text", 1, 6, 0x401000, text, 0, 0, 0), (b".note.gnu.build-id", 7, 2, 0x402000, note_, 0, 0, 0),
            (b".symtab", 2, 0, 0, symbols, 4, 1, 24), (b".strtab", 3, 0, 0, strings, 0, 0, 0)]
    for name, content, claimed in sections:
        if claimed is not None:
            content = struct.pack("<IIQQ", 1, 0, claimed, 1) + content
        rows.append((name.encode(), 1, 0x800 if claimed is not None else 0, 0, content, 0, 0, 0))
    names = b"\0" + b"".join(row[0] + b"\0" for row in rows) + b".shstrtab\0"
    rows.append((b".shstrtab", 3, 0, 0, names, 0, 0, 0))
    body, headers, at = bytearray(), bytearray(64), 64
    for name, type_, flags, address, content, link, info, entry in rows:
        headers += struct.pack("<IIQQQQIIQQ", names.index(b"\0" + name + b"\0") + 1, type_, flags, address, at + len(body),
                               len(content), link, info, 1, entry)
        body += content
    start = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1" + bytes(9), 2, 62, 1, 0x401000, 0, at + len(body), 0, 64, 0,
                        0, 64, len(rows) + 1, len(rows))
    return start + bytes(body) + bytes(headers)


def packed(byte, count):
    """count times the byte as zlib has it, made of one megabyte that repeats."""
    block = zlib.compressobj(9, zlib.DEFLATED, -15)
    once = block.compress(bytes([byte]) * (1 << 20)) + block.flush(zlib.Z_FULL_FLUSH)
    low, high = (1 + byte * count) % 65521, 0
    high = (count + byte * (count * (count + 1) // 2)) % 65521
    return b"\x78\xda" + once * (count >> 20) + b"\x03\x00" + struct.pack(">I", high << 16 | low)


def unit(dies, version=4):
    return struct.pack("<IHIB", len(dies) + 7, version, 0, 8) + dies


def abbreviation(code, tag, children, *attributes):
    return uleb(code) + uleb(tag) + bytes([children]) + b"".join(uleb(v) for pair in attributes for v in pair) + b"\0\0"


LOW, HIGH, NAME, RANGES, LINES = (0x11, 1), (0x12, 6), (3, 0xe), (0x55, 0x17), (0x10, 0x17)
CODE = struct.pack("<QI", 0x401000, 64)


def line_program(rows, header=b""):
    """Rows of one address and one line more each, one byte a row."""
    head = struct.pack("<BBBbBB", 1, 1, 1, -5, 14, 13) + bytes((0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1)) + b"\0a.c\0\0\0\0\0"
    program = b"\0\x09\x02" + struct.pack("<Q", 0x401000) + b"\x21" * rows + b"\0\x01\x01"
    return struct.pack("<IHI", 6 + len(head) + len(program), 4, len(head)) + head + program


def bombs(id_):
    """(name, file)"""
    big, gigabyte = 4 << 30, 1 << 30
    function = abbreviation(1, 0x11, 1, LINES) + abbreviation(2, 0x2e, 0, NAME, LOW, HIGH) + b"\0"
    root = b"\1" + struct.pack("<I", 0)
    many = b"".join(b"\2" + struct.pack("<I", i) + CODE for i in range(20000))
    ranges = struct.pack("<QQ", 0x401000, 0x401001) * 100000 + bytes(16)
    ranged = abbreviation(1, 0x11, 1, LINES) + abbreviation(2, 0x2e, 0, NAME, RANGES) + b"\0"
    nest = abbreviation(1, 0x11, 1, LINES) + abbreviation(2, 0xb, 1) + abbreviation(3, 0x1d, 1, (0x31, 0x13), LOW, HIGH) + b"\0"
    rows = line_program(10000000)
    packed_info = packed(0, 64 << 20)
    loop = abbreviation(1, 0x11, 1, LINES) + abbreviation(2, 0x2e, 1, (0x31, 0x13), LOW, HIGH) + b"\0"
    yield "4 GiB of zeros", elf(id_, [(".debug_info", packed(0, big), big), (".debug_abbrev", function, None)])
    yield "64 MiB of zeros, units without length", elf(id_, [(".debug_info", packed_info, 64 << 20), (".debug_abbrev", function, None)])
    yield "a size of 64 GiB that is a lie", elf(id_, [(".debug_info", packed_info, 64 << 30), (".debug_abbrev", function, None)])
    yield "a size of 60 MiB that is a lie", elf(id_, [(".debug_info", zlib.compress(b"x" * 100), 60 << 20), (".debug_abbrev", function, None)])
    yield "1 MiB of units without DIEs", elf(id_, [(".debug_info", struct.pack("<IHIB", 7, 4, 0, 8) * 95000, None), (".debug_abbrev", function, None)])
    yield "blocks nested 2 million deep", elf(id_, [(".debug_info", unit(root + b"\2" * 2000000), None), (".debug_abbrev", nest, None)])
    yield "inlined functions nested 100 000 deep", elf(id_, [
        (".debug_info", unit(root + (b"\3" + struct.pack("<I", 11) + CODE) * 100000), None), (".debug_abbrev", nest, None)])
    yield "a function that is an instance of itself", elf(id_, [
        (".debug_info", unit(root + b"\2" + struct.pack("<I", 16) + CODE + b"\0\0"), None), (".debug_abbrev", loop, None)])
    yield "an abbreviation of 100 000 attributes", elf(id_, [
        (".debug_info", unit(b"\1" + bytes(1000)), None), (".debug_abbrev", abbreviation(1, 0x11, 1, *[(0x2000, 0xb)] * 100000) + b"\0", None)])
    yield "300 000 abbreviations", elf(id_, [
        (".debug_info", unit(b"\1" + bytes(1000)), None),
        (".debug_abbrev", b"".join(abbreviation(i, 0x2e, 0) for i in range(1, 300000)) + b"\0", None)])
    yield "a text of 1 GB", elf(id_, [(".debug_info", unit(root + many + b"\0"), None), (".debug_abbrev", function, None),
                                      (".debug_str", packed(97, gigabyte), gigabyte)])
    yield "20 000 names in one text of 60 MB", elf(id_, [
        (".debug_info", unit(root + many + b"\0"), None), (".debug_abbrev", function, None), (".debug_str", packed(97, 60 << 20), 60 << 20)])
    yield "a line table of 10 million rows", elf(id_, [
        (".debug_info", unit(root + b"\2" + bytes(4) + CODE + b"\0"), None), (".debug_abbrev", function, None),
        (".debug_str", b"f\0", None), (".debug_line", zlib.compress(rows, 1), len(rows))])
    yield "a thousand units, two line tables in turn", elf(id_, [
        (".debug_info", b"".join(unit(b"\1" + struct.pack("<I", (i & 1) * len(line_program(1000000))) + b"\0") for i in range(1000)), None),
        (".debug_abbrev", function, None), (".debug_line", line_program(1000000) * 2, None)])
    yield "20 000 functions of 100 000 ranges", elf(id_, [
        (".debug_info", unit(root + b"".join(b"\2" + bytes(8) for _ in range(20000)) + b"\0"), None), (".debug_abbrev", ranged, None),
        (".debug_str", b"f\0", None), (".debug_ranges", ranges, None)])


# --- the server ---

def memory_kib(pid):
    return int(re.search(r"RssAnon:\s+(\d+)", open("/proc/%d/status" % pid).read()).group(1))


def workers(pid):
    """Memory in KiB of each worker of the server."""
    sizes = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            status = open("/proc/%s/status" % entry).read()
        except OSError:
            continue
        if "PPid:\t%d\n" % pid in status and "VmHWM" in status:
            sizes.append(int(re.search(r"VmHWM:\s+(\d+)", status).group(1)))
    return sizes


class Watch:
    """What is seen while modules are converted."""

    def __init__(self, server):
        self.server, self.peak, self.slowest = server, 0, 0

    def rows(self):
        self.peak = max([self.peak] + workers(self.server.process.pid))
        begin = time.monotonic()
        rows = {row["build_id"]: row for row in self.server.json("/api/v1/modules")["modules"]}
        self.slowest = max(self.slowest, time.monotonic() - begin)
        return rows

    def settled(self, ids, seconds):
        """The rows of these modules, when none is at work any more."""
        last = {"states": None, "since": 0}

        def done():
            rows = self.rows()
            states = [rows[i]["state"] for i in ids if i in rows]
            is_quiet = states == last["states"] and not workers(self.server.process.pid)
            if not is_quiet or not last["since"]:
                last["since"] = time.monotonic()
            last["states"] = states
            # names come first, and what comes after them is taken up a little later
            return is_quiet and not set(states) & set(BUSY) and time.monotonic() - last["since"] > 1.5 and rows
        return wait_for(done, seconds, 0.1) or None


def put(server, id_, bytes_):
    return server.request("PUT", "/api/v1/modules/" + id_, bytes_, timeout=120)[0]


def judge(watch, what, sent, seconds):
    """Each has come to an end, by itself."""
    begin = time.monotonic()
    rows = watch.settled([i for i, _ in sent], seconds)
    check(rows is not None, "%s: all are settled" % what, [(name, watch.rows().get(i, {}).get("state")) for i, name in sent][:5])
    rows = rows or watch.rows()
    states, bad = {}, []
    for i, name in sent:
        row = rows.get(i, {"state": "absent"})
        states[row["state"]] = states.get(row["state"], 0) + 1
        if re.search("crash|forbidden|signal|SIG", row.get("reason", "")) or (row["state"] == "failed" and not row.get("reason")):
            bad.append((name, row.get("reason")))
    equal(bad, [], "%s: no conversion crashed, each failure has a reason" % what)
    note("%s: %s in %.1f s, largest worker %d MB" % (what, states, time.monotonic() - begin, watch.peak >> 10))


def still_there(server, pid, before_kib, watch):
    equal((server.process.poll(), server.process.pid), (None, pid), "the server is the one that was started")
    equal(server.get("/readyz")[0], 200, "and ready")
    after = memory_kib(pid)
    check(after - before_kib < 48 << 10, "its memory is what it was", "%d KiB, %d KiB before" % (after, before_kib))
    check(watch.slowest < 5, "it answered all along", "slowest answer %.2f s" % watch.slowest)
    note("server's memory %d KiB before, %d after; slowest list of modules %.2f s" % (before_kib, after, watch.slowest))


def test_mutants():
    built = [("C++", build("cxx", CXX, ".cc", "g++", "-O2", "-g", "-Wl,--build-id=0x" + PLAIN_ID.hex(), "-o")),
             ("Rust", build("rust", RUST, ".rs", "rustc", "-g", "-O", "-Cprefer-dynamic", "-Clink-arg=-Wl,--build-id=0x" + PLAIN_ID.hex(), "-o")),
             ("Go", build("go", GO, ".go", "go", "build", "-ldflags", "-compressdwarf=false -B 0x" + PLAIN_ID.hex(), "-o"))]
    server = Server("--symbol-memory", "16M", data="mutants", log="mutants.log")
    watch, before = Watch(server), None
    for name, plain in built:
        if plain is None:
            skip("%s mutants: its compiler is not here" % name)
            continue
        places = interesting(os.path.join(WORK, {"C++": "cxx"}.get(name, name.lower())))
        check(plain.count(PLAIN_ID) == 1 and len(places) > 8, "%s: build-id and sections are found" % name, places)
        sent, refused = [], 0
        for i in range(MUTANTS):
            id_, bytes_ = with_id(mutant(plain, places, i) if i else plain, PLAIN_ID, "%s %d" % (name, i))
            status = put(server, id_, bytes_)
            if status in (200, 201):
                sent.append((id_, "%s %d" % (name, i)))
            else:
                refused += status in (409, 422)
        equal(len(sent) + refused, MUTANTS, "%s: %d mutants are taken, %d refused" % (name, len(sent), refused))
        judge(watch, "%s mutants" % name, sent, SECONDS)
        equal(watch.rows()[sent[0][0]]["state"], "ready", "%s: the file without damage is converted" % name)
        before = before or memory_kib(server.process.pid)
    if before:
        still_there(server, server.process.pid, before, watch)
    server.stop()


def test_bombs():
    server = Server("--symbol-memory", "16M", data="bombs", log="bombs.log")
    watch, pid = Watch(server), server.process.pid
    put(server, PLAIN_ID.hex(), elf(PLAIN_ID, []))
    watch.settled([PLAIN_ID.hex()], 20)
    before = memory_kib(pid)
    sent = []
    for number, (name, bytes_) in enumerate(bombs(PLAIN_ID)):
        id_, bytes_ = with_id(bytes_, PLAIN_ID, "bomb %d" % number)
        check(put(server, id_, bytes_) == 201, "%s: the file is taken" % name)
        sent.append((id_, name))
    judge(watch, "bombs", sent, SECONDS)
    rows = watch.rows()
    for id_, name in sent:
        row = rows.get(id_, {})
        note("  %s: %s, %s: %s" % (name, row.get("state"), row.get("quality"), row.get("reason", "")[:200]))
    check(watch.peak < 700 << 10, "no worker takes more than its limit", "%d MB" % (watch.peak >> 10))
    still_there(server, pid, before, watch)
    server.stop()


if not shutil.which("g++"):
    print("1..0 # SKIP needs g++")
    sys.exit(0)
run(test_mutants, test_bombs)
