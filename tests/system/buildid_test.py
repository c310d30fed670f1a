# SPDX-License-Identifier: Apache-2.0
"""The debuginfod protocol, served: the same bytes as Debian's own debuginfod has for the same directory, and
what gdb, elfutils and debuginfod-find make of it. In a network namespace of its own, because debuginfod listens
on every address it finds."""
import http.client
import os
import re
import shutil
import subprocess
import sys
import urllib.parse

if os.geteuid() == 0 and os.environ.get("FARFLAME_NETNS") != "1" and shutil.which("unshare"):
    os.environ["FARFLAME_NETNS"] = "1"
    os.execvp("unshare", ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh",
                          sys.executable, "-B"] + sys.argv)

from harness import WORK, Server, check, end, equal, free_port, note, run, skip, start, wait_for  # noqa: E402

state = {}
SOURCE = """
int counter;
static inline __attribute__((always_inline)) int leaf(int x) { return x * 3 + counter; }
__attribute__((noinline)) int middle(int x) { return leaf(x) + 1; }
int main(int argc, char **argv) { return middle(argc); }
"""
MIB = 1 << 20


def sh(*arguments, **more):
    return subprocess.run(arguments, capture_output=True, text=True, **more)


def build_id(path):
    return sh("readelf", "-n", path, check=True).stdout.split("Build ID: ")[1].split()[0]


def build():
    """A stripped program and its debug file with compressed sections, and one file that is both."""
    folder = state["folder"] = os.path.join(WORK, "files")
    os.makedirs(folder)
    source, whole = os.path.join(WORK, "program.c"), os.path.join(WORK, "program")
    open(source, "w").write(SOURCE)
    sh("cc", "-g", "-O1", source, "-o", whole, check=True)
    state["id"], state["whole"] = build_id(whole), whole
    debug, stripped = os.path.join(folder, "program with space.debug"), os.path.join(folder, "program")
    sh("objcopy", "--only-keep-debug", "--compress-debug-sections", whole, debug, check=True)
    sh("strip", "-o", stripped, whole, check=True)
    state["debug"], state["stripped"] = debug, stripped
    both = state["both"] = os.path.join(folder, "both")
    sh("cc", "-g", "-O1", "-DOTHER", "-Wl,--build-id=0x" + "5a" * 20, source, "-o", both, check=True)
    state["both_id"] = build_id(both)


def sections(path):
    """Names of what has bytes in the file."""
    rows = re.findall(r"^ *\[ *\d+\] (\S+) +(\S+)", sh("readelf", "-SW", path, check=True).stdout, re.M)
    return {name for name, kind in rows if kind not in ("NULL", "NOBITS")}


def ask(port, method, path, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def start_debuginfod(*arguments):
    port = free_port()
    daemon = start(["debuginfod", "-d", "%s/debuginfod-%d.db" % (WORK, port), "-p", str(port), "-t", "0", *arguments],
                   "debuginfod.log")
    return daemon, port


def served(port, build_id_, kind="debuginfo"):
    try:
        return ask(port, "GET", "/buildid/%s/%s" % (build_id_, kind))[0] == 200
    except OSError:
        return False


def test_like_debuginfod():
    build()
    if not shutil.which("debuginfod"):
        skip("needs debuginfod")
        return
    daemon, port = start_debuginfod("-F", state["folder"])
    server = Server("--symbol-dir", state["folder"], data="like", log="like.log")
    for one, kind in ((state["id"], "debuginfo"), (state["id"], "executable"), (state["both_id"], "debuginfo")):
        check(wait_for(lambda: served(port, one, kind) and served(server.port, one, kind), 30), "both have it")
    names = sections(state["debug"]) | sections(state["stripped"]) | {".bss", ".nothing", ".text/x"}
    asked = different = 0
    for one in (state["id"], state["both_id"]):
        for kind in ["debuginfo", "executable"] + ["section/" + name for name in sorted(names)]:
            path = "/buildid/%s/%s" % (one, kind)
            theirs, ours = ask(port, "GET", path), ask(server.port, "GET", path)
            same = theirs[0] == ours[0] and (theirs[0] != 200 or (
                theirs[2] == ours[2] and all(theirs[1][name] == ours[1][name] for name in
                                             ("X-DEBUGINFOD-SIZE", "Content-Type", "Content-Length"))))
            asked += 1
            if not same:
                different += 1
                note("%s: %s %d bytes, here %s %d bytes" % (kind, theirs[0], len(theirs[2]), ours[0], len(ours[2])))
    check(asked > 50 and not different, "%d files and sections: status, size and bytes as debuginfod's" % asked)
    theirs, ours = (ask(p, "GET", "/buildid/%s/executable" % state["id"])[1] for p in (port, server.port))
    equal(ours["X-DEBUGINFOD-FILE"], theirs["X-DEBUGINFOD-FILE"], "the file's name")
    check(not re.search(r"[^!-~]", ask(server.port, "GET", "/buildid/%s/debuginfo" % state["id"])[1]["X-DEBUGINFOD-FILE"]),
          "one with a space has none in the header")
    for path, limit in (("debuginfo", 1000), ("debuginfo", 10 * MIB), ("section/.text", 10)):
        headers = {"X-DEBUGINFOD-MAXSIZE": str(limit)}
        got = [ask(p, "GET", "/buildid/%s/%s" % (state["id"], path), headers)[0] for p in (port, server.port)]
        equal(got[1], got[0], "X-DEBUGINFOD-MAXSIZE: %d" % limit)
    end(daemon)
    state["server"] = server
    requests(server)
    clients(server)
    server.stop()


def requests(server):
    """What the protocol leaves to HTTP."""
    path, want = "/buildid/%s/debuginfo" % state["id"], open(state["debug"], "rb").read()
    status, headers, body = ask(server.port, "HEAD", path)
    equal((status, int(headers["Content-Length"]), body), (200, len(want), b""), "HEAD")
    check(ask(server.port, "GET", path.replace(state["id"], state["id"].upper()))[2] == want, "upper-case digits")
    for text, start_, stop in (("0-0", 0, 1), ("100-", 100, None), ("-7", -7, None), ("5-99", 5, 100)):
        status, headers, body = ask(server.port, "GET", path, {"Range": "bytes=" + text})
        equal((status, body), (206, want[start_:stop]), "bytes=%s" % text)
    status, headers, _ = ask(server.port, "GET", path, {"Range": "bytes=%d-" % len(want)})
    equal((status, headers["Content-Range"]), (416, "bytes */%d" % len(want)), "a range outside")
    tag = ask(server.port, "HEAD", path)[1]["ETag"]
    equal(ask(server.port, "GET", path, {"If-None-Match": tag})[0], 304, "what the client has is not sent again")
    check(ask(server.port, "HEAD", path.replace("debuginfo", "section/.debug_info"))[1]["ETag"] != tag, "a section has another tag")
    half = os.path.join(WORK, "half")
    open(half, "wb").write(want[:1000])
    sh("curl", "-fsS", "-C", "-", "-o", half, "http://127.0.0.1:%d%s" % (server.port, path), check=True)
    check(open(half, "rb").read() == want, "curl continues a download")
    for wrong, status, word in (("/buildid/xyz/debuginfo", 400, "build-id"), ("/buildid/" + "ab" * 20 + "/debuginfo", 404, "uploaded"),
                                ("/buildid/%s/source//usr/src/x.c" % state["id"], 404, "--sources is off"),
                                ("/buildid/%s/section/.no" % state["id"], 404, ".no"), ("/buildid/" + "ab" * 65 + "/executable", 400, "64 bytes")):
        got, _, body = ask(server.port, "GET", wrong)
        check(got == status and word in body.decode(), "%s: %d and a sentence" % (wrong[:60], status), body)


def clients(server):
    environment = dict(os.environ, DEBUGINFOD_URLS="http://127.0.0.1:%d" % server.port,
                       DEBUGINFOD_CACHE_PATH=os.path.join(WORK, "client-cache"))
    lonely = os.path.join(WORK, "lonely")
    os.makedirs(lonely, exist_ok=True)
    program = shutil.copy(state["stripped"], os.path.join(lonely, "program"))
    if shutil.which("debuginfod-find"):
        for kind, want in (("debuginfo", state["debug"]), ("executable", state["stripped"])):
            path = sh("debuginfod-find", kind, state["id"], env=environment).stdout.strip()
            check(path and open(path, "rb").read() == open(want, "rb").read(), "debuginfod-find %s" % kind, path)
        path = sh("debuginfod-find", "section", state["id"], ".text", env=environment).stdout.strip()
        text = os.path.join(WORK, "text")
        sh("objcopy", "-O", "binary", "-j", ".text", state["whole"], text, check=True)
        check(path and open(path, "rb").read() == open(text, "rb").read(), "debuginfod-find section", path)
        done = sh("debuginfod-find", "debuginfo", "ab" * 20, env=environment)
        check(done.returncode != 0 and "No such file" in done.stderr, "what is not there is not there", done.stderr)
    if shutil.which("gdb"):
        text = sh("gdb", "-nx", "-batch", "-iex", "set debuginfod enabled on", "-ex", "info line middle",
                  "-ex", "info address leaf", program, env=environment).stdout
        check("program.c" in text and "<middle>" in text, "gdb knows the lines of a stripped program", text)
    if shutil.which("eu-addr2line"):
        address = [line.split()[0] for line in sh("nm", state["whole"], check=True).stdout.splitlines()
                   if line.endswith(" T middle")][0]
        text = sh("eu-addr2line", "-f", "-e", program, "0x" + address, env=environment).stdout
        check("middle" in text and "program.c:" in text, "eu-addr2line too", text)


def test_uploads():
    """What was sent can be had again; the better file of two; memory does not grow with a file's size."""
    server = Server(data="uploads", log="uploads.log")
    path = "/api/v1/modules/" + state["id"]
    equal(server.request("PUT", path, open(state["stripped"], "rb").read())[0], 201, "the executable is uploaded")
    check(ask(server.port, "GET", "/buildid/%s/executable" % state["id"])[2] == open(state["stripped"], "rb").read(),
          "and served")
    status, _, body = ask(server.port, "GET", "/buildid/%s/debuginfo" % state["id"])
    check(status == 404 and b"executable" in body, "there is no debug file of it", body)
    equal(server.request("PUT", path, open(state["debug"], "rb").read())[0], 201, "the debug file is uploaded")
    status, headers, body = ask(server.port, "GET", "/buildid/%s/debuginfo" % state["id"])
    check(status == 200 and body == open(state["debug"], "rb").read(), "and served", status)
    large = os.path.join(WORK, "large")
    shutil.copy(state["both"], large)
    os.truncate(large, 400 * MIB)
    folder = os.path.join(WORK, "large-files")
    os.makedirs(folder)
    shutil.move(large, folder)
    server.stop()
    server = Server("--symbol-dir", folder, data="large", log="large.log")
    check(wait_for(lambda: ask(server.port, "HEAD", "/buildid/%s/debuginfo" % state["both_id"])[0] == 200, 20), "a large file")
    before = memory(server)
    for _ in range(3):
        got = sh("curl", "-fsS", "-o", "/dev/null", "-w", "%{size_download} %{time_total}",
                 "http://127.0.0.1:%d/buildid/%s/debuginfo" % (server.port, state["both_id"]), check=True).stdout.split()
        equal(int(got[0]), 400 * MIB, "arrives whole, in %s s" % got[1])
    grown = memory(server) - before
    check(grown < 16 * MIB, "through %.1f MB of memory" % (grown / MIB), grown)
    equal(server.get("/healthz")[0], 200, "the server lives")
    server.stop()


def memory(server):
    """Most that it had at a time."""
    text = open("/proc/%d/status" % server.process.pid).read()
    return int(text.split("VmHWM:")[1].split()[0]) * 1024


# --- sources ---

def named(names):
    """A program whose debug information names those files, by a function in each; its own path and build-id."""
    folder = state["sources"]
    text = "".join('#line 1 "%s"\n__attribute__((noinline)) int f%d(int x) { return x * %d; }\n' % (name, i, i + 3)
                   for i, name in enumerate(names))
    source, program = os.path.join(folder, "named.c"), os.path.join(WORK, "named")
    open(source, "w").write(text + "int main(int argc, char **argv) { return %s; }\n" % " + ".join("f%d(argc)" % i for i in range(len(names))))
    sh("cc", "-g", "-O1", source, "-o", program, check=True)
    return program, build_id(program)


def make_sources():
    """A folder of sources with what must not be served from it."""
    folder = state["sources"] = os.path.join(WORK, "sources")
    outside = state["outside"] = os.path.join(WORK, "outside.c")
    os.makedirs(os.path.join(folder, "deep"))
    files = {"good.c": "good\n", "deep/with space+ü.c": "deep\n", "unnamed.c": "unnamed\n", "private.c": "private\n"}
    for name, text in files.items():
        open(os.path.join(folder, name), "w").write(text)
    open(outside, "w").write("outside\n")
    os.chmod(os.path.join(folder, "private.c"), 0o600)
    os.symlink(outside, os.path.join(folder, "escapes.c"))
    os.symlink("good.c", os.path.join(folder, "linked.c"))
    os.mkfifo(os.path.join(folder, "fifo.c"))
    os.makedirs(os.path.join(folder, "folder.c"))
    with open(os.path.join(folder, "large.c"), "w") as large:
        large.truncate(65 * MIB)
    for name, mode in (("closed", 0o700), ("passage", 0o711), ("closed/below", 0o755)):
        os.makedirs(os.path.join(folder, name))
        open(os.path.join(folder, name, "inner.c"), "w").write("inner\n")
        os.chmod(os.path.join(folder, name, "inner.c"), 0o644)
        os.chmod(os.path.join(folder, name), mode)
    os.symlink("closed/below/inner.c", os.path.join(folder, "leads-in.c"))
    names = [os.path.join(folder, name) for name in ("closed/inner.c", "passage/inner.c", "closed/below/inner.c", "leads-in.c", "good.c", "deep/with space+ü.c", "private.c", "escapes.c", "linked.c", "fifo.c",
                                                     "folder.c", "large.c", "gone.c", "deep/../deep/../good.c")]
    return named(names + [outside, "/etc/shadow", "/etc/hostname", "/proc/self/environ", "/dev/zero"])


def source(server, id_, path):
    status, _, body = ask(server.port, "GET", "/buildid/%s/source/%s" % (id_, urllib.parse.quote(path)))
    return body.decode() if status == 200 else status


def as_nobody(path):
    """What a stranger on this machine reads there; 404: nothing."""
    done = subprocess.run(["cat", path], user=65534, group=65534, extra_groups=[], capture_output=True, check=False)
    return done.stdout.decode() if done.returncode == 0 else 404


def test_sources():
    """Only what debug information names, below the directories given, or what everybody may read."""
    program, id_ = make_sources()
    folder, outside = state["sources"], state["outside"]
    off = Server(data="off", log="off.log")
    equal(off.request("PUT", "/api/v1/modules/" + id_, open(program, "rb").read())[0], 201, "a program is uploaded")
    equal(source(off, id_, folder + "/good.c"), 404, "sources are off where nobody wants them")
    off.stop()
    modes = {"local": Server("--sources", "local", "--source-dir", folder, data="off", log="local.log"),
             "all": Server("--sources", "all", data="all", log="all.log")}
    equal(modes["all"].request("PUT", "/api/v1/modules/" + id_, open(program, "rb").read())[0], 201, "the same to another one")
    hostname = open("/etc/hostname").read() if os.path.exists("/etc/hostname") else 404
    rows = (("/good.c", "good\n", "good\n"), ("/deep/with space+ü.c", "deep\n", "deep\n"), ("/linked.c", "good\n", "good\n"),
            ("/./deep//../good.c", "good\n", "good\n"), ("/unnamed.c", 404, 404), ("/private.c", 404, 404), ("/escapes.c", 404, 404),
            ("/fifo.c", 404, 404), ("/folder.c", 404, 404), ("/large.c", 422, 422), ("/gone.c", 404, 404), ("/../sources/good.c", "good\n", "good\n"),
            ("/" + "../" * 40 + "etc/hostname", 404, 404), ("/", 404, 404))
    inside = [path for path, _, everywhere in rows if everywhere not in (404, 422)]
    if any(as_nobody(folder + path) == 404 for path in inside):
        skip("nobody may search the folders above this build")
        for server in modes.values():
            server.stop()
        return
    for path in ("/closed/inner.c", "/closed/below/inner.c", "/leads-in.c", "/passage/inner.c"):
        want = as_nobody(folder + path)
        check(want == ("inner\n" if "passage" in path else 404), "a stranger reads what he should", (path, want))
        equal([source(server, id_, folder + path) for server in modes.values()], [want, want], "%s, local and all: as a stranger reads it" % path)
    for path, *want in rows:
        equal([source(server, id_, folder + path) for server in modes.values()], want, "%s, local and all" % path[:40])
    for path, *want in ((outside, 404, "outside\n"), ("/etc/shadow", 404, 404), ("/etc/hostname", 404, hostname),
                        ("/proc/self/environ", 404, 404), ("/dev/zero", 404, 404)):
        equal([source(server, id_, path) for server in modes.values()], want, "%s, local and all" % path)
    equal(source(modes["all"], "cd" * 20, folder + "/good.c"), 404, "of a build-id that nobody knows nothing")
    status, headers, body = ask(modes["local"].port, "GET", "/buildid/%s/source%s/good.c" % (id_, folder), {"Range": "bytes=1-2"})
    equal((status, body, headers["X-DEBUGINFOD-SIZE"]), (206, b"oo", "5"), "in parts, too")
    environment = dict(os.environ, DEBUGINFOD_URLS=modes["local"].url, DEBUGINFOD_CACHE_PATH=os.path.join(WORK, "source-cache"))
    if shutil.which("debuginfod-find"):
        for name in ("/good.c", "/deep/with space+ü.c"):
            path = sh("debuginfod-find", "source", id_, folder + name, env=environment).stdout.strip()
            check(path and open(path).read() == open(folder + name).read(), "debuginfod-find source %s" % name, path)
    for server in modes.values():
        server.stop()
    gdb_lists()


def gdb_lists():
    """gdb, which does not see the sources, lists them; of a program that lies below --symbol-dir beside its sources."""
    tree = os.path.join(WORK, "tree-of-a-build")
    os.makedirs(tree)
    text, whole, lonely = os.path.join(tree, "program.c"), os.path.join(tree, "program"), os.path.join(WORK, "stripped-program")
    open(text, "w").write(SOURCE)
    sh("cc", "-g", "-O1", text, "-o", whole, check=True)
    sh("strip", "-o", lonely, whole, check=True)
    os.chmod(tree, 0o700)  # who names it may have meant it
    server = Server("--sources", "local", "--symbol-dir", tree, data="tree", log="tree.log")
    check(wait_for(lambda: served(server.port, build_id(whole)), 30), "the server has read the build's folder")
    equal(source(server, build_id(whole), text), SOURCE, "its sources are served at once, before anybody asked for names")
    if not shutil.which("gdb"):
        skip("needs gdb")
        return
    environment = dict(os.environ, DEBUGINFOD_URLS=server.url, DEBUGINFOD_CACHE_PATH=os.path.join(WORK, "gdb-cache"))
    done = sh("unshare", "-m", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', tree, "gdb", "-nx", "-batch", "-iex",
              "set debuginfod enabled on", "-ex", "list middle", lonely, env=environment)
    check("int middle(int x) { return leaf(x) + 1; }" in done.stdout, "gdb lists what it does not have", done.stdout + done.stderr)
    server.stop()


def module(server, build_id_):
    return {row["build_id"]: row for row in server.json("/api/v1/modules")["modules"]}.get(build_id_, {})


def announce(server, build_id_):
    return server.request("POST", "/api/v1/modules", build_id_ + " gnu program\n", {"Content-Type": "text/plain"})


def test_federation():
    """One server is another one's source; two that name each other do not ask in circles."""
    far_port = free_port()
    near = Server("--debuginfod", "http://127.0.0.1:%d" % far_port, data="near", log="near.log")
    far = Server("--debuginfod", near.url, port=far_port, data="far", log="far.log")
    equal(far.request("PUT", "/api/v1/modules/" + state["id"], open(state["debug"], "rb").read())[0], 201,
          "the far server has the debug file")
    announce(near, state["id"])
    row = wait_for(lambda: (module(near, state["id"]).get("state") == "ready") and module(near, state["id"]), 40)
    check(row and far.url in row["source"] and row["quality"] == "dwarf", "the near one has its names from there",
          module(near, state["id"]))
    nobody = "cd" * 20
    announce(near, nobody)
    row = wait_for(lambda: (module(near, nobody).get("state") == "missing") and module(near, nobody), 40)
    check(row, "what neither has is missing", module(near, nobody))
    announce(far, nobody)
    check(wait_for(lambda: module(far, nobody).get("state") == "missing", 40), "from either side", module(far, nobody))
    asked = [int(re.search(r"^farflame_server_http_requests_total (\d+)", s.get("/metrics")[2].decode(), re.M).group(1))
             for s in (near, far)]
    check(max(asked) < 500, "in %s requests of all kinds to each: not in circles" % asked)
    near.stop()
    far.stop()


run(test_like_debuginfod, test_sources, test_uploads, test_federation)

