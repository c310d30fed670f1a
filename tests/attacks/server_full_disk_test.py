# SPDX-License-Identifier: Apache-2.0
"""A server on a full disk starts, answers questions, and is left by deleting samples or by retention: nothing that was
acknowledged is lost. Needs root: the disk is a small tmpfs."""
import os
import random
import subprocess
import sys
import time

sys.path.insert(0, "tests/tools")
import otlp  # noqa: E402
from harness import BUILD, WORK, Server, check, end, equal, free_port, note, run, skip_all, start, wait_for  # noqa: E402
from otlp_writer import Request  # noqa: E402

PERIOD, DAY_NS, MIB = 10101010, 86400 * 10**9, 1 << 20
STACKS = 1500
DISK = WORK + "/disk"


def report(number, when_ns, host="h"):
    """STACKS samples of stacks that nobody else has."""
    pick = random.Random(number)
    made = Request(BUILD)
    profile = made.profile(made.resource(**{"host.name": host, "farflame.process": "steady"}), time_ns=when_ns,
                           profile_id=b"disk%08d" % number + bytes(4))
    mapping = made.mapping("libheavy.so", "%040x" % 7)
    for _ in range(STACKS):
        made.sample(profile, [("native", mapping, pick.randrange(1 << 40)) for _ in range(4)], [1, PERIOD],
                    thread="r%d" % number)
    return made.bytes()


def mount(size):
    os.makedirs(DISK, exist_ok=True)
    subprocess.run(["umount", "-l", DISK], capture_output=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=" + size, "tmpfs", DISK], check=True)


def free_bytes():
    disk = os.statvfs(DISK)
    return disk.f_bavail * disk.f_frsize


def fill(name="filler"):
    """To the last block."""
    with open(DISK + "/" + name, "ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
    check(free_bytes() < 8192, "the disk is full to its last block", free_bytes())


class OnDisk(Server):
    """Ready for queries is enough."""

    def is_ready(self):
        if self.process.poll() is not None:
            raise RuntimeError("the server ended with %s" % self.process.returncode)
        try:
            return self.get("/readyz", timeout=2, for_="queries")[0] == 200
        except OSError:
            return False

    def samples(self, days=30):
        rows = self.json("/api/v1/types", from_="now-%dd" % days, until="now+1h")["types"]
        return sum(row["samples"] for row in rows)

    def said(self):
        return open(WORK + "/" + self.log, errors="replace").read()


def serve(*arguments, log):
    return OnDisk("--retention", "20d", *arguments, data="disk/data", log=log)


def fill_by_reports(server):
    """Reports of ten days ago, in their file, and then of now, until one is refused. Returns how many were
    acknowledged: of the old day, of all; and the refusal's status."""
    old, number = time.time_ns() - 10 * DAY_NS, 0
    while free_bytes() > 14 * MIB:
        for _ in range(30):
            equal(server.post(report(number, old))[0], 200, "a report") if number == 0 else \
                server.post(report(number, old))
            number += 1
        server.stop()
        server.start()
    taken = number
    fill()
    while taken < number + 1000:
        status = server.post(report(taken, time.time_ns()))[0]
        if status != 200:
            break
        taken += 1
    note("%d and %d reports of %d stacks were acknowledged" % (number, taken - number, STACKS))
    return number, taken, status


def read_only(server, taken, what):
    status, headers, body = server.get("/readyz")
    check(status == 503 and b"reports are refused" in body, what + ": /readyz says that reports are refused", body)
    status, headers, _ = server.post(report(5000, time.time_ns()))
    equal((status, bool(headers.get("Retry-After"))), (503, True), what + ": a report is answered 503, with Retry-After")
    equal(server.get("/")[0], 200, what + ": the page is there")
    equal(server.get("/readyz", for_="queries")[0], 200, what + ": /readyz?for=queries is 200")
    equal(server.samples(), taken * STACKS, what + ": all that was acknowledged is shown")


def is_short(server):
    return b"has no space left" in server.get("/readyz")[2]


def left_by_deleting():
    mount("40m")
    server = serve(log="fill.log")
    old, taken, status = fill_by_reports(server)
    equal(status, 503, "the disk fills up: a report is refused")
    server.kill()
    server = serve(log="full.log")
    while taken < 1000 and not is_short(server):
        taken += server.post(report(taken, time.time_ns()))[0] == 200  # what fits into a file that was there
    read_only(server, taken, "started on a full disk")
    time.sleep(3)
    read_only(server, taken, "and three seconds later")
    lines = server.said().splitlines()
    check(len(lines) < 25, "its log is short", "\n".join(lines))
    status, _, body = server.request("DELETE", "/api/v1/samples?all=true&from=now-11d&until=now-9d", timeout=60)
    equal(status, 200, "DELETE of the old day is done")
    note(body.decode().strip())
    check(wait_for(lambda: server.post(report(6000, time.time_ns()))[0] == 200, 40), "then reports are taken again",
          "%d bytes are free\n%s" % (free_bytes(), server.said()[-2000:]))
    equal(server.get("/readyz")[0], 200, "/readyz is 200")
    equal(server.samples(), (taken - old + 1) * STACKS, "what was not deleted is there, and the new report")
    equal(server.stop()[0], 0, "the server ends well")
    verify()


def left_by_retention():
    mount("40m")
    server = serve(log="fill2.log")
    old, taken, status = fill_by_reports(server)
    equal(status, 503, "again the disk is full")
    server.kill()
    for name in ("reserve", "reserve.new"):
        if os.path.exists(DISK + "/data/" + name):
            os.unlink(DISK + "/data/" + name)
    fill("filler2")
    server = serve("--retention", "2d", log="retention.log")
    check(wait_for(lambda: server.post(report(7000, time.time_ns()))[0] == 200, 40),
          "a start with less --retention, and no reserve: the old day goes, unread, and reports are taken",
          server.said()[-2000:])
    equal(server.samples(), (taken - old + 1) * STACKS, "what is kept is there, and the new report")
    server.stop()
    verify()


def waits_for_room():
    """Neither a reserve nor anything that is due: the start waits, and says so."""
    mount("40m")
    server = serve(log="fill3.log")
    equal(server.post(report(1, time.time_ns()))[0], 200, "a report")
    server.stop()
    os.unlink(DISK + "/data/reserve")
    fill()
    port = free_port()
    process = start([BUILD + "/farflame-server", "--listen", "127.0.0.1:%d" % port, "--data", DISK + "/data"], "waits.log")
    server.process, server.port, server.log = process, port, "waits.log"
    check(wait_for(lambda: b"waits for room" in answer(server, "/readyz")[1], 20), "/readyz says what the start waits for",
          answer(server, "/readyz"))
    equal(answer(server, "/healthz")[0], 200, "/healthz is 200")
    for path in ("/api/v1/types", "/", "/metrics"):
        status, body = answer(server, path)
        check(status == 503 and b"starting" in body, "%s: 503, starting" % path, body[:300])
    equal(server.post(report(2, time.time_ns()))[0], 503, "a report: 503")
    check(wait_for(lambda: "starting address=" in server.said(), 10) and "waits for room" in server.said(),
          "the log says so after two seconds", server.said())
    os.unlink(DISK + "/filler")
    check(wait_for(lambda: answer(server, "/readyz")[0] == 200, 20), "with room it goes on", server.said())
    equal(server.samples(), STACKS, "and has what it had")
    equal(end(process)[0], 0, "it ends well")
    mount("40m")
    fill()
    process = start([BUILD + "/farflame-server", "--listen", "127.0.0.1:%d" % port, "--data", DISK], "new.log")
    server.process, server.log = process, "new.log"
    check(wait_for(lambda: b"waits for room" in answer(server, "/readyz")[1], 20), "a new directory on a full disk waits too")
    equal(end(process)[0], 0, "SIGTERM ends a start that waits")


def answer(server, path):
    try:
        status, _, body = server.get(path, timeout=5)
        return status, body
    except OSError:
        return 0, b""


def verify():
    done = subprocess.run([BUILD + "/farflame-server", "--data", DISK + "/data", "--verify"], capture_output=True, text=True)
    equal(done.returncode, 0, "--verify finds nothing")
    if done.returncode:
        note(done.stdout)


if __name__ == "__main__":
    if os.geteuid():
        skip_all("needs root")
    otlp.messages(BUILD)
    os.makedirs(DISK, exist_ok=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", DISK], capture_output=True).returncode:
        skip_all("mounting a tmpfs is not permitted here")
    subprocess.run(["umount", "-l", DISK], check=True)
    try:
        run(left_by_deleting, left_by_retention, waits_for_room)
    finally:
        subprocess.run(["umount", "-l", DISK], capture_output=True)
