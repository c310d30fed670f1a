# SPDX-License-Identifier: Apache-2.0
"""What a server meets in a long life: a full disk, damaged files, midnight, retention, a file imported twice."""
import glob
import gzip
import os
import subprocess
import sys
import threading
import time

from harness import BUILD, WORK, Server, check, end, equal, note, run, skip, start, wait_for

sys.path.insert(0, "tests/tools")
import otlp  # noqa: E402
from otlp_writer import Request  # noqa: E402

PERIOD = 10101010
DAY_NS = 86400 * 10**9


def report(number, when_ns=None, threads=1, process="steady"):
    made = Request(BUILD)
    profile = made.profile(made.resource(**{"host.name": "h", "farflame.process": process}), time_ns=when_ns,
                           profile_id=b"fault%07d" % number + bytes(4))
    for i in range(threads):
        frames = [("native", made.mapping("lib%d.so" % (i % 9), "%040x" % (i % 9 + 1)), (number << 20) + 64 * i + k)
                  for k in range(20)]
        made.sample(profile, frames, [1, PERIOD], thread="r%d" % number)
    return made.bytes()


def acknowledged_are_there(server, numbers, threads, when):
    shown = {}
    for frames, value in server.folded(group_by="thread", from_="now-3h"):
        shown[frames[0]] = shown.get(frames[0], 0) + value
    equal(shown, {"r%d" % n: threads for n in numbers}, when)


def full_disk():
    disk = os.path.join(WORK, "disk")
    os.makedirs(disk)
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256m", "tmpfs", disk],
                                           capture_output=True).returncode:
        return skip("mounting a small tmpfs is not permitted here")
    try:
        server = Server("--query-memory", "2G", data="disk", log="disk.log")
        equal(server.post(report(0, threads=100))[0], 200, "room: taken")
        with open(disk + "/ballast", "wb") as ballast:
            try:
                while True:
                    ballast.write(bytes(1 << 16))
                    ballast.flush()
            except OSError:
                pass
        taken, refused = [0], []
        for number in range(1, 1000):
            status, headers, body = server.post(report(number, threads=700))
            if status == 200:
                taken.append(number)
            else:
                refused.append((number, status, headers.get("Retry-After"), body))
                if len(refused) > 5:
                    break
        check(refused, "with the disk full reports are refused at some point", len(taken))
        message = otlp.messages(BUILD).Status()
        message.ParseFromString(refused[0][3] if refused else b"")
        note("after %d: %s %s" % (len(taken), refused[:1], message.message))
        check(all(r[1] == 503 and r[2] for r in refused), "with 503 and Retry-After", refused)
        check("space" in message.message, "and a sentence", message.message)
        equal(server.get("/healthz")[0], 200, "the server lives")
        acknowledged = {f[0] for f, _ in server.folded(group_by="thread", from_="now-3h")}
        equal(acknowledged, {"r%d" % n for n in taken}, "what was acknowledged is shown, what was refused is not")
        status = server.request("PUT", "/api/v1/modules/" + "ab" * 20, open(BUILD + "/farflame-server", "rb").read(),
                                {"Content-Type": "application/octet-stream"})
        check(status[0] == 503 and status[1].get("Retry-After") and b'"error"' in status[2], "an upload is answered with a sentence", status)
        os.unlink(disk + "/ballast")
        number = refused[0][0]
        check(wait_for(lambda: server.post(report(number, threads=400))[0] == 200, 60), "with room again: taken")
        taken.append(number)
        server.kill()
        server.start()
        shown = {f[0] for f, _ in server.folded(group_by="thread", from_="now-3h")}
        equal(shown, {"r%d" % n for n in taken}, "and after SIGKILL everything acknowledged is there")
        check(wait_for(lambda: server.post(report(1900))[0] == 200, 20), "the next report is taken",
              open(WORK + "/disk.log").read()[-1500:])
        end(server.process)
    finally:
        subprocess.run(["umount", "-l", disk])


def damaged():
    """Each file in turn is overwritten: the server starts, says what it did, and takes reports."""
    server = Server(data="damaged", log="damaged.log")
    equal(server.post(report(1))[0], 200, "taken")
    check(wait_for(lambda: len(glob.glob(WORK + "/damaged/samples-*.db")) == 1, 60), "one day's file",
          os.listdir(WORK + "/damaged"))
    server.stop()
    when = 10
    for pattern in ("samples-*.db", "agents.db", "symbols.db", "journal/*"):
        for how in ("noise", "short", "empty"):
            for path in glob.glob(os.path.join(WORK, "damaged", pattern)):
                size = os.path.getsize(path)
                for more in ("-wal", "-shm"):
                    if os.path.exists(path + more):
                        os.unlink(path + more)
                with open(path, "r+b") as file:
                    if how == "noise":
                        file.write(os.urandom(min(size, 9000)))
                    else:
                        file.truncate(size // 2 if how == "short" else 0)
            what = "%s: %s" % (pattern, how)
            try:
                server.start()
            except RuntimeError as error:
                check(False, what + ": the server starts", error)
                return
            when += 1
            equal(server.post(report(when))[0], 200, what + ": a report is taken")
            shown = {f[0] for f, _ in server.folded(group_by="thread", from_="now-3h")}
            check("r%d" % when in shown, what + ": and shown", shown)
            for path in ("modules", "agents", "labels", "types"):
                equal(server.get("/api/v1/" + path)[0], 200, what + ": /" + path)
            equal(server.stop()[0], 0, what + ": the server ends in order")
    log = open(WORK + "/damaged.log").read()
    note("what it says: %s" % [line for line in log.splitlines() if line.startswith(("warn", "error"))][:12])


def midnight():
    """Profiles around the change of a day, in one request and in one range."""
    server = Server("--retention", "4d", data="midnight")
    midnight_ns = time.time_ns() // DAY_NS * DAY_NS
    made = Request(BUILD)
    resource = made.resource(**{"host.name": "h", "farflame.process": "owl"})
    frames = [("native", made.mapping("libowl.so", "12" * 20), 0x10)]
    offsets = (-DAY_NS, -2 * 60 * 10**9, -1, 0, 1)
    for i, offset in enumerate(offsets):
        made.sample(made.profile(resource, time_ns=midnight_ns + offset, profile_id=b"m%015d" % i), frames, [10 ** i, 1])
    if time.time_ns() - midnight_ns > 60 * 10**9:
        equal(server.post(made.bytes())[0], 200, "five profiles of two days in one request")
    seconds = midnight_ns // 10**9
    total = lambda a, b: server.flamegraph(from_=str(a), until=str(b))["nodes"]["total"][0]  # noqa: E731
    for restarted in (False, True):
        equal(total(seconds - 86400, seconds + 60), 11111, "all of them in one range")
        equal(total(seconds - 60, seconds - 1), 100, "the last minute of the day alone")
        equal(total(seconds, seconds + 1), 11000, "the first minute of the next")
        equal(server.post(made.bytes())[0], 200, "the same again")
        if not restarted:
            server.kill()
            server.start()
    # One day is folded after the other.
    check(wait_for(lambda: len(glob.glob(WORK + "/midnight/samples-*.db")) in (0, 2), 30), "a file per day once folded",
          glob.glob(WORK + "/midnight/samples-*.db"))
    server.stop()
    equal(len(glob.glob(WORK + "/midnight/samples-*.db")), 2, "two days, two files")
    server = Server("--retention", "1d", data="midnight", log="retention.log")
    check(wait_for(lambda: len(glob.glob(WORK + "/midnight/samples-*.db")) <= 2, 10), "a shorter retention deletes days")
    equal(total(seconds, seconds + 1), 11000, "today's stay")


def disk_limit():
    """Days are deleted, oldest first, while somebody asks for them."""
    server = Server("--retention", "0s", data="limit")
    for day in range(6):
        equal(server.post(report(day, time.time_ns() - day * DAY_NS, threads=3000))[0], 200, "day %d" % day)
    server.stop()
    sizes = {os.path.basename(p): os.path.getsize(p) for p in glob.glob(WORK + "/limit/samples-*.db")}
    equal(len(sizes), 6, "six days")
    limit = sum(sorted(sizes.values())) // 2
    server = Server("--retention", "0s", "--max-disk", str(limit), data="limit")
    stop, statuses = threading.Event(), []

    def ask():
        while not stop.is_set():
            statuses.append(server.get("/api/v1/flamegraph", from_="now-8d")[0])

    thread = threading.Thread(target=ask)
    thread.start()
    left = wait_for(lambda: len(glob.glob(WORK + "/limit/samples-*.db")) < 6, 10)
    stop.set()
    thread.join()
    check(left, "max-disk deletes days")
    names = sorted(os.path.basename(p) for p in glob.glob(WORK + "/limit/samples-*.db"))
    equal(names, sorted(sizes)[-len(names):], "the oldest ones")
    equal(set(statuses), {200}, "queries meanwhile are answered")


def imports():
    path = os.path.join(WORK, "file.otlp")
    with open(path, "wb") as file:
        file.write(report(1, threads=50) + report(2, threads=50, process="other"))
    with open(path + ".gz", "wb") as file:
        file.write(gzip.compress(open(path, "rb").read()))
    for name in (path, path + ".gz"):
        server = Server("--import", name, "--import", name, data="imports")
        equal(sum(v for _, v in server.folded()), 100, "%s, twice: counted once" % os.path.basename(name))
        server.stop()
    for text, what in ((b"hello", "a text"), (b"\x1f\x8b\x08", "a torn gzip")):
        with open(path, "wb") as file:
            file.write(text)
        done = subprocess.run([BUILD + "/farflame-server", "--listen", "127.0.0.1:0", "--data", WORK + "/imports2",
                               "--import", path], capture_output=True, text=True, timeout=20)
        check(done.returncode == 1 and path in done.stderr, what + ": status 1 and a sentence", done.stderr)
    done = subprocess.run([BUILD + "/farflame-server", "--listen", "127.0.0.1:0", "--data", WORK + "/imports2",
                           "--import", path + ".none"], capture_output=True, text=True, timeout=20)
    check(done.returncode == 1 and "No such file" in done.stderr, "no such file: so too", done.stderr)


if __name__ == "__main__":
    run(full_disk, damaged, midnight, disk_limit, imports)
