# SPDX-License-Identifier: Apache-2.0
"""Where functions of a stripped program lie, asked by their names: as nm says of the file that was not stripped."""
import os
import struct
import subprocess
import time

from harness import WORK, Server, check, equal, note, run

SOURCE = r"""
#include <stdlib.h>
static __attribute__((noinline, used)) int twice(int x) { return x * 2; }
__attribute__((alias("main"))) int also_main(int argc, char **argv);
int malloc_like(int x) { return x; }
int variable = 3;
int main(int argc, char **argv) { free(malloc(argc)); return twice(argc) + malloc_like(argc); }
"""
TWIN = "static __attribute__((noinline, used)) int twice(int x) { return x * 3; }\n"
NAMES = ["malloc", "__libc_malloc", "calloc", "posix_memalign", "main", "also_main", "twice", "variable", "alloc", "nothing"]


def sh(*arguments):
    return subprocess.run(arguments, capture_output=True, text=True, check=True).stdout


def build(name, *flags):
    sources = []
    for part, text in (("one", SOURCE), ("two", TWIN)):
        sources.append(os.path.join(WORK, part + ".c"))
        open(sources[-1], "w").write(text)
    whole = os.path.join(WORK, name)
    sh("cc", "-O1", *flags, "-Wl,--build-id=sha1", *sources, "-o", whole)
    stripped, debug = whole + ".stripped", whole + ".debug"
    sh("strip", "-o", stripped, whole)
    sh("objcopy", "--only-keep-debug", whole, debug)
    return whole, stripped, debug, sh("readelf", "-n", whole).split("Build ID: ")[1].split()[0]


def by_nm(path, names):
    """Of defined functions."""
    found = set()
    for line in sh("nm", "-S", "--defined-only", path).splitlines():
        parts = line.split()
        if len(parts) == 4 and parts[2] in "tTwW" and parts[3] in names:
            found.add((parts[3], int(parts[0], 16), int(parts[1], 16)))
    return found


def asked(server, build_id, names):
    status, _, body = server.get("/api/v1/modules/%s/symbols?name=%s" % (build_id, ",".join(names)))
    rows = [line.split() for line in body.decode().splitlines()] if status == 200 else []
    return status, {(name, int(at, 16), int(size)) for name, at, size in rows}, len(rows)


def put(server, build_id, path):
    return server.request("PUT", "/api/v1/modules/" + build_id, open(path, "rb").read())[0]


def test_as_nm():
    server = Server(data="symbols")
    for name, flags in (("static", ["-static"]), ("dynamic", [])):
        whole, stripped, debug, build_id = build(name, *flags)
        equal(asked(server, build_id, NAMES)[0], 404, "%s: nothing is here of it" % name)
        equal(put(server, build_id, stripped), 201, "the stripped program is uploaded")
        status, found, _ = asked(server, build_id, NAMES)
        equal((status, found), (200, set()), "which has none of these names")
        equal(put(server, build_id, debug), 201, "and its symbols")
        status, found, rows = asked(server, build_id, NAMES)
        want = by_nm(whole, NAMES)
        check(len(want) >= (7 if name == "static" else 4), "nm knows %d of them" % len(want), want)
        equal(found, want, "names at addresses, as nm says")
        equal(rows, len(found), "each once")
        twice = [row for row in found if row[0] == "twice"]
        equal(len(twice), 2, "of two functions of one name both")
        note("%s: %s" % (name, sorted(found)))
    refusals(server, build_id)
    server.stop()


def far_apart(count):
    """A file of that many functions whose names each take a read: what a hostile sender would upload."""
    build_id = os.urandom(20)
    texts = bytearray(1 << 20)
    note_bytes = struct.pack("<III4s", 4, 20, 3, b"GNU\0") + build_id
    symbols = b"".join(struct.pack("<IBBHQQ", 1 if i % 2 else 1 << 19, 0x12, 0, 1, 0x1000 + i, 1) for i in range(count))
    names = b"\0.symtab\0.strtab\0.shstrtab\0.note.gnu.build-id\0"
    parts, at, sections = b"", 64 + 56, [bytes(64)]
    for name, kind, data in ((b".note.gnu.build-id", 7, note_bytes), (b".symtab", 2, symbols), (b".strtab", 3, bytes(texts)),
                             (b".shstrtab", 3, names)):
        data += bytes(-len(data) % 8)
        sections.append(struct.pack("<IIQQQQIIQQ", names.index(name), kind, 0, 0, at, len(data), 3, 0, 8, 24 if kind == 2 else 0))
        if kind == 7:
            program = struct.pack("<IIQQQQQQ", 4, 4, at, at, at, len(note_bytes), len(note_bytes), 4)
        parts, at = parts + data, at + len(data)
    header = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, at, 0, 64, 56, 1, 64, 5, 4)
    return build_id.hex(), header + program + parts + b"".join(sections)


def test_limits():
    build_id, file = far_apart(1 << 20)
    server = Server("--query-time", "1ms", data="limits")
    equal(server.request("PUT", "/api/v1/modules/" + build_id, file)[0], 201, "a file that takes many reads is uploaded")
    status, _, body = server.get("/api/v1/modules/%s/symbols?name=main" % build_id)
    check(status == 422 and b"--query-time" in body, "it is given up at --query-time, with a sentence", (status, body[:300]))
    equal(server.get("/healthz")[0], 200, "the server lives")
    server.stop()
    server.arguments = [word for word in server.arguments if word not in ("--query-time", "1ms")]
    server.start()
    begin = time.monotonic()
    status, _, body = server.get("/api/v1/modules/%s/symbols?name=main" % build_id)
    note("without that limit: %d after %.2f s" % (status, time.monotonic() - begin))
    check(status == 422 and b"reading" in body, "it is given up at what may be read, with a sentence", (status, body[:300]))
    server.stop()


def refusals(server, build_id):
    for path, status in (("/api/v1/modules/xyz/symbols?name=main", 400),
                         ("/api/v1/modules/%s/symbols" % build_id, 422),
                         ("/api/v1/modules/%s/symbols?name=a,,b" % build_id, 422),
                         ("/api/v1/modules/%s/symbols?name=%s" % (build_id, "x" * 256), 422),
                         ("/api/v1/modules/%s/symbols?name=%s" % (build_id, ",".join(["a"] * 65)), 422),
                         ("/api/v1/modules/%s/symbols?names=main" % build_id, 422)):
        got, _, body = server.get(path)
        check(got == status and b"message" in body, "%s: %d and a sentence" % (path[:70], status), (got, body[:200]))
    equal(asked(server, build_id, ["x" * 255, "main"])[0], 200, "a name of 255 bytes, which no function has")
    equal(server.get("/healthz")[0], 200, "the server lives")


run(test_as_nm, test_limits)
