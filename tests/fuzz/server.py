#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/fuzz/server.py SERVER [SECONDS]: mutated requests at a whole server that was built with ASan and UBSan: reports,
questions, symbolicate, uploads, modules, and heads of HTTP. It must go on, answer each with a status below 500 (503 where
it has no room), and end without a sanitizer's word. SEED= repeats the order of what one thread sends; what was sent last
before a fault is kept in the folder `found` beside SERVER."""
import glob
import gzip
import http.client
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
WORDS = ("ERROR: AddressSanitizer", "runtime error:", "LeakSanitizer", "Sanitizer:DEADLYSIGNAL")
NUMBERS = ("", "0", "-1", "1", "now", "now-15m", "now-30d", "now+1h", "9223372036854775807", "18446744073709551616", "1e308", "nan",
           "1795477380000", "2026-11-23T23:43:00Z", "1s", "10s", "0s", "999999999d", "%00", "a" * 5000)
TEXTS = ("on-cpu", "off-cpu", "mem-alloc", "json", "columns", "folded", "svg", "html", "pprof", "csv", "md", "speedscope", "samples",
         "true", "false", "process", "host", "thread", ".*", "^(a|b)+$", "((((((", "\u202e\x9b", "main", "a/b/c", "[cut]",
         '{process="a"}', '{process=~".*",host!="b"}', '{a="', "{" + ",".join('x!="%d"' % i for i in range(40)) + "}")
GOOD = {"type": ("on-cpu",), "from": ("2020-01-01T00:00:00Z", "now-30d"), "until": ("now",), "match": ('{process=~".*"}', '{host!="x"}'),
        "group_by": ("process", "host,process", "thread"), "focus": ("main", "."), "ignore": ("main",), "hide": ("^_",),
        "hide_kind": ("kernel",), "invert": ("true",), "value": ("samples", "value"), "stack_ids": ("true",), "errors": ("true",), "max_nodes": ("10", "100000"),
        "limit": ("10", "1000"), "format": ("json", "columns", "folded", "svg", "html", "pprof", "csv", "md", "speedscope", "otlp"),
        "function": ("main",), "step": ("1m", "1h"), "demangle": ("full", "none"), "base.from": ("now-60d",), "base.until": ("now-30d",),
        "norm": ("share", "raw"), "sort": ("self", "total"), "name": ("process", ".text"), "exact": ("true",)}
KEPT = 64  # requests a thread remembers


def seeds(*names):
    found = []
    for name in names:
        for path in sorted(glob.glob(os.path.join(ROOT, name))):
            data = open(path, "rb").read()
            found.append(gzip.decompress(data) if path.endswith(".gz") else data)
    return found or [b""]


REPORTS = seeds("tests/golden/otlp/*.bin", "deploy/recorded/*.otlp.gz", "tests/fuzz/corpus/otlp*/*", "tests/fuzz/corpus/spans/*")
DOCUMENTS = seeds("tests/fuzz/corpus/symbolicate/*")
FILES = seeds("tests/fuzz/corpus/dwarf/*", "tests/fuzz/corpus/elf_*/*", "tests/fuzz/corpus/upload_sniff/*", "tests/fuzz/corpus/go_*/*",
              "tests/fuzz/corpus/kallsyms/*", "tests/fuzz/corpus/symbol_list/*")
IDS = ("0123456789abcdef0123456789abcdef01234567", "00", "zz", "ab" * 64, "..%2f..%2fetc%2fpasswd")


def questions():
    """{path: [its parameters]}, of schema/rest/openapi.yaml"""
    found, path = {}, None
    for line in open(os.path.join(ROOT, "schema/rest/openapi.yaml")):
        parameter = re.search(r"#/components/parameters/([\w.]+)|\bname: ([\w.]+)", line)
        if re.match(r"\w", line):
            path = None
        elif re.match(r"  /\S*:$", line):
            path = line.strip()[:-1]
        elif re.match(r"    \w+:$", line):
            is_asked = line.strip() == "get:"
            if path and is_asked:
                found[path] = []
        elif path and parameter and is_asked:
            found[path].append(parameter.group(1) or parameter.group(2))
    return found


QUESTIONS = questions()


def mutate(data, chance):
    data = bytearray(data)
    for _ in range(chance.choice((0, 1, 1, 2, 4, 16))):
        at = chance.randrange(len(data) + 1)
        how = chance.randrange(6)
        if how == 0 and at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        elif how == 1 and at < len(data):
            data[at] = chance.choice((0, 1, 0x7f, 0x80, 0xff, chance.randrange(256)))
        elif how == 2:
            del data[at:at + chance.choice((1, 2, 8, 4096))]
        elif how == 3:
            data[at:at] = bytes(chance.choices(range(256), k=chance.choice((1, 4, 10))))
        elif how == 4:
            other = chance.choice(REPORTS + DOCUMENTS + FILES)
            begin = chance.randrange(len(other) + 1)
            data[at:at] = other[begin:begin + chance.randrange(200)]
        else:
            begin = chance.randrange(len(data) + 1)
            data[at:at] = data[begin:begin + chance.randrange(500)]
    return bytes(data)


def question(chance):
    path = chance.choice(list(QUESTIONS))
    names = QUESTIONS[path]
    path = re.sub(r"\{\w+\}", lambda _: chance.choice(IDS + ("process", "1", ".debug_info")), path)
    pairs = {}
    if "type" in names:
        pairs["type"] = "on-cpu"
    for name in chance.sample(names, min(len(names), chance.randrange(7))):
        pairs[name] = chance.choice(GOOD[name] if name in GOOD and chance.random() < 0.9 else NUMBERS + TEXTS)
    return "GET", path + ("?" + urllib.parse.urlencode(pairs) if pairs else ""), None, {}


def report(chance):
    body, headers = mutate(chance.choice(REPORTS), chance), {"Content-Type": "application/x-protobuf"}
    if chance.random() < 0.3:
        body, headers["Content-Encoding"] = gzip.compress(body, 1), "gzip"
        body = mutate(body, chance) if chance.random() < 0.5 else body
    return "POST", "/v1development/profiles", body, headers


def document(chance):
    path = chance.choice(("/symbolicate/v5", "/api/v1/modules"))
    return "POST", path, mutate(chance.choice(DOCUMENTS), chance), {"Content-Type": "application/json"}


def upload(chance):
    number = chance.choice((chance.choice(IDS), bytes(chance.choices(range(256), k=20)).hex()))
    if chance.random() < 0.2:
        return "DELETE", "/api/v1/modules/" + number, None, {}
    return "PUT", "/api/v1/modules/" + number, mutate(chance.choice(FILES), chance), {"Content-Type": "application/octet-stream"}


def head(chance):
    method, path, body, headers = chance.choice((question, report, document))(chance)
    lines = ["%s %s HTTP/1.1" % (method, path), "Host: 127.0.0.1", "Connection: close"]
    lines += ["%s: %s" % pair for pair in headers.items()]
    lines += ["Content-Length: %d" % len(body or b"")] if chance.random() < 0.7 else ["Transfer-Encoding: chunked"]
    return mutate("\r\n".join(lines).encode(errors="replace") + b"\r\n\r\n", chance) + (body or b"")


class Fault(Exception):
    pass


class Sender(threading.Thread):
    def __init__(self, port, seed, deadline):
        super().__init__()
        self.port, self.deadline, self.chance = port, deadline, random.Random(seed)
        self.count, self.statuses, self.kept, self.fault = 0, {}, [], None

    def run(self):
        try:
            while time.monotonic() < self.deadline:
                self.one()
                self.count += 1
        except Exception as error:  # noqa: BLE001
            self.fault = "%s: %s" % (type(error).__name__, error)

    def one(self):
        kind = self.chance.choices((report, question, document, upload, head), (30, 50, 8, 8, 4))[0]
        made = kind(self.chance)
        self.kept = self.kept[-KEPT + 1:] + [repr(made)]
        status = self.raw(made) if kind is head else self.ask(*made)
        self.statuses[status] = self.statuses.get(status, 0) + 1
        if status >= 500 and status != 503 and kind is not head:  # 505 is for a version of HTTP
            raise Fault("status %d" % status)

    def ask(self, method, path, body, headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            answer.read()
            return answer.status
        except (http.client.HTTPException, BrokenPipeError, ConnectionResetError):
            return 0  # an end in the midst of a body that is refused
        finally:
            connection.close()

    def raw(self, data):
        with socket.create_connection(("127.0.0.1", self.port), timeout=120) as connection:
            try:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                first = connection.makefile("rb").readline(100)
            except (BrokenPipeError, ConnectionResetError, OSError):
                return 0
        words = first.split()
        return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0


def resident_mib(pid):
    return int(re.search(r"VmHWM:\s+(\d+)", open("/proc/%d/status" % pid).read()).group(1)) >> 10


def start(program, work):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = open(os.path.join(work, "server.log"), "wb")
    process = subprocess.Popen([program, "--listen", "127.0.0.1:%d" % port, "--data", os.path.join(work, "data"), "--retention", "0s",
                                "--upload-disk", "256M"], stdout=log, stderr=log, start_new_session=True)
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return process, port
        except OSError:
            time.sleep(0.1)
            if process.poll() is not None:
                break
    process.kill()
    raise SystemExit("the server does not start: " + open(log.name, errors="replace").read()[-1000:])


def main():
    program, seconds = os.path.abspath(sys.argv[1]), int(sys.argv[2] if len(sys.argv) > 2 else 60)
    found = os.path.join(os.path.dirname(program), "found")
    work = os.path.join(os.path.dirname(program), "server-fuzz")
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    os.makedirs(found, exist_ok=True)
    seed = int(os.environ.get("SEED", str(time.time_ns() & 0xffffffff)))
    process, port = start(program, work)
    senders = [Sender(port, seed + i, time.monotonic() + seconds) for i in range(os.cpu_count() + 1)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    faults = [sender.fault for sender in senders if sender.fault]
    peak = resident_mib(process.pid) if process.poll() is None else 0
    if process.poll() is not None:
        faults.append("the server ended with %s" % process.returncode)
    else:
        process.send_signal(signal.SIGTERM)
        if process.wait(120) != 0:
            faults.append("the server ended with %s" % process.returncode)
    text = open(os.path.join(work, "server.log"), errors="replace").read()
    faults += [line for line in text.splitlines() if any(word in line for word in WORDS)][:5]
    statuses = {}
    for sender in senders:
        for status, count in sender.statuses.items():
            statuses[status] = statuses.get(status, 0) + count
    print("%d requests in %d s (SEED=%d), at most %d MiB with the sanitizers' own, by status: %s" % (
        sum(sender.count for sender in senders), seconds, seed, peak,
        ", ".join("%s %d" % pair for pair in sorted(statuses.items()))))
    for sender in senders if faults else ():
        open(os.path.join(found, "server-%d.requests" % sender.chance.getrandbits(32)), "w").write("\n".join(sender.kept))
    for fault in faults:
        print("  not ok - " + fault)
    print("%d passed, %d failed, 0 skipped" % (not faults, bool(faults)))
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
