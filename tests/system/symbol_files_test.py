# SPDX-License-Identifier: Apache-2.0
"""--symbol-dir: debug files in packages of every kind, in trees, beside programs. Names for addresses are addr2line's,
the files are those that Debian's own debuginfod finds in the same directory, byte for byte. In a network namespace
of its own, because debuginfod listens on every address it finds."""
import http.client
import json
import os
import shutil
import sqlite3
import subprocess
import sys

if os.geteuid() == 0 and os.environ.get("FARFLAME_NETNS") != "1" and shutil.which("unshare"):
    os.environ["FARFLAME_NETNS"] = "1"
    os.execvp("unshare", ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh",
                          sys.executable, "-B"] + sys.argv)

from harness import WORK, Server, check, end, equal, free_port, note, run, skip, start, wait_for  # noqa: E402

SOURCE = """
#include <stdlib.h>
static inline __attribute__((always_inline)) int leaf_NAME(int x) { return rand() + x * NUMBER; }
static inline __attribute__((always_inline)) int branch_NAME(int x)
{
	return leaf_NAME(x) * 3;
}
__attribute__((noinline)) int trunk_NAME(int x)
{
	int y = branch_NAME(x);
	return y + branch_NAME(y);
}
__attribute__((noinline)) int root_NAME(int x) { return trunk_NAME(x) + 1; }
"""
CONTROL = "Package: %s\nVersion: 1\nArchitecture: all\nMaintainer: nobody <nobody@localhost>\nDescription: a test\n"
SPEC = """
Name: %s
Version: 1
Release: 1
Summary: a test
License: none
BuildArch: noarch
%%description
a test
%%install
cp -r %s/. %%{buildroot}/
%%files
/usr
"""
folder = os.path.join(WORK, "symbols")
libraries = {}  # name → (unstripped path, build-id)


def sh(*arguments, **more):
    return subprocess.run(arguments, capture_output=True, text=True, **more)


def build_id(path):
    return sh("readelf", "-n", path, check=True).stdout.split("Build ID: ")[1].split()[0]


def library(name, number):
    """A library; its stripped form and its debug file in a tree as dh_strip leaves it."""
    source, whole = os.path.join(WORK, name + ".c"), os.path.join(WORK, "lib%s.so" % name)
    open(source, "w").write(SOURCE.replace("NAME", name).replace("NUMBER", str(number)))
    sh("cc", "-g", "-O2", "-fPIC", "-shared", "-Wl,--build-id", source, "-o", whole, check=True)
    identity = build_id(whole)
    root = os.path.join(WORK, "root-" + name)
    place = os.path.join(root, "usr/lib/debug/.build-id", identity[:2])
    os.makedirs(place)
    os.makedirs(root + "/usr/lib", exist_ok=True)
    sh("objcopy", "--only-keep-debug", "--compress-debug-sections", whole,
       os.path.join(place, identity[2:] + ".debug"), check=True)
    sh("strip", "-o", "%s/usr/lib/lib%s.so" % (root, name), whole, check=True)
    libraries[name] = (whole, identity)
    return root


def deb(name, number, compression):
    root = library(name, number)
    os.makedirs(root + "/DEBIAN")
    open(root + "/DEBIAN/control", "w").write(CONTROL % name)
    sh("dpkg-deb", "-b", "-Z" + compression, root, os.path.join(folder, "deep", "er", name + ".deb"), check=True)


def rpm(name, number, payload):
    root = library(name, number)
    spec = os.path.join(WORK, name + ".spec")
    open(spec, "w").write(SPEC % (name, root))
    define = {"_topdir": os.path.join(WORK, "rpmbuild"), "_binary_payload": payload, "__os_install_post": "%{nil}",
              "_build_id_links": "none", "debug_package": "%{nil}", "_rpmdir": folder,
              "_binaries_in_noarch_packages_terminate_build": "0", "_rpmfilename": name + ".rpm"}
    made = sh("rpmbuild", "-bb", *[word for key, value in define.items() for word in ("--define", key + " " + value)],
              spec)
    if made.returncode:
        raise RuntimeError(made.stderr[-1000:])


def addresses(path):
    """Every fourth address of every function of ours."""
    out = []
    for line in sh("nm", "-S", "--defined-only", path, check=True).stdout.splitlines():
        parts = line.split()
        if len(parts) == 4 and parts[2] in "tT" and parts[3].startswith(("trunk_", "root_")):
            out += range(int(parts[0], 16), int(parts[0], 16) + int(parts[1], 16), 4)
    return out


def from_addr2line(path, wanted):
    """[[(function, line)…innermost first]…]"""
    text = sh("addr2line", "-afie", path, *["0x%x" % a for a in wanted], check=True).stdout
    chains = []
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("0x"):
            chains.append([])
        else:
            where = next(lines)
            chains[-1].append((line, int(where.split(" ")[0].rsplit(":", 1)[1].replace("?", "0"))))
    return chains


def from_server(server, name, wanted):
    whole, identity = libraries[name]
    body = json.dumps({"memoryMap": [[os.path.basename(whole), identity]], "stacks": [[[0, a] for a in wanted]]})
    status, _, answer = server.request("POST", "/symbolicate/v5", body.encode())
    if status != 200:
        raise RuntimeError("v5: %d %s" % (status, answer[:300]))
    result = json.loads(answer)["results"][0]
    chains = []
    for frame in result["stacks"][0]:
        chain = [(i.get("function"), i.get("line", 0)) for i in frame.get("inlines", [])]
        chains.append(chain + [(frame.get("function"), frame.get("line", 0))])
    return result["found_modules"].get("%s/%s" % (os.path.basename(whole), identity)), chains


def state_of(server, identity):
    for row in server.json("/api/v1/modules")["modules"]:
        if row["build_id"] == identity:
            return row
    return {}


def agree(server, name, what):
    whole, identity = libraries[name]
    wanted = addresses(whole)
    found, chains = None, []

    def attempt():
        nonlocal found, chains
        found, chains = from_server(server, name, wanted)
        return found and state_of(server, identity).get("state") == "ready"

    wait_for(attempt, 30, 0.3)
    truth = from_addr2line(whole, wanted)
    wrong = [(hex(a), t, c) for a, t, c in zip(wanted, truth, chains) if t != c]
    check(found and len(chains) == len(truth) > 10 and not wrong, "%s: %d addresses named as addr2line does" %
          (what, len(truth)), wrong[:3] or state_of(server, identity))
    check(any(len(t) == 3 for t in truth), "%s: with inlined functions" % what)
    row = state_of(server, identity)
    equal(row.get("source"), "directory", "%s: found in the directory" % what)


def progress(server):
    return server.json("/api/v1/modules")["symbol_dirs"]


def wait_read(server):
    return wait_for(lambda: progress(server)["first_pass_done"], 60)


def test_packages():
    os.makedirs(os.path.join(folder, "deep", "er"))
    kinds = {"packedxz": "xz", "packedzstd": "zstd", "packedgzip": "gzip"}
    for number, (name, compression) in enumerate(kinds.items(), 3):
        deb(name, number, compression)
    payloads = {"rpmzstd": "w19.zstdio", "rpmxz": "w6.xzdio", "rpmgzip": "w9.gzdio"}
    if not shutil.which("rpmbuild"):
        skip("needs rpmbuild")
        payloads = {}
    for number, (name, payload) in enumerate(payloads.items(), 13):
        rpm(name, number, payload)
    os.rename(os.path.join(folder, "deep/er/packedgzip.deb"), os.path.join(folder, "packedgzip.ddeb"))
    root = library("tree", 23)  # a tree without a package, with a link as some distributions have
    shutil.copytree(root + "/usr", os.path.join(folder, "usr"))
    open(os.path.join(folder, "cut.deb"), "wb").write(open(os.path.join(folder, "packedgzip.ddeb"), "rb").read()[:900])
    open(os.path.join(folder, "page.rpm"), "w").write("<html>not found</html>")
    server = Server("--symbol-dir", folder, data="packages", log="packages.log")
    check(wait_read(server), "the directory is read")
    now = progress(server)
    note(json.dumps(now))
    equal((now["packages"], now["packages_refused"], now["packages_left"]),
          (len(kinds) + len(payloads) + 2, 2, 0), "packages are counted, and those that are none")
    equal(now["members"], 2 * (len(kinds) + len(payloads)), "every package has its two ELF files")
    check("cut.deb" in now["last_refusal"] or "page.rpm" in now["last_refusal"], "a refusal has its reason", now)
    metrics = server.get("/metrics")[2].decode()
    check("farflame_server_symbol_dir_packages_refused 2\n" in metrics, "and is on /metrics")
    for name in list(kinds) + list(payloads) + ["tree"]:
        agree(server, name, name)
    deb("late", 31, "xz")
    begun = wait_for(lambda: from_server(server, "late", [0])[0] is not None, 5)
    check(begun, "a module that is nowhere is asked for")
    agree(server, "late", "a package that came later")
    server.stop()
    server.start()
    wait_read(server)
    check("farflame_server_package_bytes_read_total 0\n" in server.get("/metrics")[2].decode(),
          "after a restart no package is read again")
    server.stop()


def fetch(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def build_ids_of_debuginfod(database):
    """[(build-id, has debug information, is executable)]"""
    connection = sqlite3.connect("file:%s?mode=ro" % database, uri=True)
    try:
        tables = [row[0] for row in connection.execute("select name from sqlite_master where type = 'table'")]
        prefix = [t for t in tables if t.endswith("_buildids")][0][:-len("_buildids")]
        return connection.execute(
            "select distinct b.hex, d.debuginfo_p, d.executable_p from {0}_buildids b join (select buildid, "
            "debuginfo_p, executable_p from {0}_f_de union select buildid, debuginfo_p, executable_p from {0}_r_de) d "
            "on d.buildid = b.id".format(prefix)).fetchall()
    finally:
        connection.close()


def test_debuginfod():
    """What debuginfod finds in the directory, we find, and the bytes are the same."""
    if not shutil.which("debuginfod"):
        skip("needs debuginfod")
        return
    port, database = free_port(), os.path.join(WORK, "debuginfod.db")
    daemon = start(["debuginfod", "-d", database, "-p", str(port), "-t", "0", "-F", "-R",
                    "-Z", ".deb=dpkg-deb --fsys-tarfile", "-Z", ".ddeb=dpkg-deb --fsys-tarfile", folder], "debuginfod.log")

    def has_all():
        try:
            metrics = fetch(port, "/metrics")[1].decode()
            return 'thread_work_pending{role="scan"} 0' in metrics and 'groom' in metrics and \
                len(build_ids_of_debuginfod(database)) >= len(libraries)
        except (OSError, sqlite3.Error, IndexError):
            return False

    wait_for(has_all, 30, 0.5)
    known = build_ids_of_debuginfod(database)
    server = Server("--symbol-dir", folder, data="packages", log="compared.log")
    wait_read(server)
    different, bytes_compared = [], 0
    for identity, debug, executable in known:
        for kind in ["debuginfo"] * debug + ["executable"] * executable:
            path = "/buildid/%s/%s" % (identity, kind)
            theirs, ours = fetch(port, path), server.request("GET", path)
            if theirs[0] != 200 or ours[0] != 200 or theirs[1] != ours[2]:
                different.append((path, theirs[0], len(theirs[1]), ours[0], len(ours[2])))
            bytes_compared += len(theirs[1])
    check(len(known) >= len(libraries) and not different,
          "all that debuginfod finds is served: %d files, %d KB, the same bytes" % (len(known), bytes_compared >> 10),
          different[:3] or [len(known), len(libraries)])
    server.stop()
    end(daemon)


run(test_packages, test_debuginfod)
