# SPDX-License-Identifier: Apache-2.0
"""--backup of a server that works, and --verify beside it: what was answered 200 before the call is in the copy,
once; a backup that is killed, or has no room, leaves nothing that looks like one; damage is found and named."""
import glob
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

from harness import BUILD, WORK, Server, check, end, equal, note, run, start, wait_for

sys.path.insert(0, "tests/tools")
import otlp  # noqa: E402
from otlp_writer import Request  # noqa: E402

PERIOD = 10101010
SERVER = BUILD + "/farflame-server"


def report(client, number, when_ns=None):
    made = Request(BUILD)
    resource = made.resource(**{"host.name": "host%d" % client, "farflame.process": "p%d" % client})
    profile = made.profile(resource, time_ns=when_ns, profile_id=b"%04d%08d" % (client, number) + bytes(4))
    for i in range(5):
        frames = [("native", made.mapping("lib%d.so" % (number % 7), "%040x" % (number % 7 + 1)),
                   0x100 + (number * 5 + i) % 4000)]
        made.sample(profile, frames, [1, PERIOD], thread="r%d" % number)
    made.counters("host%d" % client, "%032x" % (client + 1), number + 1, number, 5 * (number + 1))
    return made.bytes()


class Sender(threading.Thread):
    """One client's reports, each until it is answered 200."""

    def __init__(self, number, server):
        super().__init__()
        self.number, self.server, self.sent, self.acknowledged = number, server, 0, 0
        self.stop = threading.Event()

    def run(self):
        while not self.stop.is_set():
            body = report(self.number, self.acknowledged)
            self.sent = self.acknowledged + 1
            try:
                if self.server.post(body)[0] == 200:
                    self.acknowledged += 1
            except OSError:
                time.sleep(0.05)


def shown(server):
    rows = {}
    for frames, value in server.folded(group_by="process,thread", from_="now-3h"):
        rows[tuple(frames[:2])] = rows.get(tuple(frames[:2]), 0) + value
    return rows


def command(data, *arguments, seconds=60):
    return subprocess.run([SERVER, "--data", os.path.join(WORK, data), *arguments], capture_output=True, text=True,
                          timeout=seconds)


def check_copy(copy, senders, before, after, what):
    """The copy has all of before, each report whole and once, and nothing that was never sent."""
    server = Server(data=copy, log=copy.replace("/", "-") + ".log")
    rows = shown(server)
    wanted = {("p%d" % i, "r%d" % n) for i, upto in enumerate(before) for n in range(upto)}
    possible = {("p%d" % i, "r%d" % n) for i, upto in enumerate(after) for n in range(upto)}
    missing = wanted - set(rows)
    check(not missing, what + ": everything acknowledged before is in it", sorted(missing)[:10])
    check(set(rows) <= possible, what + ": nothing else", sorted(set(rows) - possible)[:10])
    equal({v for v in rows.values()}, {5}, what + ": each whole and once")
    accounting = server.flamegraph(from_="now-3h")["accounting"]
    equal((accounting["taken"], accounting["lost"], accounting["lost_by"]["unexplained"]), (5 * len(rows), 0, 0),
          what + ": its accounting closes")
    for sender in senders:  # whoever heard no answer sends again: what the copy has is known there
        equal(server.post(report(sender.number, 0))[0], 200, what + ": a report sent again is answered")
    equal(shown(server), rows, what + ": and not counted twice")
    equal(server.stop()[0], 0, what + ": its server ends well")


def running():
    random.seed(7)
    server = Server(data="live")
    senders = [Sender(i, server) for i in range(4)]
    for sender in senders:
        sender.start()
    made = []
    for turn in range(3):
        time.sleep(0.8)
        before = [s.acknowledged for s in senders]
        done = command("live", "--backup", WORK + "/copy%d" % turn)
        after = [s.sent + 1 for s in senders]
        equal((done.returncode, done.stderr), (0, ""), "backup %d of a running server" % turn)
        note(done.stdout.strip())
        made.append((before, after))
    done = command("live", "--verify")
    equal((done.returncode, done.stderr), (0, ""), "--verify beside a running server")
    note(done.stdout.strip().splitlines()[-1])
    refused = command("live", "--backup", WORK + "/copy0")
    check(refused.returncode == 1 and "not an empty directory" in refused.stderr, "a backup in the way is not touched",
          refused.stderr)
    for sender in senders:
        sender.stop.set()
    for sender in senders:
        sender.join()
    for turn, (before, after) in enumerate(made):
        equal(command("copy%d" % turn, "--verify").returncode, 0, "copy %d verifies" % turn)
        check_copy("copy%d" % turn, senders, before, after, "copy %d" % turn)
    server.stop()
    done = command("live", "--backup", WORK + "/stopped/")
    equal(done.returncode, 0, "a backup without a server")
    whole = [s.acknowledged for s in senders]
    check_copy("stopped", senders, whole, [s.sent + 1 for s in senders], "the copy of a stopped one")
    killed(senders, whole)


def killed(senders, whole):
    """SIGKILL at random moments: no directory of that name, a partial one that no server takes, and the next
    backup clears it away."""
    begin = time.monotonic()
    command("live", "--backup", WORK + "/timed")
    whole_s = time.monotonic() - begin
    left = 0
    for turn in range(12):
        process = start([SERVER, "--data", WORK + "/live", "--backup", WORK + "/cut"])
        time.sleep(random.uniform(0, whole_s))
        end(process, how=signal.SIGKILL)
        if os.path.exists(WORK + "/cut"):
            equal(command("cut", "--verify").returncode, 0, "kill %d came too late: a whole copy" % turn)
            shutil.rmtree(WORK + "/cut")
        elif os.path.exists(WORK + "/cut.partial/unfinished-backup"):
            left += 1
            done = command("cut.partial", "--listen", "127.0.0.1:0")
            check(done.returncode == 1 and "not finished" in done.stderr, "no server starts on a partial copy", done.stderr)
    note("%d of 12 kills left a partial copy" % left)
    equal(command("live", "--backup", WORK + "/cut").returncode, 0, "the next backup is made all the same")
    equal(os.path.exists(WORK + "/cut.partial"), False, "what the killed ones left is gone")
    check_copy("cut", senders, whole, [s.sent + 1 for s in senders], "that copy")


def no_room():
    server = Server(data="large")
    for number in range(40):
        equal(server.post(report(1, number))[0], 200, "taken") if number == 0 else server.post(report(1, number))
    server.stop()
    small = os.path.join(WORK, "small")
    os.makedirs(small)
    if os.geteuid() == 0 and not subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", small],
                                                capture_output=True).returncode:
        try:
            done = command("large", "--backup", small + "/copy")
            check(done.returncode == 1 and "full" in done.stderr.lower() or "space" in done.stderr.lower(),
                  "without room: a sentence", done.stderr)
            equal(os.listdir(small), [], "and nothing is left")
        finally:
            subprocess.run(["umount", "-l", small])
    for arguments, part in ((("--backup", "/proc/nowhere/x"), "No such file"), (("--backup", ""), "path"),
                            (("--backup", SERVER), "not an empty directory")):
        done = command("large", *arguments)
        check(done.returncode != 0 and part in done.stderr, "backup to %r: a sentence" % arguments[1], done.stderr)
    done = command("nothing", "--backup", WORK + "/none")
    check(done.returncode == 1 and "No such file" in done.stderr, "no such --data: a sentence", done.stderr)
    equal(os.path.exists(WORK + "/none"), False, "and no directory")


def damage():
    """Bytes of each file in turn are changed: --verify says which, --backup goes on without a damaged day."""
    server = Server(data="whole")
    for day in range(2):
        for number in range(30):
            server.post(report(day, number, time.time_ns() - day * 86400 * 10**9))
    server.stop()
    equal(command("whole", "--verify").returncode, 0, "before: all is well")
    random.seed(3)
    for pattern in ("samples-*.db", "agents.db"):
        for path in glob.glob(WORK + "/whole/" + pattern):
            name = os.path.basename(path)
            found = 0
            for turn in range(12):
                shutil.rmtree(WORK + "/hurt", ignore_errors=True)
                shutil.copytree(WORK + "/whole", WORK + "/hurt")
                with open(WORK + "/hurt/" + name, "r+b") as file:
                    size = os.path.getsize(path)
                    # the end of a page is where its cells begin
                    file.seek(0 if turn == 0 else 8192 * random.randrange(1, size // 8192) + 4096)
                    file.write(os.urandom(4096))
                done = command("hurt", "--verify")
                lines = [line for line in done.stdout.splitlines() if "damaged: " in line]
                if done.returncode == 1 and len(lines) == 1 and lines[0].startswith(name + ": damaged: "):
                    found += 1
                elif turn == 0:
                    note("%s\n%s" % (done.stdout, done.stderr))
            check(found >= 3, "%s with half a page overwritten: named (%d of 12; the rest hit empty tables)" % (name, found))
    shutil.rmtree(WORK + "/hurt")
    shutil.copytree(WORK + "/whole", WORK + "/hurt")
    name = sorted(os.path.basename(p) for p in glob.glob(WORK + "/hurt/samples-*.db"))[0]
    with open(WORK + "/hurt/" + name, "r+b") as file:
        file.write(os.urandom(100))
    done = command("hurt", "--backup", WORK + "/hurt-copy")
    check(done.returncode == 1 and name in done.stderr, "a backup says which damaged file is not in it", done.stderr)
    server = Server(data="hurt-copy", log="hurt-copy.log")
    equal(len(server.folded(group_by="thread", from_="now-3d")) > 0, True, "the rest serves")
    server.stop()


def same_files(before, after):
    names = [os.path.relpath(path, WORK + "/" + before) for path in glob.glob(WORK + "/" + before + "/**/*", recursive=True)
             if os.path.isfile(path)]
    return {name for name in names if os.path.exists(os.path.join(WORK, after, name)) and
            os.path.samefile(os.path.join(WORK, before, name), os.path.join(WORK, after, name))}


def incremental():
    """What did not change since the last backup is a link to it; the copy verifies, and is restored by copying it."""
    data = WORK + "/growing"
    server = Server(data="growing")
    old = time.time_ns() - 3 * 86400 * 10**9
    for number in range(20):
        equal(server.post(report(0, number, old))[0], 200, "a report of three days ago") if not number else \
            server.post(report(0, number, old))
    source = WORK + "/program.c"
    with open(source, "w", encoding="utf-8") as file:
        file.write("int main(void) { return 0; }\n")
    subprocess.run(["cc", "-g", "-o", WORK + "/program", source, "-Wl,--build-id=0x" + "ab" * 20], check=True)
    with open(WORK + "/program", "rb") as file:
        equal(server.request("PUT", "/api/v1/modules/" + "ab" * 20, file.read(),
                             {"Content-Type": "application/octet-stream"})[0] // 100, 2, "an upload")
    server.stop()
    equal(command("growing", "--backup", WORK + "/first").returncode, 0, "a first backup")
    done = command("growing", "--backup", WORK + "/second", "--backup-base", WORK + "/first")
    equal(done.returncode, 0, "a second one with --backup-base")
    same = same_files("first", "second")
    check({"agents.db", "symbols.db"} <= same and any("samples-" in name for name in same) and
          any("uploads" in name for name in same), "nothing changed: databases and uploads are the same files", sorted(same))
    server.start()
    for number in range(20, 30):
        server.post(report(0, number))
    server.stop()
    done = command("growing", "--backup", WORK + "/third", "--backup-base", WORK + "/second")
    equal(done.returncode, 0, "a third one, after ten reports more")
    note(done.stdout.strip())
    same = same_files("second", "third")
    check("agents.db" not in same and any("uploads" in name for name in same),
          "what changed is a file of its own, the upload is not", sorted(same))
    for name in ("first", "second", "third"):
        done = command(name, "--verify")
        check(done.returncode == 0 and not glob.glob(WORK + "/" + name + "/*-shm"), "--verify of the %s" % name, done.stdout)
    done = command("second", "--listen", "127.0.0.1:0", seconds=20)
    check(done.returncode == 1 and "cp -r" in done.stderr, "no server starts on files that another backup has too", done.stderr)
    shutil.copytree(WORK + "/third", WORK + "/restored")
    server = Server(data="restored")
    equal(len([row for row in shown_since(server, "now-5d")]), 30, "restored by a copy it has all 30 reports")
    server.stop()
    done = command("growing", "--backup", WORK + "/fourth", "--backup-base", WORK + "/growing")
    check(done.returncode == 1 and "is not a backup" in done.stderr, "a base that is no backup is refused", done.stderr)
    equal(command("growing", "--backup-base", WORK + "/first").returncode, 2, "--backup-base alone: 2")
    done = command("first", "--verify")
    equal(done.returncode, 0, "the first backup is as it was")


def shown_since(server, begin):
    return {frames[0] for frames, _ in server.folded(group_by="thread", from_=begin)}


if __name__ == "__main__":
    otlp.messages(BUILD)  # made once, before threads ask for it
    run(incremental, running, no_room, damage)
