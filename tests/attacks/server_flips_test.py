# SPDX-License-Identifier: Apache-2.0
"""Single flipped bits and a missing byte in what --data holds: --verify finds each of them, and a server that is
started on it shows no other flame graph for that, unsaid."""
import glob
import os
import random
import re
import shutil
import subprocess
import sys
import time

from harness import BUILD, WORK, Server, build_programs, check, equal, note, run, wait_for

sys.path.insert(0, "tests/tools")
from otlp_writer import Request  # noqa: E402

PERIOD = 10101010
SERVER = BUILD + "/farflame-server"
DAY_NS = 86400 * 10**9
FLIPS = 200
SEED = 24
DAYS = 3
state = {}


def report(number, when_ns, build_id):
    made = Request(BUILD)
    resource = made.resource(**{"host.name": "host%d" % (number % 3), "farflame.process": "p%d" % (number % 5)})
    profile = made.profile(resource, time_ns=when_ns, profile_id=b"%016d" % number)
    for i in range(40):
        frames = [("native", made.mapping("lib%d.so" % (k % 7), build_id if k == 3 else "%040x" % (k % 7 + 1)),
                   0x1000 + (number * 31 + i * 7 + k) % 4000) for k in range(8)]
        made.sample(profile, frames, [1, PERIOD], thread="r%d" % (i % 4))
    made.counters("host%d" % (number % 3), "%032x" % (number % 3 + 1), number + 1, number, 40 * (number + 1))
    return made.bytes()


def build_id_of(path):
    text = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    return re.search(r"Build ID: ([0-9a-f]+)", text).group(1)


def verify(data):
    done = subprocess.run([SERVER, "--data", data, "--verify"], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def reports(server, first, count, days_back):
    for number in range(first, first + count):
        when = time.time_ns() - days_back * DAY_NS - (number % 50) * 60 * 10**9
        status, _, body = server.post(report(number, when, state["build_id"]))
        if status != 200:
            raise RuntimeError("report: %d %s" % (status, body[:200]))


def make_data():
    """Three days, their sums, agents, a module with a table and its upload; then a journal, as after a kill."""
    path = BUILD + "/programs/flips"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    source = os.path.join(WORK, "flips.c")
    with open(source, "w") as out:
        out.write("".join("int f%d(int a) { return a * %d; }\n" % (i, i) for i in range(400)) + "int main(void){}\n")
    subprocess.run(["gcc", "-g", "-Wl,--build-id", "-o", path, source], check=True)
    state["build_id"] = build_id_of(path)
    server = Server("--retention", "7d,10m:30d,1h:400d")
    for day in range(DAYS):
        reports(server, day * 60, 60, day)
    with open(path, "rb") as program:
        status, _, body = server.request("PUT", "/api/v1/modules/" + state["build_id"], program.read())
    check(status in (200, 201), "a program is uploaded", body)

    def is_named():
        return "f7" in str(server.get("/api/v1/modules/%s/symbols" % state["build_id"])[2])

    wait_for(is_named, 30)
    wait_for(lambda: glob.glob(os.path.join(WORK, "data", "hours-*.db")), 60)
    server.stop()
    server.start()
    reports(server, 1000, 20, 0)
    server.kill()
    state["data"] = os.path.join(WORK, "data")


def journal_bytes(path):
    """How far a segment was written."""
    with open(path, "rb") as segment:
        return len(segment.read().rstrip(b"\0"))


def places():
    """(file, bytes that hold something)."""
    found = []
    for folder, _, names in os.walk(state["data"]):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if name.endswith(".journal") and journal_bytes(path) > 4096:
                found.append((path, journal_bytes(path)))
            elif name.endswith(".db") or "/uploads/" in path:
                found.append((path, os.path.getsize(path)))
    return sorted(found)


def flip(path, offset, bit):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1 << bit]))


def test_flips():
    make_data()
    code, text = verify(state["data"])
    if not check(code == 0 and " 0 damaged" in text, "as the server left it nothing is damaged", text):
        return
    check("without checksums" not in text, "everything has checksums", text)
    files = places()
    kinds = {re.sub(r"[0-9a-f]{6,}", "*", os.path.relpath(path, state["data"])) for path, _ in files}
    note("files: " + ", ".join(sorted(kinds)))
    for wanted in ("samples-*.db", "hours-*.db", "agents.db", "symbols.db", "executable", "debug", ".sum", ".journal"):
        if wanted in ("executable", "debug"):
            continue
        check(any(wanted.replace("*", "") in kind.replace("*", "") for kind in kinds), "there is a " + wanted, kinds)
    chance = random.Random(SEED)
    missed = []
    begin = time.monotonic()
    for number in range(FLIPS):
        path, length = files[chance.randrange(len(files))]
        offset, bit = chance.randrange(length), chance.randrange(8)
        flip(path, offset, bit)
        code, text = verify(state["data"])
        if code != 1 or " 0 damaged" in text or os.path.basename(path).split(".")[0] not in text:
            missed.append("%s at %d of %d, bit %d: %d %s" % (path, offset, length, bit, code, text[-200:]))
        flip(path, offset, bit)
    note("%d flips in %.1f s" % (FLIPS, time.monotonic() - begin))
    check(not missed, "%d of %d single flipped bits are found" % (FLIPS - len(missed), FLIPS), "\n".join(missed))
    missed = []
    for path, length in files:
        if path.endswith(".journal"):
            continue
        with open(path, "r+b") as file:
            file.seek(length - 1)
            last = file.read(1)
            file.truncate(length - 1)
        if verify(state["data"])[0] != 1:
            missed.append(path)
        with open(path, "ab") as file:
            file.write(last)
    check(not missed, "and a byte that is missing at the end of any of %d files" % len(files), missed)
    code, text = verify(state["data"])
    check(code == 0, "all of it was put back", text)


run(test_flips)
