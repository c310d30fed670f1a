# SPDX-License-Identifier: Apache-2.0
"""The figures of the budget table, measured. Everything the agent is counts: memory and CPU summed over all its
processes, children that ended included, BPF maps and BPF run time; only the loader child's peak, over after
the start, is shown apart."""
import gzip
import http.server
import os
import re
import resource
import shutil
import socket
import socketserver
import statistics
import subprocess
import sys
import threading
import time

from harness import BUILD, CPUS, PROGRAMS, WORK, Agent, Server, build_programs, end, start, stop_all, wait_for

SECONDS = int(os.environ.get("BENCH_SECONDS", "20"))
rows = []


def row(what, value, budget="", peer=""):
    rows.append((what, value, budget, peer))
    print("%-62s %-22s %-16s %s" % rows[-1], flush=True)


def peer(measured, text):
    """The peer's figure, or that it did not run."""
    return text() if measured else "perf did not run"


# --- what a family of processes costs ---

def family(pid):
    pids = [pid]
    for member in pids:
        try:
            for task in os.listdir("/proc/%d/task" % member):
                pids += [int(p) for p in open("/proc/%d/task/%s/children" % (member, task)).read().split()]
        except OSError:
            pass
    return pids


def pss_kib(pid):
    total = 0
    for member in family(pid):
        try:
            total += int(re.search(r"^Pss:\s+(\d+)", open("/proc/%d/smaps_rollup" % member).read(), re.M).group(1))
        except (OSError, AttributeError):
            pass
    return total


def cpu_ns(pid):
    """User and system time of all its processes, children that ended included (10 ms steps for those)."""
    total = 0
    tick = 10**9 // os.sysconf("SC_CLK_TCK")
    for member in family(pid):
        try:
            for task in os.listdir("/proc/%d/task" % member):
                total += int(open("/proc/%d/task/%s/schedstat" % (member, task)).read().split()[0])
            fields = open("/proc/%d/stat" % member).read().rsplit(") ", 1)[1].split()
            total += (int(fields[13]) + int(fields[14])) * tick
        except OSError:
            pass
    return total


def bpf_numbers(pid):
    """(map bytes, BPF run time ns, runs) of the maps and programs the family holds descriptors of."""
    maps, programs = {}, {}
    for member in family(pid):
        try:
            names = os.listdir("/proc/%d/fdinfo" % member)
        except OSError:
            continue
        for name in names:
            try:
                info = dict(re.findall(r"^(\w+):\s+(\w+)", open("/proc/%d/fdinfo/%s" % (member, name)).read(), re.M))
            except OSError:
                continue
            if "map_id" in info:
                maps[info["map_id"]] = int(info["memlock"])
            if "prog_id" in info:
                programs[info["prog_id"]] = (int(info.get("run_time_ns", 0)), int(info.get("run_cnt", 0)))
    return sum(maps.values()), sum(p[0] for p in programs.values()), sum(p[1] for p in programs.values())


class PeakWatch(threading.Thread):
    """The highest PSS of a family seen, every 50 ms."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.peak, self.over = pid, 0, False
        self.start()

    def run(self):
        while not self.over:
            self.peak = max(self.peak, pss_kib(self.pid))
            time.sleep(0.05)


# --- a server that keeps what it is sent ---

class Recorder:
    def __init__(self):
        outer = self
        self.reports = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if self.path.endswith("/profiles"):
                    outer.reports.append(body)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_PUT = do_POST

            def log_message(self, *_):
                pass

        class Threading(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True

        self.server = Threading(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


# --- the agent ---

def measure_agent(what, rate, recorder, interval="5s"):
    """Steady state over SECONDS; returns samples and bytes."""
    agent = Agent("--frequency", str(rate), "--report-interval", interval, server=recorder.url, log="agent.log")
    pid = agent.process.pid
    watch = PeakWatch(pid)
    time.sleep(6)
    cpu, (maps, run, count), begin = cpu_ns(pid), bpf_numbers(pid), time.monotonic()
    sent = len(recorder.reports)
    memory = []
    while time.monotonic() - begin < SECONDS:
        time.sleep(1)
        memory.append(pss_kib(pid))
    elapsed = time.monotonic() - begin
    maps, run_after, count_after = bpf_numbers(pid)
    user_ns, kernel_ns, runs = cpu_ns(pid) - cpu, run_after - run, count_after - count
    watch.over = True
    end(agent.process)
    reports = recorder.reports[sent:]
    return {"what": what, "pss": max(memory), "peak": watch.peak, "maps": maps, "user_ns": user_ns,
            "kernel_ns": kernel_ns, "runs": runs, "elapsed": elapsed, "reports": reports,
            "status": agent.text()}


def samples_in(reports):
    sys.path.insert(0, "tests/tools")
    import otlp
    total = 0
    for body in reports:
        request = otlp.messages(BUILD).ExportProfilesServiceRequest()
        request.ParseFromString(gzip.decompress(body))
        total += sum(s.count for s in otlp.Reader(request).samples())
    return total


def agent_rows(perf):
    recorder = Recorder()
    idle = measure_agent("idle", 19, recorder)
    row("agent memory, idle host (PSS of all processes / peak)", "%.1f / %.1f MB" % (idle["pss"] / 1024, idle["peak"] / 1024), "12 MB")
    load = [start([PROGRAMS + "/burn", str(100 * CPUS / 50), "600"]) for _ in range(50)]
    at_19 = measure_agent("busy", 19, recorder)
    row("agent memory, 50 busy processes (PSS / peak)", "%.1f / %.1f MB" % (at_19["pss"] / 1024, at_19["peak"] / 1024),
        "12 MB", peer(perf, lambda: "perf record: %.1f MB" % (perf["pss"] / 1024)))
    row("agent BPF map memory", "%.1f MB" % (at_19["maps"] / 2**20), "16 MB")
    for load_case, budget in ((at_19, "0.1 %"), (measure_agent("busy", 99, recorder), "")):
        rate = 19 if load_case is at_19 else 99
        machine = load_case["elapsed"] * CPUS * 1e9
        samples = samples_in(load_case["reports"])
        row("agent CPU at %d Hz, busy CPUs: user space / BPF, of the machine" % rate, "%.3f / %.3f %%" % (
            100 * load_case["user_ns"] / machine, 100 * load_case["kernel_ns"] / machine), budget,
            peer(perf, lambda: "perf record: %.3f %%" % (100 * perf["cpu_s"] / (perf["elapsed"] * CPUS))) if rate == 19 else "")
        row("  per sample: BPF / user space", "%.1f / %.1f us" % (
            load_case["kernel_ns"] / max(load_case["runs"], 1) / 1e3, load_case["user_ns"] / max(samples, 1) / 1e3), "15 us (BPF)")
        row("  bytes on the wire per sample, %d samples" % samples, "%.1f" % (
            sum(map(len, load_case["reports"])) / max(samples, 1)), "",
            peer(perf, lambda: "perf.data: %.0f" % (perf["bytes"] / perf["samples"])) if rate == 19 else "")
    for process in load:
        end(process)
    return recorder.reports


def loader_row():
    """The loader child is over after the start: its peak is what wait4 says of ended children's maximum."""
    out = os.path.join(WORK, "loader.otlp")
    process = subprocess.Popen([BUILD + "/farflame-agent", "--output", out, "--duration", "1s"], stderr=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        for member in family(process.pid)[1:]:
            try:
                peak = max(peak, int(re.search(r"VmHWM:\s+(\d+)", open("/proc/%d/status" % member).read()).group(1)))
            except (OSError, AttributeError):
                pass
        time.sleep(0.002)
    row("loader child's peak resident memory (ends after the start)", "%.1f MB" % (peak / 1024), "shown apart")


def perf_peer():
    """perf record -F 19 -a -g under the same 50 busy processes."""
    if not shutil.which("perf"):
        return None
    load = [start([PROGRAMS + "/burn", str(100 * CPUS / 50), "600"]) for _ in range(50)]
    file = os.path.join(WORK, "perf.data")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(["perf", "record", "-F", "19", "-a", "-g", "-e", "cpu-clock", "-o", file],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    begin = time.monotonic()
    time.sleep(SECONDS)
    pss, elapsed = pss_kib(process.pid), time.monotonic() - begin
    process.send_signal(2)
    process.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    for member in load:
        end(member)
    try:
        text = subprocess.run(["perf", "script", "-i", file, "-F", "comm"], capture_output=True, text=True).stdout
    except OSError:
        return None
    samples = sum(1 for line in text.splitlines() if line.strip())
    if not samples:
        return None
    return {"pss": pss, "elapsed": elapsed, "bytes": os.path.getsize(file), "samples": samples,
            "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}


# --- the server ---

def distinct(reports, count):
    """As many reports as asked for, each with profile ids of its own."""
    sys.path.insert(0, "tests/tools")
    import otlp
    parsed = []
    for body in reports[-8:]:
        request = otlp.messages(BUILD).ExportProfilesServiceRequest()
        request.ParseFromString(gzip.decompress(body))
        parsed.append(request)
    made = []
    for i in range(count):
        request = parsed[i % len(parsed)]
        for resource_profiles in request.resource_profiles:
            for scope in resource_profiles.scope_profiles:
                for profile in scope.profiles:
                    profile.profile_id = os.urandom(16)
        made.append(gzip.compress(request.SerializeToString(), 1))
    return made


def answer_status(connection, rest):
    """(status, bytes after the answer) of one answer on a kept connection."""
    while b"\r\n\r\n" not in rest:
        rest += connection.recv(65536)
    head, rest = rest.split(b"\r\n\r\n", 1)
    length = int(re.search(rb"(?i)content-length: *(\d+)", head).group(1))
    while len(rest) < length:
        rest += connection.recv(65536)
    return int(head.split()[1]), rest[length:]


def post_all(server, bodies, connections=64):
    """Posts all of them over keep-alive connections, written by hand so that the client is not what is
    measured; the latencies in seconds, and refusals."""
    queue = [b"POST /v1development/profiles HTTP/1.1\r\nHost: bench\r\nContent-Type: application/x-protobuf\r\n"
             b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body) for body in bodies]
    took, refused = [], []

    def work():
        connection, rest = socket.create_connection(("127.0.0.1", server.port), timeout=60), b""
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while queue:
            try:
                request = queue.pop()
            except IndexError:
                break
            begin = time.monotonic()
            connection.sendall(request)
            status, rest = answer_status(connection, rest)
            took.append(time.monotonic() - begin)
            if status != 200:
                refused.append(status)
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(took), refused


def server_rows(reports):
    server = Server(data="bench")
    pid = server.process.pid
    if CPUS > 1:  # the server on one core, its clients on the others
        for task in os.listdir("/proc/%d/task" % pid):
            os.sched_setaffinity(int(task), {0})
        os.sched_setaffinity(0, set(range(1, CPUS)))
    bodies = distinct(reports, 2000)
    begin, cpu = time.monotonic(), cpu_ns(pid)
    took, refused = post_all(server, bodies)
    elapsed = time.monotonic() - begin
    used = cpu_ns(pid) - cpu
    row("server ingest of recorded reports (%d KB each), one core" % (len(bodies[0]) // 1024),
        "%.0f /s" % (len(bodies) / elapsed), "1000 /s", refused and "%d refused" % len(refused) or "")
    row("  CPU per report, all threads / latency median, p99", "%.2f ms / %.1f, %.1f ms" % (
        used / len(bodies) / 1e6, took[len(took) // 2] * 1e3, took[int(len(took) * 0.99)] * 1e3), "0.7 ms / 100 ms")
    if CPUS > 1:
        os.sched_setaffinity(0, set(range(CPUS)))
        for task in os.listdir("/proc/%d/task" % pid):
            os.sched_setaffinity(int(task), set(range(CPUS)))
    time.sleep(2)
    row("server memory after that (PSS of all processes)", "%.1f MB" % (pss_kib(pid) / 1024), "300 MB")
    times = []
    for _ in range(20):
        begin = time.monotonic()
        server.get("/api/v1/flamegraph", type="on-cpu", from_="now-1h", until="now", format="json")
        times.append(time.monotonic() - begin)
    row("flame graph query, all of it", "%.1f ms" % (statistics.median(times) * 1e3), "50 ms")
    server.stop()


def sample_to_name():
    server = Server(data="latency")
    agent = Agent("--frequency", "99", "--report-interval", "1s", server=server, log="latency.log")
    time.sleep(5)
    begin = time.monotonic()
    program = start([PROGRAMS + "/chain_pie", "30"])
    named = wait_for(lambda: any("leaf" in f for f, _ in server.folded(match='{process="chain_pie"}')), 30, 0.05)
    row("first sample of a new program to its name in the flame graph", "%.1f s" % (time.monotonic() - begin) if named else "never",
        "", "report interval 1 s")
    end(program)
    agent.stop()
    server.stop()


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    build_programs("burn", "chain_pie")
    stats = "/proc/sys/kernel/bpf_stats_enabled"
    before = open(stats).read()
    open(stats, "w").write("1")
    print("%-62s %-22s %-16s %s" % ("%d CPUs, %d s each" % (CPUS, SECONDS), "measured", "budget", "peer"))
    try:
        perf = perf_peer()
        reports = agent_rows(perf)
        loader_row()
        server_rows(reports)
        sample_to_name()
    finally:
        open(stats, "w").write(before)
        stop_all()


main()
