# SPDX-License-Identifier: Apache-2.0
"""/metrics and deploy/prometheus: promtool has nothing to say against them, and a real Prometheus fires each alert when
what it is about is made true, and none before. Waiting times of the rules are made short; nothing else of them is."""
import glob
import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.request

sys.path.insert(0, "tests/tools")
import otlp_writer  # noqa: E402
from harness import BUILD, Server, WORK, check, equal, free_port, run, skip_all, start, wait_for  # noqa: E402

RULES = "deploy/prometheus/farflame-alerts.yml"


def report(server, host, seq, lost=0, sent_ns=None, samples=1000, is_named=True, version="0.1.0", **more):
    """One report of an agent; without a name: of a file that has no symbols anywhere."""
    request = otlp_writer.Request(BUILD)
    frame = ("cpython", "work", "a.py", 3) if is_named else ("native", request.mapping("nameless", "ab" * 20), 0x1000)
    profile = request.profile(request.resource(**{"host.name": host, "process.executable.name": "program"}))
    request.sample(profile, [frame], [samples, samples * 10101010])
    request.counters(host, host.encode().hex().ljust(32, "0"), seq, seq - 1, samples * seq + lost, ring_full=lost, version=version,
                     more={"sent_unix_nano": sent_ns or time.time_ns(), **more})
    status, _, body = server.post(request.bytes())
    if status != 200:
        raise RuntimeError("report: %d %s" % (status, body[:200]))


class Prometheus:
    def __init__(self, servers):
        self.port = free_port()
        rules = open(RULES, encoding="utf-8").read()
        rules = re.sub(r"for: \w+", "for: 1s", rules)
        rules = re.sub(r"\[\w+\]", "[15s]", rules)
        with open(WORK + "/rules.yml", "w", encoding="utf-8") as file:
            file.write(rules)
        with open(WORK + "/prometheus.yml", "w", encoding="utf-8") as file:
            json.dump({"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": ["rules.yml"],
                       "scrape_configs": [{"job_name": "farflame", "static_configs": [
                           {"targets": ["127.0.0.1:%d" % server.port for server in servers]}]}]}, file)
        start(["prometheus", "--config.file=" + WORK + "/prometheus.yml", "--storage.tsdb.path=" + WORK + "/tsdb",
               "--web.listen-address=127.0.0.1:%d" % self.port], "prometheus.log")

    def ask(self, path):
        try:
            with urllib.request.urlopen("http://127.0.0.1:%d/api/v1/%s" % (self.port, path), timeout=10) as answer:
                return json.load(answer)["data"]
        except (OSError, ValueError):
            return None

    def scrapes(self, count):
        return wait_for(lambda: len([target for target in (self.ask("targets") or {}).get("activeTargets", [])
                                     if target["health"] == "up"]) == count, 60)

    def firing(self, server):
        instance = "127.0.0.1:%d" % server.port
        return {alert["labels"]["alertname"] for alert in (self.ask("alerts") or {}).get("alerts", [])
                if alert["state"] == "firing" and alert["labels"].get("instance") == instance}

    def wait_for_alert(self, server, name, seconds=60):
        return check(wait_for(lambda: name in self.firing(server), seconds, 0.5), name + " fires",
                     "firing: %s" % self.firing(server))


def damaged_data():
    """A data directory whose day has lost its beginning."""
    server = Server(data="damaged", log="damaged.log")
    report(server, "h", 1)
    server.stop()
    for path in glob.glob(WORK + "/damaged/samples-*.db"):
        with open(path, "r+b") as file:
            file.write(b"\0" * 4096)


def small_file_system():
    """A file system with little room, as a folder; False where none can be made."""
    path = WORK + "/small"
    os.makedirs(path)
    return subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", path], capture_output=True).returncode == 0


def metrics_lint():
    server = Server(data="lint", log="lint.log")
    report(server, "h1", 1)
    for number in range(40):
        report(server, "v%d" % number, 1, version="9.%d" % number)
    text = server.get("/metrics")[2]
    check(b'agents_by_version{version="other"} 25' in text, "made-up versions have 16 places, the others are counted together",
          text.decode()[:3000])
    tried = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True)
    equal((tried.returncode, tried.stderr + tried.stdout), (0, b""), "promtool check metrics has nothing to say")
    tried = subprocess.run(["promtool", "check", "rules", RULES], capture_output=True)
    equal(tried.returncode, 0, "promtool check rules accepts the shipped rules")
    names = set(re.findall(r"farflame_server_\w+", open(RULES, encoding="utf-8").read()))
    missing = sorted(name for name in names if name.encode() not in text)
    equal(missing, [], "every metric of the rules is there, on a server that has seen one report")


def ask_all_the_time(server, stop):
    while not stop.is_set():
        try:
            server.get("/api/v1/flamegraph", type="on-cpu", from_="now-15m", format="json")
        except OSError:
            pass


def alerts_fire():
    damaged_data()
    has_small = small_file_system()
    try:
        fire_each(has_small)
    finally:
        if has_small:
            subprocess.run(["umount", "-l", WORK + "/small"], check=False)


def fire_each(has_small):
    server = Server("--queries", "1")
    damaged = Server(data="damaged", log="damaged.log")
    small = Server(data="small/data", log="small.log") if has_small else None
    servers = [server, damaged] + ([small] if small else [])
    prometheus = Prometheus(servers)
    if not check(prometheus.scrapes(len(servers)), "Prometheus scrapes the servers"):
        return
    report(server, "silent", 1, samples=1)
    silent_since = time.monotonic()
    prometheus.wait_for_alert(damaged, "FarflameDataDamaged")
    for _ in range(5):  # some scrapes and evaluations more
        time.sleep(1)
        if not equal(prometheus.firing(server), set(), "nothing fires for the sound server"):
            break
    report(server, "clock", 1, sent_ns=time.time_ns() + 60 * 10**9)
    prometheus.wait_for_alert(server, "FarflameClockWrong")
    for seq in (1, 2):
        report(server, "lacks", seq, **{"lacks.bpf": 1})
    prometheus.wait_for_alert(server, "FarflameAgentLacks")
    for seq in range(1, 60):
        report(server, "loses", seq, lost=seq * 500, is_named=False)
        time.sleep(0.5)
        if {"FarflameSamplesLost", "FarflameNamesMissing"} <= prometheus.firing(server):
            break
    for name in ("FarflameSamplesLost", "FarflameNamesMissing"):
        prometheus.wait_for_alert(server, name, 5)
    stop = threading.Event()
    threads = [threading.Thread(target=ask_all_the_time, args=(server, stop)) for _ in range(48)]
    for thread in threads:
        thread.start()
    prometheus.wait_for_alert(server, "FarflameOverloaded", 90)
    stop.set()
    for thread in threads:
        thread.join()
    if small:
        with open(WORK + "/small/filler", "wb") as file:
            file.write(b"x" * (50 << 20))
        prometheus.wait_for_alert(small, "FarflameDiskNearlyFull", 90)
    report_age = time.monotonic() - silent_since
    prometheus.wait_for_alert(server, "FarflameAgentSilent", max(60, 120 - report_age))


if subprocess.run(["which", "prometheus", "promtool"], capture_output=True).returncode:
    skip_all("prometheus is not installed")
run(metrics_lint, alerts_fire)
