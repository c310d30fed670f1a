# SPDX-License-Identifier: Apache-2.0
"""What a module's table is made from: the best of its files whenever it comes, with the dwz file it borrows from and
its .dwo and .dwp files from wherever they lie; tables make room on the disk and come back; SIGKILL in the middle of
conversions. Every function, file and line is compared with llvm-symbolizer."""
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time

from harness import BUILD, WORK, Server, check, end, equal, free_port, note, run, skip, start, wait_for

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from otlp_writer import Request  # noqa: E402

LLVM = next((tool for tool in ("llvm-symbolizer-19", "llvm-symbolizer") if shutil.which(tool)), None)
# Of two kinds: llvm-dwp 19 does not come to an end with GCC's DWARF 5, dwp of binutils knows DWARF 4 only.
GCC_DWP = shutil.which("dwp")
CLANG_DWP = shutil.which("clang") and next((tool for tool in ("llvm-dwp-19", "llvm-dwp") if shutil.which(tool)), None)

SOURCE = """
#include <stdlib.h>
static inline __attribute__((always_inline)) int innermost(int x)
{
	return rand() + x;
}
static inline __attribute__((always_inline)) int middle(int x)
{
	return innermost(x) * 3;
}
__attribute__((noinline)) int outer(int x)
{
	return middle(x) + 1;
}
__attribute__((noinline)) int %(name)s_function(int x)
{
	return outer(x) - middle(x + 1);
}
int main(int argc, char **argv)
{
	return %(name)s_function(argc) + (argv ? 1 : 0);
}
"""


def path(name):
    return os.path.join(WORK, name)


def sh(command, where=None):
    return subprocess.run(command, shell=True, cwd=where or WORK, check=True, capture_output=True, text=True,
                          timeout=60).stdout


def compile_program(name, flags="", where=None, compiler="gcc"):
    with open(os.path.join(where or WORK, name + ".c"), "w") as file:
        file.write(SOURCE % {"name": name})
    sh("%s -g -O1 %s -c %s.c -o %s.o && %s -g -Wl,--build-id %s %s.o -o %s" % (
        compiler, flags, name, name, compiler, flags, name, name), where)
    return os.path.join(where or WORK, name)


def build_id(file):
    return sh("readelf -n %s" % file).split("Build ID: ")[1].split()[0]


def addresses(file):
    """Every fourth byte of this program's own functions, as nm has them."""
    found = []
    for line in sh("nm -S --defined-only %s" % file).splitlines():
        parts = line.split()
        if len(parts) == 4 and parts[2] in "tT" and (parts[3] in ("outer", "main") or "_function" in parts[3]):
            found += range(int(parts[0], 16), int(parts[0], 16) + int(parts[1], 16), 4)
    return found


def truth(file, at):
    """[[(function, file, line) …innermost first] …]"""
    done = subprocess.run([LLVM, "--output-style=JSON", "--inlines", "--no-demangle", "--obj=" + file],
                          input="".join("0x%x\n" % a for a in at), capture_output=True, text=True, check=True)
    answers = json.loads(done.stdout) if done.stdout.startswith("[") else \
        [json.loads(line) for line in done.stdout.splitlines()]
    return [[(s["FunctionName"], os.path.basename(s["FileName"]), s["Line"]) for s in answer["Symbol"]]
            for answer in answers]


def ours(server, name, id_, at):
    """The same of us, through the symbolication API; None: it has no symbols of it."""
    body = {"jobs": [{"memoryMap": [[name, id_]], "stacks": [[[0, a] for a in at]]}]}
    status, _, answer = server.request("POST", "/symbolicate/v5", json.dumps(body))
    if status != 200:
        raise RuntimeError("%d %s" % (status, answer[:300]))
    result = json.loads(answer)["results"][0]
    if not all(result["found_modules"].values()):
        return None
    chains = []
    for frame in result["stacks"][0]:
        chain = [(inline["function"], os.path.basename(inline.get("file", "")), inline.get("line", 0))
                 for inline in frame.get("inlines", [])]
        chain.append((frame.get("function", ""), os.path.basename(frame.get("file", "")), frame.get("line", 0)))
        chains.append(chain)
    return chains


def module(server, id_):
    for row in server.json("/api/v1/modules")["modules"]:
        if row["build_id"] == id_:
            return row
    return {}


def put(server, id_, file):
    return server.request("PUT", "/api/v1/modules/" + id_, open(file, "rb").read())[0]


def wait_module(server, id_, seconds=30, **fields):
    wait_for(lambda: all(module(server, id_).get(k) == v for k, v in fields.items()), seconds, 0.05)
    return module(server, id_)


def is_true(server, file, id_, text, plain=None):
    """Functions, files and lines are llvm-symbolizer's, with its inlined functions. plain: the same program in a form
    that llvm-symbolizer reads; it has no names for what is in a dwz file."""
    at = addresses(file)
    if not LLVM:
        skip("needs llvm-symbolizer: " + text)
        return
    got, want = ours(server, os.path.basename(file), id_, at), truth(plain or file, at)
    differing = [(hex(a), g, w) for a, g, w in zip(at, got or [], want) if g != w]
    check(got and not differing and any(len(chain) > 2 for chain in got), text,
          "%d of %d differ, first %s" % (len(differing), len(at), differing[:2]))


def profile(server, name, id_, at):
    """One sample at each address."""
    request = Request(BUILD)
    mapping = request.mapping(name, id_)
    block = request.profile(request.resource(**{"host.name": "h", "farflame.process": name}))
    for address in at:
        request.sample(block, [("native", mapping, address)], [1, 10**7])
    return server.post(request.bytes())[0]


def test_quality_counts():
    """A stripped file, one with .symtab, one with debug information: in that order, and then in the other."""
    file = compile_program("order", "-rdynamic")
    id_ = build_id(file)
    sh("strip -o order.stripped order; objcopy -g order order.symtab; objcopy --only-keep-debug order order.debug")
    server = Server(data="data-order", log="order.log")
    at = addresses(file)
    equal(profile(server, "order", id_, at), 200, "a profile of the program is taken")
    equal(put(server, id_, path("order.stripped")), 201, "a stripped file is new")
    row = wait_module(server, id_, quality="dynsym", state="symbols")
    equal(row.get("quality"), "dynsym", "its .dynsym has names")
    plain = [frames[-1] for frames, _ in server.folded() if frames[0] == "order"]
    check("main" in plain and "innermost" not in plain, "the flame graph has these names", plain)
    equal(put(server, id_, path("order.symtab")), 201, "the same program with .symtab is better")
    row = wait_module(server, id_, quality="symtab", state="symbols")
    check(row.get("quality") == "symtab" and ".symtab" in row.get("reason", ""), "and replaces it", row)
    equal(put(server, id_, path("order.debug")), 201, "its debug file is better")
    row = wait_module(server, id_, quality="dwarf", state="ready")
    check(row.get("quality") == "dwarf" and row.get("state") == "ready" and not row.get("missing"),
          "and replaces that", row)
    check(any(s["source"] == "upload" and s["answer"] == "used" and "debug information" in s["detail"]
              for s in row.get("sources", [])), "the sources say so", row.get("sources"))
    check(row["file_bytes"] > 0 and row["table_bytes"] > 0 and row["packed_bytes"] > 0 and row["ranges"] > 0 and
          row["samples"] == len(at) and row["unsymbolized"] == 0, "sizes and samples are told", row)
    is_true(server, file, id_, "names and lines are llvm-symbolizer's")
    stubs = re.findall(r"^([0-9a-f]+) <(\w+@plt)>:", sh("objdump -d order"), re.M)
    got = ours(server, "order", id_, [int(address, 16) for address, _ in stubs])
    equal([chain[-1][0] for chain in got], [name for _, name in stubs], "stubs, which are in the program alone, are objdump's")
    deeper = [frames[-1] for frames, _ in server.folded() if frames[0] == "order"]
    check("innermost" in deeper, "the flame graph of before has the inlined functions now", deeper)
    put(server, id_, path("order.stripped"))
    put(server, id_, path("order.symtab"))
    time.sleep(0.5)
    row = wait_module(server, id_, quality="dwarf", state="ready")
    equal((row["quality"], row["state"]), ("dwarf", "ready"), "worse files afterwards change nothing")
    server.kill()
    server.start()
    is_true(server, file, id_, "after SIGKILL and a new start they are the same")
    server.stop()


def test_names_first():
    """A large file, this server itself: names within moments of its arrival, lines after."""
    file = os.path.join(BUILD, "farflame-server")
    if not LLVM or ".debug_info" not in sh("readelf -SW %s" % file) or os.path.getsize(file) < 2 << 20:
        skip("needs llvm-symbolizer and a server built with debug information")
        return
    id_, at = build_id(file), int(sh("nm %s | sed -n 's/ T main$//p'" % file), 16)
    want = truth(file, [at])[0][-1]
    server = Server(data="data-first", log="first.log")
    begin, seen = time.monotonic(), []
    equal(put(server, id_, file), 201, "a large file is taken")
    while time.monotonic() - begin < 60 and not (seen and seen[-1][2]):
        got = ours(server, "farflame-server", id_, [at])
        if got and (not seen or seen[-1][1:] != got[0][-1][1:]):
            seen.append(got[0][-1])
            note("%.2f s: %s" % (time.monotonic() - begin, got[0][-1]))
    equal(seen, [(want[0], "", 0), want], "first its names alone, then with file and line")
    server.stop()


def dwz_pair():
    """Two programs that share a dwz file; False: no dwz here."""
    if not shutil.which("dwz"):
        return False
    if not os.path.exists(path("both.dwz")):
        compile_program("left")
        compile_program("right")
        sh("cp left left.plain; cp right right.plain; dwz -m both.dwz left right")
    return True


def test_dwz_file_comes_later():
    if not dwz_pair():
        skip("needs dwz")
        return
    id_, alt = build_id(path("left")), build_id(path("both.dwz"))
    server = Server(data="data-dwz", log="dwz.log")
    equal(put(server, id_, path("left")), 201, "a program that borrows from a dwz file is taken")
    row = wait_module(server, id_, state="ready")
    equal(row.get("missing"), ["alt"], "what is missing is said")
    check("dwz" in row.get("reason", ""), "in words too", row)
    server.kill()
    server.start()
    equal(put(server, alt, path("both.dwz")), 201, "the dwz file is taken under its own build-id, after a new start")
    row = wait_module(server, id_, missing=[])
    equal((row.get("missing"), row.get("state")), ([], "ready"), "and completes the other's table")
    is_true(server, path("left"), id_, "names and lines of the dwz'ed program are llvm-symbolizer's",
            path("left.plain"))
    server.stop()


def test_dwz_file_from_debuginfod():
    if not dwz_pair() or not shutil.which("debuginfod"):
        skip("needs dwz and debuginfod")
        return
    folder = path("served")
    os.makedirs(folder, exist_ok=True)
    sh("cp both.dwz %s; cp left %s" % (folder, folder))
    port, id_, alt = free_port(), build_id(path("left")), build_id(path("both.dwz"))
    daemon = start(["debuginfod", "-d", path("debuginfod.db"), "-p", str(port), "-F", folder, "-t", "0"],
                   "debuginfod.log")
    url = "http://127.0.0.1:%d" % port
    find = ["curl", "-fsS", "-o", "/dev/null", "%s/buildid/%s/debuginfo" % (url, alt)]
    if not check(wait_for(lambda: subprocess.run(find, capture_output=True).returncode == 0, 30),
                 "a real debuginfod serves the dwz file"):
        return
    server = Server("--debuginfod", url, data="data-dwz-asked", log="dwz-asked.log")
    equal(put(server, build_id(path("right")), path("right")), 201, "a program is uploaded, its dwz file is not")
    row = wait_module(server, build_id(path("right")), state="ready", missing=[])
    equal((row.get("state"), row.get("missing")), ("ready", []), "the server had it")
    is_true(server, path("right"), build_id(path("right")), "names and lines are llvm-symbolizer's",
            path("right.plain"))
    ours(server, "left", id_, [0x1000])
    row = wait_module(server, id_, state="ready", missing=[])
    check(row.get("state") == "ready" and row.get("missing") == [] and row.get("source") == url,
          "a program and its dwz file both come from the server", row)
    check(any(s["source"] == url and s["answer"] == "used" for s in row.get("sources", [])) and
          any(s["source"] == url and s["answer"] == "found" and "dwz" in s["detail"] for s in row.get("sources", [])),
          "what the server answered is told", row.get("sources"))
    server.stop()
    end(daemon)


def file_hash(file):
    """What stands for a build-id where there is none (the OTel profiler's htlhash)."""
    data = open(file, "rb").read()
    return hashlib.sha256(data[:4096] + data[-4096:] + len(data).to_bytes(8, "big")).digest()[:16].hex()


def test_debug_link():
    """Files without build-ids: the debug file is found by the name and checksum that the program says."""
    folder = path("linked")
    os.makedirs(folder)
    file = compile_program("linked", "-Wl,--build-id=none", folder)
    os.rename(file, path("linked.full"))
    sh("objcopy --only-keep-debug ../linked.full linked.debug; strip -o linked ../linked.full; "
       "objcopy --add-gnu-debuglink=linked.debug linked", folder)
    id_ = file_hash(file)
    server = Server("--symbol-dir", folder, data="data-linked", log="linked.log")
    ours(server, "linked", id_, [0x1000])
    row = wait_module(server, id_, state="ready")
    equal((row.get("state"), row.get("quality")), ("ready", "dwarf"), "a debug file is found by .gnu_debuglink")
    is_true(server, path("linked.full"), id_, "names and lines are llvm-symbolizer's")
    server.stop()
    with open(os.path.join(folder, "linked.debug"), "ab") as changed:
        changed.write(b"another build's")
    server = Server("--symbol-dir", folder, data="data-unlinked", log="unlinked.log")
    ours(server, "linked", id_, [0x1000])
    wait_for(lambda: module(server, id_).get("state") in ("failed", "missing", "symbols", "ready"), 30)
    row = module(server, id_)
    check(row.get("quality") != "dwarf" and row.get("state") != "ready", "not one with another checksum", row)
    server.stop()


def split_program(folder, name):
    """(compiler's kind, program, its .dwo, .dwp) in the folder."""
    os.makedirs(folder)
    if GCC_DWP:
        file = compile_program(name, "-gsplit-dwarf -gdwarf-4", folder)
        sh("%s -e %s -o %s.dwp" % (GCC_DWP, file, file), folder)
    else:
        file = compile_program(name, "-gsplit-dwarf -gdwarf-5", folder, "clang")
        sh("%s -e %s -o %s.dwp" % (CLANG_DWP, file, file), folder)
    return file


def test_split_files_lie_beside():
    """.dwo files of GCC and clang, DWARF 4 and 5, beside the program."""
    for compiler, version in (("gcc", 5), ("gcc", 4), ("clang", 5)):
        name = "dwo_%s_%d" % (compiler, version)
        if not shutil.which(compiler):
            skip("needs " + compiler)
            continue
        folder = path(name)
        os.makedirs(folder)
        file = compile_program(name, "-gsplit-dwarf -gdwarf-%d" % version, folder, compiler)
        id_ = build_id(file)
        equal(len([f for f in os.listdir(folder) if f.endswith(".dwo")]), 1, "%s has made a .dwo file" % compiler)
        server = Server("--symbol-dir", folder, data="data-" + name, log=name + ".log")
        ours(server, name, id_, [0x1000])
        row = wait_module(server, id_, state="ready", missing=[])
        equal((row.get("state"), row.get("missing")), ("ready", []), "it is found beside the program")
        is_true(server, file, id_, "%s, DWARF %d: names and lines are llvm-symbolizer's" % (compiler, version))
        server.stop()


def test_split_package_lies_beside():
    if not GCC_DWP and not CLANG_DWP:
        skip("needs dwp or llvm-dwp")
        return
    file = split_program(path("packed"), "packed")
    id_ = build_id(file)
    for name in os.listdir(path("packed")):
        if name.endswith(".dwo"):
            os.rename(os.path.join(path("packed"), name), path(name))
    server = Server("--symbol-dir", path("packed"), data="data-packed", log="packed.log")
    ours(server, "packed", id_, [0x1000])
    row = wait_module(server, id_, state="ready", missing=[])
    equal((row.get("state"), row.get("missing")), ("ready", []), "a .dwp file is found beside the program")
    is_true(server, file, id_, "names and lines of the .dwp file are llvm-symbolizer's")
    server.stop()


def test_split_package_uploaded_later():
    if not GCC_DWP and not CLANG_DWP:
        skip("needs dwp or llvm-dwp")
        return
    file = split_program(path("late"), "late")
    id_ = build_id(file)
    server = Server(data="data-late", log="late.log")
    equal(put(server, id_, file), 201, "a program with split debug information is taken")
    row = wait_module(server, id_, missing=["dwo"])
    equal(row.get("missing"), ["dwo"], "that its .dwo files are missing is said")
    check(".dwo" in row.get("reason", "") and "inlined" in row.get("reason", ""), "and what it costs", row)
    equal(put(server, id_, file + ".dwp"), 201, "its .dwp file is taken under the same build-id")
    row = wait_module(server, id_, missing=[])
    equal(row.get("missing"), [], "and completes its table")
    is_true(server, file, id_, "names and lines are llvm-symbolizer's")
    server.stop()


def test_disk_limit():
    """Tables that take more than --symbol-disk: the least used go, and come back when they are asked for."""
    files = [compile_program("disk%d" % i) for i in range(6)]
    ids = [build_id(file) for file in files]
    server = Server("--symbol-disk", "3k", data="data-disk", log="disk.log")
    for id_, file in zip(ids, files):
        equal(put(server, id_, file), 201, "%s is taken" % os.path.basename(file))
        wait_module(server, id_, state="ready")
    rows = wait_for(lambda: [module(server, i) for i in ids] if
                    sum(module(server, i).get("packed_bytes", 0) for i in ids) <= 3 << 10 else None, 20)
    rows = rows or [module(server, i) for i in ids]
    kept = sum(row.get("packed_bytes", 0) for row in rows)
    check(0 < kept <= 3 << 10, "tables on disk stay within the limit", "%d bytes" % kept)
    gone = [i for i, row in enumerate(rows) if not row.get("packed_bytes")]
    check(gone and 5 not in gone, "the least used ones are gone", gone)
    check(all("--symbol-disk" in rows[i].get("reason", "") for i in gone), "and say why", [rows[i] for i in gone][:1])
    server.kill()
    server.start()
    first = gone[0] if gone else 0
    back = wait_for(lambda: ours(server, "disk", ids[first], addresses(files[first])), 30)
    check(back and back == truth(files[first], addresses(files[first])),
          "one that is asked for is made again from its upload, after a new start too", module(server, ids[first]))
    server.stop()


def test_killed_while_converting():
    """SIGKILL at any moment: what was queued is taken up, and there are no half tables."""
    names = [name for name in ("libc.so.6", "libstdc++.so.6", "libm.so.6", "libcrypto.so.3")
             if os.path.exists("/lib/x86_64-linux-gnu/" + name) or os.path.exists("/usr/lib/x86_64-linux-gnu/" + name)]
    files = [compile_program("killed%d" % i) for i in range(3)]
    ids = [build_id(file) for file in files]
    large = [os.path.realpath(os.path.join("/usr/lib/x86_64-linux-gnu", name)) for name in names]
    server = Server("--symbol-workers", "2", data="data-killed", log="killed.log")
    for file in large:
        put(server, build_id(file), file)
    for id_, file in zip(ids, files):
        equal(put(server, id_, file), 201, "%s is taken" % os.path.basename(file))
    for pause in (0, 0.02, 0.05, 0.1, 0.2):
        time.sleep(pause)
        server.kill()
        server.start()
    rows = [wait_module(server, id_, state="ready") for id_ in ids]
    equal([row.get("state") for row in rows], ["ready"] * 3, "after five times SIGKILL all are converted")
    for file, id_ in zip(files, ids):
        is_true(server, file, id_, "%s: names and lines are llvm-symbolizer's" % os.path.basename(file))
    states = {}
    wait_for(lambda: all(module(server, build_id(file)).get("state") in ("symbols", "ready", "failed")
                         for file in large), 30)
    for file in large:
        row = module(server, build_id(file))
        states[os.path.basename(file)] = (row.get("state"), row.get("quality"))
    check(all(state in ("symbols", "ready") for state, _ in states.values()), "and the large ones too", states)
    log = open(path("killed.log"), errors="replace").read()
    check("not loaded" not in log and "damaged" not in log, "no table was damaged", log[-500:])
    server.stop()


if __name__ == "__main__":
    if not shutil.which("gcc"):
        from harness import skip_all
        skip_all("needs gcc")
    note("llvm-symbolizer: %s, dwp: %s, %s" % (LLVM, GCC_DWP, CLANG_DWP))
    run(test_quality_counts, test_names_first, test_dwz_file_comes_later, test_dwz_file_from_debuginfod,
        test_debug_link, test_split_files_lie_beside, test_split_package_lies_beside, test_split_package_uploaded_later,
        test_disk_limit, test_killed_while_converting)
