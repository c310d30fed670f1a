# SPDX-License-Identifier: Apache-2.0
"""What the system tests share: TAP, a server and an agent of our own on loopback, HTTP, programs to profile.

Each *_test.py is its own TAP program; BUILD is taken from FARFLAME_BUILD (default build). Everything a test
starts is ended by its process id, also when the test fails. Waiting is bounded, and never by fixed sleeps
where a condition can be asked for: the machine may be slow.
"""
import atexit
import contextlib
import functools
import glob
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.parse

BUILD = os.path.abspath(os.environ.get("FARFLAME_BUILD", "build"))
PROGRAMS = os.path.join(BUILD, "programs")
NAME = os.path.splitext(os.path.basename(sys.argv[0]))[0]
WORK = os.path.join(BUILD, "system", NAME)
CPUS = os.cpu_count()
_started = []


# --- TAP ---

class Tap:
    count = failed = 0


def check(good, text, why=""):
    Tap.count += 1
    if good:
        print("ok %d - %s" % (Tap.count, text), flush=True)
    else:
        Tap.failed += 1
        print("not ok %d - %s" % (Tap.count, text), flush=True)
        for line in str(why).splitlines()[:40]:
            print("# " + line, flush=True)
    return bool(good)


def equal(got, want, text):
    return check(got == want, text, "got: %r\nwant: %r" % (got, want))


def skip(why):
    Tap.count += 1
    print("ok %d # SKIP %s" % (Tap.count, why), flush=True)


def skip_all(why):
    print("1..0 # SKIP " + why)
    sys.exit(0)


def note(text):
    print("# " + text, flush=True)


def run(*tests):
    """Calls the test functions, or those named on the command line; one that raises is a failure, the others
    still run."""
    if len(sys.argv) > 1:
        tests = [test for test in tests if test.__name__ in sys.argv[1:]]
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    for test in tests:
        try:
            test()
        except Exception as error:  # noqa: BLE001
            import traceback
            check(False, "%s runs to its end" % test.__name__,
                  "%s: %s\n%s" % (type(error).__name__, error, traceback.format_exc()))
        stop_all()
    print("1..%d" % Tap.count)
    sys.exit(Tap.failed != 0)


# --- processes ---

def start(arguments, log=None, **more):
    out = open(os.path.join(WORK, log), "ab") if log else subprocess.DEVNULL
    process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=more.pop("stdout", out),
                               stderr=out, start_new_session=True, **more)
    _started.append(process)
    return process


def log_size(log):
    path = os.path.join(WORK, log)
    return os.path.getsize(path) if os.path.exists(path) else 0


def end(process, seconds=20, how=signal.SIGTERM):
    """Ends it; returns (exit status, seconds it took)."""
    begin = time.monotonic()
    if process.poll() is None:
        process.send_signal(how)
    try:
        status = process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        status = "killed after %d s" % seconds
    if process in _started:
        _started.remove(process)
    return status, time.monotonic() - begin


def stop_all():
    for process in list(_started):
        end(process, 5)


atexit.register(stop_all)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # else what was started stays


class NotThere(RuntimeError):
    """No sample has come yet of what was asked for."""


def pythons(default):
    """The interpreters to be tried, by their names in paths of files: PYTHONS, versions of pyenv's or "debian", and
    PYTHON_PATHS, wherever they are. {name: path, or None: it is not here}"""
    paths = os.environ.get("PYTHON_PATHS", "").split()
    found = {}
    for version in os.environ.get("PYTHONS", "" if paths else default).split():
        pattern = "~/.pyenv/versions/%s.*/bin/python%s" % (version, version)
        installed = ["/usr/bin/python3"] if version == "debian" else sorted(glob.glob(os.path.expanduser(pattern)))
        found[version] = installed[-1] if installed else None
    found.update((path.strip("/").replace("/", "-"), path) for path in paths)
    return found


def jdks(default):
    """The Javas to be tried, by their names in paths of files: JDKS, versions of those installed, and JDK_PATHS, wherever
    they are. {name: path of java, or None: it is not here}"""
    paths = os.environ.get("JDK_PATHS", "").split()
    found = {}
    for version in os.environ.get("JDKS", "" if paths else default).split():
        installed = sorted(glob.glob("/usr/lib/jvm/*-%s-*/bin/java" % version))
        found[version] = installed[-1] if installed else None
    found.update((path.strip("/").replace("/", "-"), os.path.join(path, "bin/java")) for path in paths)
    return found


def java_major(java):
    """8, 11, 17…"""
    text = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    numbers = re.search(r'version "(\d+)(?:\.(\d+))?', text).groups()
    return int(numbers[1] if numbers[0] == "1" else numbers[0])


def build_java(*names, release=8, javac="javac"):
    """Where the classes of tests/programs/java are, made for that release of Java and newer ones. CalledProcessError: they
    do not build."""
    classes = os.path.join(PROGRAMS, "java-%d" % release)
    os.makedirs(classes, exist_ok=True)
    subprocess.run([javac, "-g", "--release", str(release), "-Xlint:-options", "-d", classes]
                   + ["tests/programs/java/%s.java" % name for name in names], check=True, stdout=sys.stderr)
    return classes


def spool_of(name):
    return os.path.join(WORK, name)


def spooled_reports(name):
    try:
        return sorted(f for f in os.listdir(spool_of(name)) if f.endswith(".spool"))
    except OSError:
        return []


def spooled_bytes(name):
    return sum(os.path.getsize(os.path.join(spool_of(name), f)) for f in spooled_reports(name))


def wait_for(condition, seconds=30, every=0.2):
    """The condition's first true value, or its last one when the time is over."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            value = condition()
        except NotThere:
            value = None
        if value or time.monotonic() > deadline:
            return value
        time.sleep(every)


def build_programs(*names):
    subprocess.run(["sh", "tests/programs/build.sh", PROGRAMS, *names], check=True, stdout=sys.stderr)


@functools.lru_cache(maxsize=None)
def symbolize_tool():
    """tests/tools/symbolize_addresses, up to date. CalledProcessError: it does not build."""
    path = BUILD + "/tests/tools/symbolize_addresses"
    subprocess.run(["make", "-s", "--no-print-directory", "BUILD=" + BUILD, path], check=True, stdout=sys.stderr)
    return path


@functools.lru_cache(maxsize=None)
def fleet_tool():
    """tests/tools/fleet, up to date. CalledProcessError: it does not build."""
    path = BUILD + "/tests/tools/fleet/fleet"
    subprocess.run(["make", "-s", "--no-print-directory", "BUILD=" + BUILD, path], check=True, stdout=sys.stderr)
    return path


def program_copy(program, name):
    """A copy under another name, so that its process can be told apart."""
    path = os.path.join(WORK, name)
    shutil.copy2(os.path.join(PROGRAMS, program), path)
    return path


def open_folder():
    """One that any user may look into, wherever the tree lies."""
    path = tempfile.mkdtemp(prefix="farflame-test-", dir="/tmp")
    os.chmod(path, 0o755)
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def free_port():
    """Of those that no connection is given (ip_local_port_range begins above): a server that is started again has it still."""
    while True:
        port = random.SystemRandom().randrange(11000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


def need_bpf():
    """Skips the whole file where this host does not permit eBPF (the agent's exit status 3)."""
    if os.geteuid() != 0:
        skip_all("needs root")
    os.makedirs(WORK, exist_ok=True)
    tried = subprocess.run([BUILD + "/farflame-agent", "--output", WORK + "/probe.otlp", "--duration", "100ms"],
                           capture_output=True, text=True)
    if tried.returncode == 3:
        skip_all("eBPF is not permitted here: " + tried.stderr.strip())


# --- server and agent ---

class Server:
    def __init__(self, *arguments, port=None, data="data", log="server.log"):
        self.port = port or free_port()
        self.url = "http://127.0.0.1:%d" % self.port
        self.arguments = [BUILD + "/farflame-server", "--listen", "127.0.0.1:%d" % self.port,
                          "--data", os.path.join(WORK, data), *arguments]
        self.log = log
        self.start()

    def start(self):
        self.process = start(self.arguments, self.log)
        if not wait_for(self.is_ready, 30):
            text = open(os.path.join(WORK, self.log), errors="replace").read()
            raise RuntimeError("the server is not ready:\n" + text[-1500:])

    def is_ready(self):
        if self.process.poll() is not None:
            raise RuntimeError("the server ended with %s:\n%s" % (
                self.process.returncode, open(os.path.join(WORK, self.log), errors="replace").read()[-1500:]))
        try:
            return self.get("/readyz", timeout=2)[0] == 200
        except OSError:
            return False

    def stop(self):
        return end(self.process)

    def kill(self):
        return end(self.process, how=signal.SIGKILL)

    def request(self, method, path, body=None, headers=None, timeout=30):
        """(status, headers, body)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def get(self, path, timeout=30, **parameters):
        if parameters:
            parameters = {k.rstrip("_"): v for k, v in parameters.items()}
            path += "?" + urllib.parse.urlencode(parameters)
        return self.request("GET", path, timeout=timeout)

    def json(self, path, **parameters):
        status, _, body = self.get(path, **parameters)
        if status == 404 and b"no such " in body:
            raise NotThere("%s %s: %s" % (path, parameters, body[:300]))
        if status != 200:
            raise RuntimeError("%s %s: %d %s" % (path, parameters, status, body[:300]))
        return json.loads(body)

    def post(self, body, content_type="application/x-protobuf", encoding=None, timeout=30):
        headers = {"Content-Type": content_type}
        if encoding:
            headers["Content-Encoding"] = encoding
        return self.request("POST", "/v1development/profiles", body, headers, timeout)

    def folded(self, **parameters):
        """[(frames root first, value)]; the first frame is the process."""
        parameters = dict({"type": "on-cpu", "from_": "now-15m", "until": "now", "format": "folded",
                           "value": "samples", "max_nodes": 1000000}, **parameters)
        status, _, body = self.get("/api/v1/flamegraph", timeout=60, **parameters)
        if status == 404 and b"no such " in body:
            return []
        if status != 200:
            raise RuntimeError("flamegraph: %d %s" % (status, body[:300]))
        rows = []
        for line in body.decode().splitlines():
            stack, _, value = line.rpartition(" ")
            rows.append((stack.split(";"), int(value)))
        return rows

    def flamegraph(self, **parameters):
        return self.json("/api/v1/flamegraph", **dict(
            {"type": "on-cpu", "from_": "now-15m", "until": "now", "format": "json", "value": "samples",
             "max_nodes": 1000000}, **parameters))

    def wait_for_names(self, is_named, seconds=60, **parameters):
        """Asks for the folded stacks until is_named(rows); what is there when the time is over else."""
        rows = []

        def attempt():
            rows[:] = self.folded(**parameters)
            return is_named(rows)

        wait_for(attempt, seconds, 0.5)
        return rows


def files_with(text, paths):
    """Those of the files that contain the text. A database's journal may go while it is looked for."""
    found = []
    for path in paths:
        with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
            if text.encode() in file.read():
                found.append(path)
    return found


class Agent:
    def __init__(self, *arguments, server=None, log="agent.log", wait=True, prefix=()):
        self.arguments = [*prefix, BUILD + "/farflame-agent", *arguments]
        if server:
            self.arguments += ["--server", server.url if isinstance(server, Server) else server]
        self.log = log
        self.log_begin = log_size(log)
        self.process = start(self.arguments, log)
        if wait:
            self.wait_until_sampling()

    def wait_until_sampling(self):
        """Everything that was asked for is attached: it says so then. On a busy machine the tracepoints come seconds
        after the first perf events."""
        begin = time.monotonic()
        while time.monotonic() - begin < 60:
            if self.process.poll() is not None:
                raise RuntimeError("the agent ended with %s:\n%s" % (self.process.returncode, self.text()[-1500:]))
            if "info profiling" in self.text():
                time.sleep(0.3)
                return
            time.sleep(0.1)
        raise RuntimeError("the agent does not sample after 60 s:\n" + self.text()[-1500:])

    def text(self):
        """What this one has said: a log may be that of others before it, too."""
        with open(os.path.join(WORK, self.log), "rb") as file:
            file.seek(self.log_begin)
            return file.read().decode(errors="replace")

    def stop(self):
        return end(self.process)


def fd_links(pid):
    """What its descriptors are; one that closes meanwhile is none."""
    found = []
    try:
        for fd in os.listdir("/proc/%d/fd" % pid):
            try:
                found.append(os.readlink("/proc/%d/fd/%s" % (pid, fd)))
            except OSError:
                pass
    except OSError:
        pass
    return found


def context_places(pid):
    """process → kind of place: struct thread_context_place, as the agent's table in the kernel has them"""
    found = {}
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            if "bpf-map" not in os.readlink("/proc/%d/fd/%s" % (pid, fd)):
                continue
            facts = dict(line.split(":", 1) for line in open("/proc/%d/fdinfo/%s" % (pid, fd)) if ":" in line)
        except OSError:
            continue
        if [int(facts[name], 0) for name in ("map_type", "key_size", "value_size")] != [1, 4, 32]:
            continue
        dump = subprocess.run(["bpftool", "-j", "map", "dump", "id", facts["map_id"].strip()], capture_output=True)
        for row in json.loads(dump.stdout or "[]"):
            key, value = (bytes(int(byte, 0) for byte in row[part]) for part in ("key", "value"))
            found[struct.unpack("I", key)[0]] = struct.unpack_from("I", value, 12)[0]
    return found
