# SPDX-License-Identifier: Apache-2.0
"""POST /symbolicate/v5: names, lines and inlined functions of a PIE, a program that is not one and a shared library
as llvm-symbolizer has them, asked the way Firefox Profiler and samply ask; what is refused, and how fast it is."""
import json
import os
import random
import re
import shutil
import subprocess
import time

from harness import PROGRAMS, WORK, Server, build_programs, check, equal, note, run, skip, wait_for

ELF = {"chain_pie": "PIE", "chain_nopie": "not a PIE", "libchain.so": "a shared library", "shapes_cc": "C++"}
ADDRESSES = 1500
programs = {}
SYMBOLIZER = next((name for name in ("llvm-symbolizer-19", "llvm-symbolizer") if shutil.which(name)), None)


def sh(*arguments, **more):
    return subprocess.run(arguments, capture_output=True, text=True, check=True, **more).stdout


def build_id(path):
    return sh("readelf", "-n", path).split("Build ID: ")[1].split()[0]


def breakpad(hex_id):
    """First 16 bytes as a GUID whose first three fields are little-endian numbers, and the age 0."""
    b = bytes.fromhex(hex_id)[:16].ljust(16, b"\0")
    return (b[3::-1] + b[5:3:-1] + b[7:5:-1] + b[8:]).hex().upper() + "0"


def load_base(path):
    return min(int(m, 16) for m in re.findall(r"^ *LOAD +0x\w+ +0x(\w+)", sh("readelf", "-lW", path), re.M))


def code(path):
    """Address ranges of the executable sections."""
    rows = re.findall(r"^ *\[ *\d+\] (\S+) +PROGBITS +(\w+) +\w+ +(\w+) +\w+ +AX", sh("readelf", "-SW", path), re.M)
    return [(int(start, 16), int(start, 16) + int(size, 16)) for name, start, size in rows if not name.startswith(".plt")]


def ask(server, jobs, **headers):
    status, got, body = server.request("POST", "/symbolicate/v5", json.dumps(jobs), headers)
    return status, got, json.loads(body)


def one(server, name, id_, offsets):
    status, _, got = ask(server, {"jobs": [{"memoryMap": [[name, id_]], "stacks": [[[0, o] for o in offsets]]}]})
    if status != 200:
        raise RuntimeError(got)
    return got["results"][0]


def serve():
    """The programs' tables are on its disk from the first time on."""
    return Server(data="names", log="names.log")


def upload_all(server):
    for name in ELF:
        path = os.path.join(PROGRAMS, name)
        programs[name] = (path, build_id(path))
        server.request("PUT", "/api/v1/modules/" + programs[name][1], open(path, "rb").read())

    def ready():
        rows = {row["build_id"]: row["state"] for row in server.json("/api/v1/modules")["modules"]}
        return all(rows.get(i) == "ready" for _, i in programs.values())
    check(wait_for(ready, 30), "the programs are converted", server.json("/api/v1/modules"))


def llvm(path, addresses):
    """[[(linkage name, file, line) innermost first]]"""
    text = sh(SYMBOLIZER, "--no-demangle", "--output-style=JSON", "-e", path, input="".join("0x%x\n" % a for a in addresses))
    rows = [json.loads(row).get("Symbol", []) for row in text.splitlines()]
    return [[(s["FunctionName"], s["FileName"], s["Line"]) for s in symbols if s["FunctionName"]] for symbols in rows]


def demangled(names):
    """What the API promises: as c++filt prints them, without suffixes and versions."""
    texts = sh("c++filt", input="\n".join(names)).splitlines()
    return {name: re.sub(r"( \[clone [^]]*\])+$|\.(cold|isra|part|constprop|lto_priv)\b.*|@.*", "", text)
            for name, text in zip(names, texts)}


def frames_of(answer):
    """Ours in the same shape."""
    rows = []
    for frame in answer["stacks"][0]:
        chain = [(i.get("function", ""), i.get("file", ""), i.get("line", 0)) for i in frame.get("inlines", [])]
        if "function" in frame:
            chain.append((frame["function"], frame.get("file", ""), frame.get("line", 0)))
        rows.append(chain)
    return rows


def same(mine, other):
    """Functions without a linkage name have their namespaces here, llvm shows the bare name."""
    return mine == other or (mine[1:] == other[1:] and mine[0].endswith("::" + other[0]))


def test_like_llvm():
    build_programs(*ELF)
    server = serve()
    upload_all(server)
    if not SYMBOLIZER:
        skip("needs llvm-symbolizer")
        return
    for name, what in ELF.items():
        path, id_ = programs[name]
        ranges, base = code(path), load_base(path)
        pick = random.Random(7)
        addresses = [pick.randrange(*ranges[pick.choices(range(len(ranges)), [b - a for a, b in ranges])[0]])
                     for _ in range(ADDRESSES)]
        ours = frames_of(one(server, name, breakpad(id_), [a - base for a in addresses]))
        theirs = llvm(path, addresses)
        names = demangled(sorted({n for chain in theirs for n, _, _ in chain}))
        wrong = []
        for address, mine, other in zip(addresses, ours, theirs):
            # Without a line the file is the symbol table's.
            other = [(names[n], os.path.normpath(f) if l else "", l) for n, f, l in other]
            mine = [(n, os.path.normpath(f) if l else "", l) for n, f, l in mine]
            if len(mine) != len(other) or not all(map(same, mine, other)):
                wrong.append("0x%x: %s\n  llvm: %s" % (address, mine, other))
        deep = sum(len(chain) > 1 for chain in ours)
        check(len(wrong) <= ADDRESSES // 200, "%s (base 0x%x): %d addresses, %d of them inlined, as llvm-symbolizer has them; "
              "%d others" % (what, base, len(ours), deep, len(wrong)), "\n".join(wrong[:12]))
        for line in wrong[:3]:
            note(line.replace("\n", " ")[:500])


def test_offsets():
    """function_offset leads back to the start that nm shows."""
    server = serve()
    for name in ("chain_pie", "chain_nopie"):
        path, id_ = programs[name]
        base = load_base(path)
        symbols = re.findall(r"^(\w+) (\w+) [Tt] (main|level_\d+)$", sh("nm", "-S", path), re.M)
        rows = one(server, name, id_, [int(a, 16) - base + 3 for a, _, _ in symbols])["stacks"][0]
        equal([(r["function"], r["function_offset"], int(r["function_size"], 16)) for r in rows],
              [(n, "0x3", int(size, 16)) for _, size, n in symbols], "%s: offsets and sizes of functions as nm's" % name)


def test_shapes():
    """What clients send and have to get back."""
    server = serve()
    path, id_ = programs["chain_pie"]
    nobody, twice = "ab" * 20, breakpad(id_)
    job = {"memoryMap": [["p", twice], ["never", "cd" * 20], ["gone", nobody], ["p", twice], ["odd", "xyz"],
                         ["other.pdb", "44E4EC8C2F41492B9369D6B9A059577C2"]],
           "stacks": [[[0, 1], [-1, 4096], [2, 5]], [], [[3, 1], [0, -1], [4, 7], [5, 8]]]}
    status, headers, got = ask(server, {"jobs": [job]})
    result = got["results"][0]
    equal((status, [len(s) for s in result["stacks"]]), (200, [3, 0, 4]), "a frame for each that was asked")
    equal(result["found_modules"], {"p/" + twice: True, "never/" + "cd" * 20: None, "gone/" + nobody: False, "odd/xyz": False,
                                    "other.pdb/44E4EC8C2F41492B9369D6B9A059577C2": False}, "found_modules")
    flat = [frame for stack in result["stacks"] for frame in stack]
    check(all(frame["reason"] and "function" not in frame for frame in flat), "frames without names have reasons", flat)
    equal([(f["frame"], f["module"], f["module_offset"]) for f in flat],
          [(0, "p", "0x1"), (1, "<unknown>", "0x1000"), (2, "gone", "0x5"), (0, "p", "0x1"), (1, "p", "-0x1"),
           (2, "odd", "0x7"), (3, "other.pdb", "0x8")], "frames say what was asked")
    equal(headers["Access-Control-Allow-Origin"], "*", "pages of any origin may read it")
    wait_for(lambda: "turn" not in ask(server, job)[2]["results"][0]["stacks"][0][2]["reason"], 10)
    got = ask(server, {"jobs": [job]})[2]
    equal(ask(server, job)[2], got, "one job alone, without jobs")
    equal(ask(server, {"jobs": [job] * 10})[2]["results"], got["results"] * 10, "ten jobs")
    equal(one(server, "p", id_.upper(), [1])["found_modules"], {"p/" + id_.upper(): True}, "plain hexadecimal in capitals")
    equal(one(server, "p", twice.lower(), [1])["found_modules"], {"p/" + twice.lower(): True}, "a Breakpad id in small letters")
    rows = {row["build_id"]: row for row in server.json("/api/v1/modules")["modules"]}
    check(nobody in rows and "cd" * 20 not in rows, "what was not known is looked for, what no frame is in is not", list(rows))
    status, headers, body = server.request("OPTIONS", "/symbolicate/v5", None, {
        "Origin": "https://profiler.firefox.com", "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type"})
    check(status == 204 and not body and headers["Access-Control-Allow-Origin"] == "*" and
          "Content-Type" in headers["Access-Control-Allow-Headers"], "a preflight is answered", dict(headers))
    check("Access-Control-Allow-Origin" not in server.get("/api/v1/modules")[1], "and nothing else is open to pages")
    path, id_ = programs["libchain.so"]
    late = Server(data="late", log="late.log")
    asked = breakpad(id_)
    equal(one(late, "l", asked, [1])["found_modules"], {"l/" + asked: False}, "an unknown Breakpad id is not found")
    late.request("PUT", "/api/v1/modules/" + id_, open(path, "rb").read())
    check(wait_for(lambda: one(late, "l", asked, [1])["found_modules"]["l/" + asked], 20), "until its file comes")
    late.kill()
    late.start()
    check(one(late, "l", asked, [1])["found_modules"]["l/" + asked], "and is read from the disk after a restart")
    late.stop()
    folder = os.path.join(WORK, "files")
    os.makedirs(folder)
    shutil.copy(path, folder)
    lying = Server("--symbol-dir", folder, data="lying", log="lying.log")
    check(wait_for(lambda: one(lying, "l", asked, [1])["found_modules"]["l/" + asked], 20), "or lies in a directory, met by nobody")
    rows = one(lying, "l", asked, [1])["stacks"]
    equal(rows, one(lying, "l", id_, [1])["stacks"], "and has the names that its whole id has")
    lying.stop()


def test_refusals():
    server = serve()
    good = {"memoryMap": [["p", "ab" * 20]], "stacks": [[[0, 1]]]}
    for body, status, word in ((b"", 400, "JSON"), (b"{", 400, "JSON"), (b"[]", 400, "job 0"), (b"{}", 400, "memoryMap"),
                               (b'{"jobs":[]} x', 400, "JSON"), (b'{"jobs":{}}', 400, "jobs is"), (b"[" * 100000, 400, "JSON"),
                               (b'{"jobs":[]}\0', 400, "JSON"), (b'{"jobs":[1]}', 400, "job 0"),
                               (json.dumps({"jobs": [good] * 11}).encode(), 400, "than 10 jobs"),
                               (json.dumps({"jobs": [good, dict(good, stacks=5)]}).encode(), 400, "job 1: stacks"),
                               (json.dumps(dict(good, memoryMap=[["p"]])).encode(), 400, "memoryMap"),
                               (json.dumps(dict(good, memoryMap=[["p" * 2000, "ab"]])).encode(), 400, "1024"),
                               (json.dumps(dict(good, stacks=[[[1, 1]]])).encode(), 400, "module index"),
                               (json.dumps(dict(good, stacks=[[[0, 1.5]]])).encode(), 400, "offset"),
                               (json.dumps(dict(good, stacks=[[[0, -2]]])).encode(), 400, "offset"),
                               (json.dumps(dict(good, stacks=[[[0, 1e300]]])).encode(), 400, "offset"),
                               (json.dumps(dict(good, stacks=[[[0, 1, 2]]])).encode(), 400, "frame"),
                               (json.dumps(dict(good, stacks=[[[0, 1]] * 100001])).encode(), 413, "100000"),
                               (b'{"jobs":[' + b"0," * 900000 + b"0]}", 413, "values"), (b" " * (3 << 20), 413, "larger")):
        got, headers, text = server.request("POST", "/symbolicate/v5", body, {"Content-Type": "application/json"})
        check(got == status and word in json.loads(text)["error"]["message"] and headers["Access-Control-Allow-Origin"] == "*",
              "%s…: %d naming %s" % (repr(body[:40])[1:], status, word), "%d %r" % (got, text[:200]))
    got, _, text = server.request("POST", "/symbolicate/v5?x=1", json.dumps(good))
    equal(got, 422, "an unknown parameter")
    equal(server.request("GET", "/symbolicate/v5")[1]["Allow"], "POST, OPTIONS", "what is allowed")
    equal(server.get("/healthz")[0], 200, "the server lives")


def test_speed():
    """As much as a client may ask at a time, and more."""
    server = serve()
    for name, count, want in (("chain_pie", 100000, 200), ("shapes_cc", 20000, 200), ("shapes_cc", 100000, 413)):
        path, id_ = programs[name]
        low, high = max(code(path), key=lambda r: r[1] - r[0])
        base = load_base(path)
        body = json.dumps({"memoryMap": [["s", id_]], "stacks": [[[0, low - base + i % (high - low)] for i in range(count)]]})
        begin = time.monotonic()
        status, _, text = server.request("POST", "/symbolicate/v5", body)
        took = time.monotonic() - begin
        check(status == want and took < 20 and (status == 413 or len(json.loads(text)["results"][0]["stacks"][0]) == count),
              "%s: %d frames in %.2f s: %d with %.1f MB" % (name, count, took, status, len(text) / 1e6), text[:300])
    server.stop()


run(test_like_llvm, test_offsets, test_shapes, test_refusals, test_speed)
