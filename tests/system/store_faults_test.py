# SPDX-License-Identifier: Apache-2.0
"""What is answered 200 is on disk before the answer leaves; disks that fail and clocks that jump cost nothing that was
acknowledged; directories that cannot be used are one sentence."""
import json
import os
import re
import shutil
import subprocess
import sys
import time

from harness import BUILD, PROGRAMS, WORK, Server, build_programs, check, end, equal, note, run, skip, start, wait_for

sys.path.insert(0, "tests/tools")
import otlp  # noqa: E402
from otlp_writer import Request  # noqa: E402

PERIOD = 10101010
DAY = 86400


def report(number, threads=3, when_ns=None):
    made = Request(BUILD)
    profile = made.profile(made.resource(**{"host.name": "h", "farflame.process": "steady"}), time_ns=when_ns,
                           profile_id=b"store%07d" % number + bytes(4))
    for i in range(threads):
        frames = [("native", made.mapping("lib%d.so" % (i % 9), "%040x" % (i % 9 + 1)), 0x1000 + 64 * i)]
        made.sample(profile, frames, [1, PERIOD], thread="r%d" % number)
    return made.bytes()


def equal_reports(server, numbers, what, threads=3):
    shown = {}
    for frames, value in server.folded(group_by="thread", from_="now-5d", until="now+1d"):
        shown[frames[0]] = shown.get(frames[0], 0) + value
    equal(shown, {"r%d" % n: threads for n in numbers}, what)


def status_of(body):
    message = otlp.messages(BUILD).Status()
    message.ParseFromString(body)
    return message.message


def synced():
    """strace: before each 200 leaves its socket, a write to the journal and its fdatasync are over."""
    if not shutil.which("strace"):
        return skip("needs strace")
    server = Server(data="synced")
    trace = WORK + "/trace"
    tracer = start(["strace", "-f", "-qq", "-s", "40", "-o", trace, "-e",
                    "trace=pwrite64,pwritev,fdatasync,fsync,sendto,sendmsg,write,writev", "-p", str(server.process.pid)],
                   "strace.log")
    if not wait_for(lambda: tracer.poll() is not None or traced(server.process.pid), 10) or tracer.poll() is not None:
        return skip("strace may not trace here: %s" % open(WORK + "/strace.log").read()[-200:])
    statuses = [server.post(report(n))[0] for n in range(30)]
    end(tracer)
    equal(statuses, [200] * 30, "30 reports, one after the other")
    written, durable = set(), False
    good = bad = 0
    started = {}
    for line in open(trace, errors="replace"):
        pid, _, call = line.partition(" ")
        call = call.strip()
        if "<unfinished" in call:
            started[pid] = call
        if "resumed>" in call:
            call = started.pop(pid, "") + call
        elif "<unfinished" in call and "HTTP/1.1 200" not in call:
            continue
        if call.startswith("pwrite"):
            written.add(call.split("(")[1].split(",")[0])
        elif call.startswith("fdatasync") and re.search(r"= 0$", call):
            durable = durable or call.split("(")[1].split(")")[0].split("<")[0].strip() in written
        elif "HTTP/1.1 200" in call and "resumed>" not in call:
            good, bad = good + durable, bad + (not durable)
            written, durable = set(), False
    equal((good, bad), (30, 0), "each 200 comes after a write and a fdatasync of its own")
    server.stop()


def traced(pid):
    return all("TracerPid:\t0" not in open("/proc/%d/task/%s/status" % (pid, task)).read()
               for task in os.listdir("/proc/%d/task" % pid))


def shim():
    path = BUILD + "/fault_shim.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-D_GNU_SOURCE", "-o", path, "tests/tools/fault_shim.c", "-ldl"],
                   check=True, stdout=sys.stderr)
    os.makedirs(WORK + "/faults", exist_ok=True)
    return {"LD_PRELOAD": path, "FAULTS": WORK + "/faults"}


def put(name, text):
    with open(WORK + "/faults/" + name + ".new", "w") as file:
        file.write(text)
    os.rename(WORK + "/faults/" + name + ".new", WORK + "/faults/" + name)


def shimmed(data):
    os.environ.update(shim())
    try:
        return Server(data=data)
    finally:
        del os.environ["LD_PRELOAD"]


def failing_disk():
    """EIO, a full disk, a file system that became read-only: refused with a sentence, then taken without a restart."""
    shim()
    put("errno", "0")
    server = shimmed("failing")
    taken = []
    for turn, (number, words) in enumerate(((5, "Input/output error"), (28, "No space left"), (30, "Read-only file"))):
        for n in range(3):
            equal(server.post(report(100 * turn + n))[0], 200, "before %s: taken" % words) if n == 0 else \
                server.post(report(100 * turn + n))
            taken.append(100 * turn + n)
        put("errno", str(number))
        answers = [server.post(report(100 * turn + 10 + n)) for n in range(4)]
        equal([a[0] for a in answers], [503] * 4, words + ": refused")
        check(all(a[1].get("Retry-After") for a in answers), "with Retry-After", [dict(a[1]) for a in answers])
        check(all(words in status_of(a[2]) for a in answers), "and the reason", [status_of(a[2]) for a in answers])
        equal(server.get("/healthz")[0], 200, "the server lives")
        equal_reports(server, taken, "what was acknowledged is shown, what was refused is not")
        put("errno", "0")
        for n in range(4):
            check(wait_for(lambda: server.post(report(100 * turn + 10 + n))[0] == 200, 20),
                  "%s is over: the same report is taken" % words)
            taken.append(100 * turn + 10 + n)
        equal_reports(server, taken, "and counted once")
    server.kill()
    server.start()
    equal_reports(server, taken, "after SIGKILL and a start too")
    equal(subprocess.run([BUILD + "/farflame-server", "--data", WORK + "/failing", "--verify"],
                         capture_output=True).returncode, 0, "and --verify finds nothing")
    server.stop()


def fill(place):
    """To the last block, whatever the server gives up meanwhile."""
    with open(place + "/filler", "ab", buffering=0) as file:
        deadline = time.monotonic() + 6
        size = 1 << 20
        while time.monotonic() < deadline:
            try:
                file.write(bytes(size))
            except OSError:
                time.sleep(0.2 if size == 4096 else 0)
                size = 4096


def one_sentence(answer):
    """What an answer that is no success says, as a client would read it."""
    status, headers, body = answer
    if headers.get("Content-Type") == "application/x-protobuf":
        return status_of(body)
    return json.loads(body)["error"]["message"]


def full_everywhere():
    """On a disk without a free block each request that writes is done or answered 503, with Retry-After and one
    sentence; with room again each is done."""
    place = WORK + "/small"
    os.makedirs(place, exist_ok=True)
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=304m", "tmpfs", place],
                                      capture_output=True).returncode:
        return skip("mounting a tmpfs is not permitted here")
    try:
        build_programs("burn", "chain_pie")
        server = Server(data="small/data", log="small.log")
        writes_when_full(server, place)
        server.stop()
    finally:
        subprocess.run(["umount", "-l", place])


def writes_when_full(server, place):
    octets, text = {"Content-Type": "application/octet-stream"}, {"Content-Type": "text/plain"}
    known, new = build_id_of(PROGRAMS + "/burn"), build_id_of(PROGRAMS + "/chain_pie")
    program = open(PROGRAMS + "/burn", "rb").read()
    equal([server.post(report(n))[0] for n in range(3)] + [server.post(report(9, when_ns=time.time_ns() - 5 * DAY * 10**9))[0]],
          [200] * 4, "reports of two days")
    equal(server.request("PUT", "/api/v1/modules/" + known, program, octets)[0], 201, "an upload")
    times = "from=now-%dd&until=now-%dd"
    writes = {
        "a report": lambda: server.post(report(20, threads=3000)),
        "an announcement": lambda: server.request("POST", "/api/v1/modules", "\n".join(
            "%040x gnu program" % (1000 + n) for n in range(9000)), text),
        "an upload": lambda: server.request("PUT", "/api/v1/modules/" + new, open(PROGRAMS + "/chain_pie", "rb").read(), octets),
        "a fetch": lambda: server.request("POST", "/api/v1/modules/%s/fetch" % known, ""),
        "names for a report": lambda: server.request("POST", "/symbolicate/v5", json.dumps(
            {"memoryMap": [["burn", known.upper() + "0"]], "stacks": [[[0, 4096]]]}), {"Content-Type": "application/json"}),
        "the deletion of one label's samples": lambda: server.request(
            "DELETE", "/api/v1/samples?match=%7Bthread%3D%22r1%22%7D&" + times % (1, 0)),
        "the deletion of a day": lambda: server.request("DELETE", "/api/v1/samples?all=true&" + times % (7, 3)),
        "the deletion of a module": lambda: server.request("DELETE", "/api/v1/modules/" + known),
    }
    fill(place)
    refused = 0
    for turn in range(3):
        for what, write in writes.items():
            fine, answer = (200, 201, 202, 404), write()
            refused += answer[0] == 503
            if answer[0] in fine:
                continue
            sentence = one_sentence(answer)
            check(answer[0] == 503 and answer[1].get("Retry-After") and sentence and "\n" not in sentence,
                  "%s on a full disk: 503, Retry-After and a sentence" % what, answer)
            note("%s: %s" % (what, sentence))
        fill(place)
    check(refused >= 2, "the disk is full: some are refused", refused)
    equal([server.get(path)[0] for path in ("/healthz", "/metrics", "/")], [200] * 3, "the server lives")
    # The room that it held for itself is taken here, too.
    answers = {path: server.get(path) for path in ("/api/v1/types", "/api/v1/top", "/api/v1/modules", "/api/v1/agents")}
    check(all(a[0] == 200 or (a[0] == 503 and a[1].get("Retry-After") and one_sentence(a)) for a in answers.values()),
          "questions are answered, or 503 and why", answers)
    os.unlink(place + "/filler")
    for what, write in writes.items():
        check(wait_for(lambda: write()[0] in (200, 201, 202, 404), 60), "%s with room again: done" % what)


def build_id_of(path):
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True).stdout
    return re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)


def jumping_clock():
    """The server's wall clock jumps by days, both ways, while reports of the real time come."""
    shim()
    put("clock", "0")
    put("errno", "0")
    server = shimmed("clock")
    taken, late, refused, number = [], [], 0, 0
    now = time.time()
    # The newest day that is stored is later than the clock then.
    before = [jump for jump in (-2 * DAY, -3600) if (now + jump + 600) // DAY < now // DAY]
    for jump in (0, 2 * DAY, 0, -2 * DAY, -3600, 0, 300, -300, 0):
        put("clock", str(jump))
        for _ in range(4):
            number += 1
            status, _, body = server.post(report(number))
            if status == 503 and jump in before:  # the clock is before what is stored: reports wait
                late.append(number)
                continue
            equal(status, 200, "clock %+d s: answered" % jump) if status != 200 else None
            answer = otlp.messages(BUILD).ExportProfilesServiceResponse()
            answer.ParseFromString(body)
            if answer.partial_success.rejected_profiles:
                refused += 1
                said = answer.partial_success.error_message
            else:
                taken.append(number)
    equal(len(late), 4 * len(before), "a clock days before what is stored is not believed: reports are to come again")
    equal([server.post(report(n))[0] for n in late], [200] * len(late), "and are taken when it is right")
    taken += late
    if len(before) == 1:
        equal(refused, 4, "what lies an hour ahead of the server's clock is refused and counted")
        note("refused with: %s" % said)
    equal_reports(server, taken, "the rest is there once")
    for n in taken:
        server.post(report(n))
    equal_reports(server, taken, "sent again: not counted twice")
    server.stop()
    server = Server(data="clock", log="clock2.log")
    equal_reports(server, taken, "after a restart with the right clock too")
    server.stop()


def late_jump():
    """The clock jumps by 400 days before what was acknowledged is in its file: that is not due for it."""
    shim()
    put("clock", "0")
    put("errno", "0")
    server = shimmed("late")
    for number in range(5):
        equal(server.post(report(number))[0], 200, "a report") if not number else server.post(report(number))
    put("clock", str(400 * DAY))
    server.stop()
    put("clock", "0")
    server = Server(data="late", log="late2.log")
    equal_reports(server, range(5), "a clock that jumps by 400 days loses nothing")
    server.stop()


def unusable():
    """Directories that no server can work in."""
    def attempt(data):
        done = subprocess.run([BUILD + "/farflame-server", "--listen", "127.0.0.1:0", "--data", data], capture_output=True,
                              text=True, timeout=30)
        return done.returncode, done.stderr

    def refused(data, part, what):
        status, said = attempt(data)
        lines = [line for line in said.splitlines() if line.startswith("farflame-server: ")]
        check(status == 1 and len(lines) == 1 and part in lines[0], what + ": one sentence", said)
        note(lines[0] if lines else said)

    with open(WORK + "/file", "w"):
        pass
    refused(WORK + "/file", "Not a directory", "a file")
    refused(WORK + "/file/below", "Not a directory", "below a file")
    os.makedirs(WORK + "/other")
    server = Server(data="other")
    refused(WORK + "/other", "another server", "in use")
    server.stop()
    if os.geteuid() == 0:
        place = WORK + "/place"
        os.makedirs(place, exist_ok=True)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,ro", "tmpfs", place], capture_output=True).returncode:
            return skip("mounting a tmpfs is not permitted here")
        try:
            refused(place, "Read-only", "read-only")
        finally:
            subprocess.run(["umount", "-l", place])
    refused(WORK + "/misspelt/data", "the directory it is to lie in is not there", "a path that is misspelt")
    check(not os.path.exists(WORK + "/misspelt"), "and nothing is made of it")


if __name__ == "__main__":
    otlp.messages(BUILD)
    run(synced, failing_disk, full_everywhere, jumping_clock, late_jump, unusable)
