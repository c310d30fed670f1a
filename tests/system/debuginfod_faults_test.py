# SPDX-License-Identifier: Apache-2.0
"""debuginfod servers with every fault we could think of. Each fault is the first of two servers of a symbol server
of its own; the second is well. One module is at the second only, one at the faulty server only, one nowhere. While
the fault lasts the first gets its names and the second is waited for and never called missing; once it is mended the
second gets its names soon. Queries are timed all along. In a network namespace of its own: names do not resolve."""
import gzip
import http.server
import os
import re
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time

if os.geteuid() == 0 and os.environ.get("FARFLAME_NETNS") != "1" and shutil.which("unshare"):
    os.environ["FARFLAME_NETNS"] = "1"
    os.execvp("unshare", ["unshare", "-n", "-m", "sh", "-c", 'ip link set lo up && exec "$@"', "sh",
                          sys.executable, "-B"] + sys.argv)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import harness  # noqa: E402
from harness import BUILD, PROGRAMS, WORK, Server, build_programs, free_port, run, wait_for  # noqa: E402
from otlp_writer import Request  # noqa: E402

told = threading.RLock()  # several tests at a time write TAP


def one_at_a_time(function):
    def call(*arguments):
        with told:
            return function(*arguments)
    return call


check, equal, note, skip = map(one_at_a_time, (harness.check, harness.equal, harness.note, harness.skip))

MB = 1 << 20
TIMEOUT = 2
os.environ["DEBUGINFOD_TIMEOUT"] = str(TIMEOUT)
HERD = int(os.environ.get("HERD", 40))
state = {}


# --- files: one small program under many build-ids ---

def make_files():
    build_programs("chain_pie")
    path = os.path.join(WORK, "chain")
    shutil.copy(os.path.join(PROGRAMS, "chain_pie"), path)
    text = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    state["id"] = bytes.fromhex(text.split("Build ID: ")[1].split()[0])
    state["elf"] = open(path, "rb").read()
    subprocess.run(["strip", "-g", "-o", path + ".stripped", path], check=True)
    state["stripped"] = open(path + ".stripped", "rb").read()
    symbols = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    state["main"] = int(re.search(r"^(\w+) T main$", symbols, re.M).group(1), 16)


def identity(name):
    return (name.encode().ljust(len(state["id"]), b"."))[:len(state["id"])]


def elf(build_id):
    return state["elf"].replace(state["id"], build_id)


# --- the servers: /FAULT/NAME/buildid/ID/debuginfo ---

mended = set()  # faults that are over
asked = {}      # fault → questions


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def send(self, status, body=b"", length=None, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if length != "none":
            self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass

    def do_GET(self):
        _, fault, name, _, build_id, kind = self.path.split("/")
        asked[fault] = asked.get(fault, 0) + 1  # about right: threads
        build_id = bytes.fromhex(build_id)
        text = build_id.rstrip(b".").decode(errors="replace")
        if fault not in mended and fault != "well":
            return getattr(self, fault)(build_id)
        if kind != "debuginfo" or text != name and not (text.startswith("herd") and name == "herd"):
            return self.send(404, b"not found\n")
        return self.send(200, elf(build_id), Content_Type="application/octet-stream")

    def stalls(self, build_id):
        time.sleep(TIMEOUT + 3)
        self.close_connection = True

    def stalls_in_body(self, build_id):
        self.send(200, elf(build_id)[:2000], len(state["elf"]))
        self.stalls(build_id)

    def page(self, build_id):
        self.send(200, b"<html>Please log in</html>", Content_Type="text/html; charset=utf-8")

    def error_500(self, build_id):
        self.send(500, b"oops")

    def busy(self, build_id):
        self.send(503, b"", Retry_After="3")

    def throttles(self, build_id):
        self.send(429, b"", Retry_After="3")

    def refuses(self, build_id):
        self.send(403, b"no")

    def loops(self, build_id):
        self.send(302, Location=self.path)

    def leads_inside(self, build_id):
        """To another server of this host, as the cloud's metadata or a router would be."""
        self.send(302, Location="http://localhost:%d%s" % (state["server"].server_port,
                                                           self.path.replace("/leads_inside/", "/well/")))

    def reads_files(self, build_id):
        path = os.path.join(WORK, "local")
        with open(path, "wb") as file:
            file.write(elf(build_id))
        self.send(302, Location="file://" + path)

    def cuts(self, build_id):
        self.send(200, elf(build_id)[:3000], len(state["elf"]))
        self.close_connection = True

    def cuts_unsaid(self, build_id):
        self.send(200, elf(build_id)[:3000], "none", Connection="close")
        self.close_connection = True

    def cuts_packed(self, build_id):
        """Cut before it was packed, so that only debuginfod's own header tells."""
        self.send(200, gzip.compress(elf(build_id)[:3000]), Content_Encoding="gzip",
                  X_DEBUGINFOD_SIZE=str(len(state["elf"])))

    def resets(self, build_id):
        self.send(200, elf(build_id)[:3000], len(state["elf"]))
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.shutdown(socket.SHUT_RD)
        self.connection.close()
        self.close_connection = True

    def empty(self, build_id):
        self.send(200)

    # Not the server's fault: something about this file.

    def redirects(self, build_id):
        self.send(302, Location=self.path.replace("/redirects/", "/well/"))

    def packs(self, build_id):
        if identity("packs") != build_id:
            return self.send(404)
        return self.send(200, gzip.compress(elf(build_id)), Content_Encoding="gzip")

    def other_build(self, build_id):
        if identity("other_build") != build_id:
            return self.send(404)
        return self.send(200, elf(identity("something else")))

    def huge(self, build_id):
        """3 GB, as its header says; what comes is counted."""
        if identity("huge") != build_id:
            return self.send(404)
        return self.endless(elf(build_id), 3 << 30, 3 << 30)

    def huge_unsaid(self, build_id):
        if identity("huge_unsaid") != build_id:
            return self.send(404)
        return self.endless(elf(build_id), 3 << 30, "none")

    def bomb(self, build_id):
        """A megabyte that unpacks to a gigabyte."""
        if identity("bomb") != build_id:
            return self.send(404)
        return self.send(200, state["bomb"], Content_Encoding="gzip")

    def poison(self, build_id):
        """Fails at one file, and answers else."""
        if identity("poison") == build_id:
            return self.send(500)
        return self.send(200, elf(build_id))

    def executable_only(self, build_id):
        """The program without its debug information."""
        if not self.path.endswith("/executable"):
            return self.send(404)
        return self.send(200, state["stripped"].replace(state["id"], build_id))

    def endless(self, start, bytes_, length):
        self.send(200, start, length)
        sent, block = len(start), bytes(MB)
        try:
            while sent < bytes_:
                self.wfile.write(block)
                sent += len(block)
        except OSError:
            pass
        state["sent"] = sent
        self.close_connection = True


class Servers(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass


def serve(port=0, context=None):
    server = Servers(("127.0.0.1", port), Handler)
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


# --- a symbol server with a fault, and the queries that are timed meanwhile ---

latencies = {}
starting = threading.Lock()  # the environment is everybody's


class Case:
    def __init__(self, fault, url=None, second="", **environment):
        """second: the module that the healthy server has; None: there is no such server."""
        self.fault = fault
        self.url = url or "%s/%s/%s" % (state["url"], fault, fault)
        arguments = ["--debuginfod", self.url]
        if second is not None:
            arguments += ["--debuginfod", "%s/well/%s" % (state["url"], second or "only-" + fault)]
        with starting:
            os.environ.update(environment)
            self.server = Server(*arguments, data=fault, log=fault + ".log")
            for name in environment:
                del os.environ[name]
        self.stops = False
        self.timer = threading.Thread(target=self.time_queries, daemon=True)

    def post(self, *names):
        made = Request(BUILD)
        profile = made.profile(made.resource(**{"process.executable.name": "chain", "process.pid": 7}))
        for name in names:
            mapping = made.mapping("/opt/" + name, identity(name).hex())
            made.sample(profile, [("native", mapping, state["main"] + 1)], [10101010])
        equal(self.server.post(made.bytes())[0], 200, "%s: a profile is taken" % self.fault)
        self.timer.start()

    def time_queries(self):
        mine = latencies.setdefault(self.fault, [])
        while not self.stops:
            for path in ("/api/v1/flamegraph?type=on-cpu&from=now-15m&format=folded", "/api/v1/modules"):
                begin = time.monotonic()
                try:
                    status = self.server.request("GET", path, timeout=20)[0]
                except OSError:
                    status = 0
                mine.append((time.monotonic() - begin) * 1e3 if status == 200 else 1e6)
            time.sleep(0.05)

    def module(self, name):
        for row in self.server.json("/api/v1/modules")["modules"]:
            if row["build_id"] == identity(name).hex():
                return row
        return {}

    def is_ready(self, name):
        return self.module(name).get("state") == "ready"

    def is_named(self, rows, name):
        return any(frames[-1] == "main" for frames, _ in rows)

    def wait_ready(self, name, seconds):
        begin = time.monotonic()
        wait_for(lambda: self.is_ready(name), seconds, 0.1)
        return time.monotonic() - begin if self.is_ready(name) else None

    def end(self):
        self.stops = True
        if self.timer.is_alive():
            self.timer.join()
        self.server.stop()


def fault_of_server(fault, sentence, url=None, mend=None):
    """Says nothing about a module: it is waited for, and found when the fault is over."""
    case = Case(fault, url)
    case.post(fault, "only-" + fault, "nowhere-" + fault)
    took = case.wait_ready("only-" + fault, 12)
    check(took is not None, "%s: the healthy server's module is ready meanwhile" % fault, case.module("only-" + fault))
    says = wait_for(lambda: re.search(sentence, case.module(fault).get("reason", "")), 8, 0.1)
    row, none = case.module(fault), case.module("nowhere-" + fault)
    answers = {entry["source"]: entry["answer"] for entry in row.get("sources", [])}
    check(answers.get(case.url) in ("down", "closed", "wrong_file") and "not_found" in answers.values(),
          "%s: both servers stand among the sources, with their answers" % fault, row)
    check(says, "%s: the reason says what happened" % fault, row)
    check({row.get("state"), none.get("state")} <= {"wanted", "fetching"}, "%s: nothing is called missing" % fault,
          "%s\n%s" % (row, none))
    note("%s: %.1f s; %s" % (fault, took or -1, row.get("reason")))
    metrics = case.server.get("/metrics")[2].decode()
    check('source_up{source="%s"} ' % case.url in metrics and
          'source="%s",answer="failed"} 0' % case.url not in metrics, "%s: the metrics count it" % fault, re.findall(".*_source_.*", metrics))
    mended.add(fault)
    if mend:
        mend()
    took = case.wait_ready(fault, 20)
    check(took is not None, "%s: mended, it is found soon (%.1f s)" % (fault, took or -1), case.module(fault))
    check(wait_for(lambda: case.module("nowhere-" + fault).get("state") == "missing", 10, 0.1),
          "%s: and what nobody has is missing, now that everybody was asked" % fault, case.module("nowhere-" + fault))
    case.end()


def fault_of_file(fault, outcome, sentence, url=None, **environment):
    """The server is well: it has this file wrong, or too large, and is asked for others."""
    case = Case(fault, url, **environment)
    case.post(fault, "only-" + fault)
    check(case.wait_ready("only-" + fault, 12) is not None, "%s: the next server is asked" % fault)
    wait_for(lambda: case.module(fault).get("state") == outcome and
             re.search(sentence, case.module(fault).get("reason", "")), 10, 0.1)
    row = case.module(fault)
    equal(row.get("state"), outcome, "%s: its module is %s" % (fault, outcome))
    check(re.search(sentence, row.get("reason", "")), "%s: and says why" % fault, row)
    note("%s: %s" % (fault, row.get("reason")))
    left = [name for name in os.listdir(os.path.join(WORK, fault, "cache")) if "download" in name]
    equal(left, [], "%s: nothing is left in the cache directory" % fault)
    case.end()


def together(*faults):
    """Several at a time: most of a fault's time is waiting."""
    failures = []

    def one(test):
        try:
            test()
        except Exception as error:  # noqa: BLE001
            failures.append("%s: %s" % (type(error).__name__, error))

    threads = [threading.Thread(target=one, args=(test,)) for test in faults]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(failures, [], "these run to their end")


# --- tests ---

def test_start():
    make_files()
    state["server"] = serve()
    state["url"] = "http://127.0.0.1:%d" % state["server"].server_port
    state["bomb"] = gzip.compress(elf(identity("bomb")) + bytes(1 << 28))


def test_server_faults():
    port = free_port()
    together(
        lambda: fault_of_server("closed", "Failed to connect|Connection refused",
                                "http://127.0.0.1:%d/closed/closed" % port, lambda: serve(port)),
        lambda: fault_of_server("stalls", "Operation too slow"),
        lambda: fault_of_server("stalls_in_body", "Operation too slow"),
        lambda: fault_of_server("page", r"no ELF file \(text/html\)"),
        lambda: fault_of_server("leads_inside", "sends to an address that is not public"),
        lambda: fault_of_server("loops", r"redirects followed"),
        lambda: fault_of_server("reads_files", "Protocol \"file\" (not supported|disabled)"))


def test_more_server_faults():
    together(
        lambda: fault_of_server("error_500", "status 500"),
        lambda: fault_of_server("busy", "status 503, and to come back in 3 s"),
        lambda: fault_of_server("throttles", "status 429, and to come back in 3 s"),
        lambda: fault_of_server("refuses", "status 403"),
        lambda: fault_of_server("cuts", "transfer closed|sent 3000 of"),
        lambda: fault_of_server("cuts_packed", r"it sent 3000 of \d+ bytes"),
        lambda: fault_of_server("resets", "reset|transfer closed"),
        lambda: fault_of_server("empty", "empty"))


def test_file_faults():
    by_name = state["url"].replace("127.0.0.1", "localhost")  # the child can resolve names
    together(lambda: fault_of_file("redirects", "ready", "", by_name + "/redirects/redirects"),
             lambda: fault_of_file("packs", "ready", ""),
             lambda: fault_of_file("other_build", "missing", "another build-id"),
             lambda: fault_of_file("cuts_unsaid", "missing", "damaged"),
             lambda: fault_of_file("huge", "failed", r"has 3072 MB; no more than 2048 MB"))
    check(state["sent"] < 64 * MB, "of 3 GB that are announced hardly anything is sent: %d MB" % (state["sent"] / MB))
    together(lambda: fault_of_file("huge_unsaid", "failed", r"more than the 64 MB", DEBUGINFOD_MAXSIZE=str(64 * MB)),
             lambda: fault_of_file("bomb", "failed", r"more than the 64 MB", DEBUGINFOD_MAXSIZE=str(64 * MB)))
    check(state["sent"] < 256 * MB, "of what is not announced not much more than the limit")


def test_tls_and_names():
    key, certificate = os.path.join(WORK, "key.pem"), os.path.join(WORK, "certificate.pem")
    port = free_port()
    if not shutil.which("openssl"):
        skip("needs openssl")
        return
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
                    "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"], check=True,
                   capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    serve(port, context)

    def waits(fault, url, sentence):
        case = Case(fault, url)
        case.post(fault, "only-" + fault)
        check(case.wait_ready("only-" + fault, 15) is not None, "%s: the next server is asked" % fault)
        wait_for(lambda: re.search(sentence, case.module(fault).get("reason", "")), 15, 0.1)
        row = case.module(fault)
        check(row.get("state") == "wanted" and re.search(sentence, row.get("reason", "")),
              "%s: it waits, and says why" % fault, row)
        note("%s: %s" % (fault, row.get("reason")))
        case.end()

    def trusted():
        case = Case("trusted", "https://127.0.0.1:%d/well/trusted" % port, second=None, SSL_CERT_FILE=certificate)
        case.post("trusted")
        check(case.wait_ready("trusted", 15) is not None, "what SSL_CERT_FILE trusts is asked", case.module("trusted"))
        case.end()

    together(test_full_disk, test_kill, test_poison, trusted, test_executable,
             lambda: waits("untrusted", "https://127.0.0.1:%d/well/untrusted" % port, "self.signed certificate"),
             lambda: waits("no_tls", state["url"].replace("http:", "https:") + "/well/no_tls", "SSL|TLS"),
             lambda: waits("no_name", "http://somewhere.invalid/", "Could not resolve host"))


def memory_kb(pid):
    rollup = open("/proc/%d/smaps_rollup" % pid).read()
    return int(re.search(r"^Pss:\s+(\d+) kB", rollup, re.M).group(1))


def test_herd():
    """Many modules, the first server stalls: they do not each wait for it."""
    names = ["herd%d" % i for i in range(HERD)]
    mended.discard("stalls")
    asked["stalls"] = 0
    case = Case("herd", state["url"] + "/stalls/herd", second="herd")
    note("the server begins with %d KB" % memory_kb(case.server.process.pid))
    begin = time.monotonic()
    case.post(*names)

    def ready():
        rows = case.server.json("/api/v1/modules")["modules"]
        return sum(row["state"] == "ready" for row in rows) == HERD

    check_child()
    check(wait_for(ready, max(40, HERD), 0.1), "%d modules come from the second server while the first stalls" % HERD)
    took = time.monotonic() - begin
    note("%d modules in %.1f s; the stalling server was asked %d times; the server has %d KB" % (
        HERD, took, asked["stalls"], memory_kb(case.server.process.pid)))
    check(took < HERD / 4 * TIMEOUT, "they did not wait for the first in turn: %.1f s" % took)
    check(asked["stalls"] <= 12 + took / 4, "and it was asked few times: %d" % asked["stalls"])
    case.end()


def children(of):
    found = []
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and int(open("/proc/%s/stat" % entry).read().rsplit(")", 1)[1].split()[1]) == of:
                found.append(int(entry))
        except OSError:
            pass
    return found


def check_child():
    """What a process has that talks to strangers: seen from outside, while it waits for the stalling server."""
    def sandboxed():
        for pid in [p for parent in list(state_processes()) for p in children(parent)]:
            try:
                command = open("/proc/%d/cmdline" % pid).read()
                status = open("/proc/%d/status" % pid).read()
                if "--fetch-symbols" in command and "Seccomp:\t2" in status:
                    return pid, status, open("/proc/%d/limits" % pid).read(), os.listdir("/proc/%d/fd" % pid), command
            except OSError:
                pass
        return None

    found = wait_for(sandboxed, 10, 0.02)
    if not check(found, "a child asks, behind a filter of system calls"):
        return
    _, status, limits, fds, command = found
    uid = re.search(r"Uid:\t(\d+)\t(\d+)\t(\d+)", status).groups()
    check("0" not in uid and "CapEff:\t0000000000000000" in status and "NoNewPrivs:\t1" in status,
          "it is nobody, can do nothing and become nothing", status)
    size = int(re.search(r"Max file size +(\d+)", limits).group(1))
    check(size == 2 << 30 and re.search(r"Max address space +\d+", limits), "its files and memory are bounded", limits)
    check(len(fds) <= 12 and "http" not in command, "it has few descriptors, and shows no URL",
          "%s %s" % (fds, command))


def state_processes():
    return [process.pid for process in harness._started]


def test_full_disk():
    """Our own state, said as such; found when there is room."""
    cache = os.path.join(WORK, "full", "cache")
    os.makedirs(cache)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "none", cache], capture_output=True).returncode:
        skip("needs to mount a small file system")
        return
    case = Case("full", state["url"] + "/well/full", second=None)
    case.post("full")
    says = wait_for(lambda: " MB left" in case.module("full").get("reason", ""), 10, 0.1)
    check(says and case.module("full")["state"] == "wanted", "a full disk is said, and is not the module's fault",
          case.module("full"))
    note("full disk: " + case.module("full").get("reason", ""))
    subprocess.run(["mount", "-o", "remount,size=1g", cache], check=True)
    took = case.wait_ready("full", 30)
    check(took is not None, "once there is room it is downloaded (%.1f s)" % (took or -1), case.module("full"))
    case.end()
    subprocess.run(["umount", "-l", cache], check=True)


def test_poison():
    """A server that always fails at one file is still good for others."""
    names = ["poison%d" % i for i in range(6)]
    case = Case("poison", second=None)
    case.post("poison", *names)
    check(all(case.wait_ready(name, 20) is not None for name in names),
          "others are fetched from a server that fails at one")
    says = wait_for(lambda: "it failed at this file" in case.module("poison").get("reason", ""), 20, 0.1)
    check(says and case.module("poison")["state"] == "wanted", "which waits longer than the others do",
          case.module("poison"))
    note("poison: " + case.module("poison").get("reason", ""))
    case.end()


def test_executable():
    """An executable is no reason not to ask the next server for a debug file; better than nothing if it is down."""
    case = Case("executable_only", second="better")
    case.post("better", "executable_only")
    check(case.wait_ready("better", 15) is not None and "/well/" in case.module("better").get("source", ""),
          "the second server's debug file is better than the first's executable", case.module("better"))
    row = wait_for(lambda: case.module("executable_only").get("quality") == "symtab", 15, 0.1)
    check(row, "where no server has a debug file the executable is used", case.module("executable_only"))
    case.end()
    mended.discard("error_500")
    case = Case("upgrade", state["url"] + "/error_500/upgrade", second=None)
    case.server.stop()
    case.server.arguments += ["--debuginfod", state["url"] + "/executable_only/x"]
    case.server.start()
    case.post("upgrade")
    check(wait_for(lambda: case.module("upgrade").get("quality") == "symtab", 15, 0.1),
          "an executable is used while the server that may have more is down", case.module("upgrade"))
    mended.add("error_500")
    check(case.wait_ready("upgrade", 20) is not None and case.module("upgrade")["quality"] == "dwarf",
          "and replaced when that is back", case.module("upgrade"))
    case.end()


def test_kill():
    """SIGKILL in the middle of a download."""
    mended.discard("stalls_in_body")
    case = Case("killed", state["url"] + "/stalls_in_body/killed", second=None)
    case.post("killed")
    check(wait_for(lambda: children(case.server.process.pid), 10, 0.02), "a download is under way")
    pids = children(case.server.process.pid)
    case.stops = True
    case.timer.join()
    case.server.kill()
    check(wait_for(lambda: not any(os.path.exists("/proc/%d" % pid) for pid in pids), 5, 0.05),
          "SIGKILL of the server ends it")
    left = [name for name in os.listdir(os.path.join(WORK, "killed", "cache")) if "download" in name]
    equal(left, [], "and leaves nothing in the cache directory")
    mended.add("stalls_in_body")
    case.server.start()
    check(case.wait_ready("killed", 20) is not None, "after a new start it is fetched", case.module("killed"))
    case.server.stop()


def test_latencies():
    everything = sorted(value for values in latencies.values() for value in values)
    if not check(len(everything) > 200, "queries were timed all along", len(everything)):
        return
    for fault, values in sorted(latencies.items()):
        values.sort()
        note("%-16s %4d queries, p50 %.0f ms, p99 %.0f ms" % (fault, len(values), values[len(values) // 2],
                                                             values[len(values) * 99 // 100]))
    p99 = everything[len(everything) * 99 // 100]
    note("all: %d queries, p50 %.1f ms, p99 %.1f ms, longest %.1f ms" % (
        len(everything), everything[len(everything) // 2], p99, everything[-1]))
    # 100 ms on a machine that does nothing else; ours test several servers at a time on two processors.
    check(p99 < 500, "99 of 100 queries are answered within 500 ms: %.1f" % p99)
    check(everything[-1] < 1000 * TIMEOUT, "none waits for a source: %.1f ms" % everything[-1])


if os.geteuid() != 0:
    harness.skip_all("needs root, for a network of its own")
run(test_start, test_server_faults, test_more_server_faults, test_file_faults, test_tls_and_names,
    test_herd, test_latencies)
