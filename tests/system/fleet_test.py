# SPDX-License-Identifier: Apache-2.0
"""A small fleet against the real server: restarting, late and repeating agents of several types; answers equal the
fleet's own tally for random questions, while reports come in, after that, and after the server was restarted."""
import json
import os
import random
import subprocess
import sys

from harness import WORK, Server, check, end, equal, fleet_tool, note, run, start, wait_for

sys.path.insert(0, "tests/tools/fleet")
import fleet_check  # noqa: E402


def fleet(server, tally, *arguments):
    """Starts one; outcome() of what it returns waits for its end."""
    process = start([fleet_tool(), "--server", server.url, "--tally", os.path.join(WORK, tally), *arguments],
                    "fleet.log", stdout=subprocess.PIPE)
    process.tally = os.path.join(WORK, tally)
    return process


def outcome(process):
    text = process.stdout.read()
    status, _ = end(process, 120)
    return status, json.loads(text or "{}")


def agrees(server, tallies, questions, seed, when):
    differences = []
    done = fleet_check.check(server.url, tallies, questions, seed, say=differences.append)
    note("%s: %d questions, %d rows" % (when, done.questions, done.rows))
    return check(done.questions > questions and done.rows > 1000 and not differences,
                 when + ": every answer equals the tally", "\n".join(differences)[:4000])


def reports(server):
    """How many this process has taken in."""
    text = server.get("/metrics")[2].decode()
    return max(int(line.split()[-1]) for line in text.splitlines() if line.startswith("farflame_server_reports_total"))


def small_fleet():
    seed = random.randrange(1 << 31)
    note("seed %d" % seed)
    server = Server(data="fleet")
    first = fleet(server, "first", "--agents", "50", "--interval", "150ms", "--reports", "12", "--samples", "40",
                  "--stacks", "400", "--types", "on-cpu,off-cpu,mem-alloc", "--late", "15", "--late-by", "26h",
                  "--duplicates", "15", "--restarts", "5", "--lost", "10", "--seed", str(seed))
    status, said = outcome(first)
    note(json.dumps(said))
    equal((status, said["acknowledged"], said["refused"], said["partial"]), (0, 600, 0, 0), "every report is accepted")
    check(said["duplicates"] > 20 and said["restarts"] > 5 and said["late"] > 20, "some came twice, late, or after a start")
    agrees(server, [first.tally], 15, seed, "before any fold")
    server.stop()
    server.start()
    agrees(server, [first.tally], 15, seed + 1, "after a restart")


def killed_meanwhile():
    """The server is killed and comes back while agents send: they try again until each report is answered."""
    server = Server(data="killed")
    sending = fleet(server, "second", "--agents", "30", "--interval", "100ms", "--reports", "40", "--samples", "20",
                    "--stacks", "200", "--duplicates", "10", "--restarts", "2", "--timeout", "5s")
    for _ in range(2):
        wait_for(lambda: reports(server) > 100, 60, 0.05)
        server.kill()
        server.start()
    status, said = outcome(sending)
    note(json.dumps(said))
    equal((status, said["acknowledged"], said["unanswered"]), (0, 1200, 0), "every report is answered in the end")
    check(said["connects"] >= 90, "every agent had to connect anew twice", said)
    agrees(server, [sending.tally], 6, 1, "after two kills")


if __name__ == "__main__":
    run(small_fleet, killed_meanwhile)
