# SPDX-License-Identifier: Apache-2.0
"""What is damaged costs what it holds: the rest of the day answers, what is lost is in the accounting, and --repair
says what it will drop before it does."""
import os
import random
import re
import shutil
import subprocess
import sys
import time

from harness import BUILD, WORK, Server, check, equal, note, run

sys.path.insert(0, "tests/tools")
from otlp_writer import Request  # noqa: E402

SERVER = BUILD + "/farflame-server"
PERIOD = 10101010
MINUTES, HOSTS, SAMPLES = 40, 3, 20
PAGE = 8192
state = {}


def report(number, host, when_ns):
    """Each with stacks of its own: all of them refer to what earlier ones defined, and define more."""
    made = Request(BUILD)
    resource = made.resource(**{"host.name": "host%d" % host, "farflame.process": "p%d" % (number % 4)})
    profile = made.profile(resource, time_ns=when_ns, profile_id=b"%014d%02d" % (number, host))
    for i in range(SAMPLES):
        frames = [("native", made.mapping("lib%d.so" % (k % 5), "%040x" % (k % 5 + 1)),
                   0x1000 + (number * 37 + i * 5 + k * k) % 3000) for k in range(12)]
        made.sample(profile, frames, [1, PERIOD], thread="r%d" % (i % 4))
    made.counters("host%d" % host, "%032x" % (host + 1), number + 1, number, SAMPLES * (number + 1))
    return made.bytes()


def send(server, first, count):
    now = time.time_ns()
    for number in range(first, first + count):
        for host in range(HOSTS):
            when = now - (number % MINUTES) * 60 * 10**9
            status, _, body = server.post(report(number, host, when))
            if status != 200:
                raise RuntimeError("report: %d %s" % (status, body[:200]))


def accounting(server):
    return server.json("/api/v1/top", type="on-cpu", from_="now-2h", until="now", limit=1)["accounting"]


def tool(data, *arguments):
    done = subprocess.run([SERVER, "--data", data, *arguments], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def copy_of(name):
    path = os.path.join(WORK, name)
    shutil.copytree(state["data"], path)
    return path


def day_files(data):
    return sorted((os.path.join(data, name) for name in os.listdir(data) if re.fullmatch(r"samples-\d+\.db", name)),
                  key=os.path.getsize)


def flip(path, offset, bit=3):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1 << bit]))


def books(told, text):
    """Taken is stored and lost, whatever happened."""
    equal([told["taken"] - told["samples"] - told["lost"], told["lost_by"]["unexplained"]], [0, 0], text)


def test_world():
    server = Server()
    send(server, 0, 2 * MINUTES)
    whole = accounting(server)
    equal(whole["samples"], 2 * MINUTES * HOSTS * SAMPLES, "all samples are there")
    books(whole, "and in the books")
    state["samples"] = whole["samples"]
    state["url"] = server.url
    server.stop()
    state["data"] = os.path.join(WORK, "data")
    equal(tool(state["data"], "--verify")[0], 0, "as the server left it nothing is damaged")


def test_pages():
    """One page after the other of the day."""
    whole = day_files(state["data"])[-1]
    pages = os.path.getsize(whole) // PAGE
    note("%d pages" % pages)
    chance = random.Random(24)
    kept, all_of_it = 0, 0
    chosen = sorted(chance.sample(range(pages), min(8, pages)))
    for page in chosen:
        data = copy_of("page%d" % page)
        path = os.path.join(data, os.path.basename(whole))
        flip(path, page * PAGE + chance.randrange(PAGE))
        server = Server(data=data, log="page%d.log" % page)
        accounting(server)
        told = accounting(server)
        if told["taken"] != told["samples"] + told["lost"]:
            check(False, "page %d: the books are balanced" % page, told)
        kept += told["samples"]
        all_of_it += state["samples"]
        send(server, 5000, 1)
        server.stop()
        text = tool(data, "--verify")[1] if os.path.exists(path + ".damaged") else " 0 damaged"
        if " 0 damaged" not in text:
            check(False, "page %d: what is left is whole" % page, text)
        shutil.rmtree(data)
    share = 100 * kept / all_of_it
    check(share > 75, "a wrong bit in any of %d pages costs its rows, not its day: %.0f %% stay" % (len(chosen), share))


def test_journal():
    """A record that others build upon."""
    server = Server(data="journal", log="journal.log")
    send(server, 0, 20)
    whole = accounting(server)
    server.kill()
    folder = os.path.join(WORK, "journal/journal")
    segment = max((os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".journal")),
                  key=lambda path: len(open(path, "rb").read().rstrip(b"\0")))
    length = len(open(segment, "rb").read().rstrip(b"\0"))
    shutil.copytree(os.path.join(WORK, "journal"), os.path.join(WORK, "journal2"))
    flip(segment, length // 5)
    server.start()
    told = accounting(server)
    check(0 < whole["samples"] - told["samples"] <= whole["samples"] / 6,
          "a wrong bit costs its record and the series that it defined, not those after it",
          (whole["samples"], told["samples"]))
    books(told, "what it had is in the books as lost")
    equal(told["lost_by"].get("damaged"), told["lost"], "for being damaged")
    send(server, 20, 3)
    books(accounting(server), "and they stay balanced")
    server.stop()
    server.start()
    books(accounting(server), "after a restart too")
    server.stop()
    with open(os.path.join(WORK, "journal.log"), encoding="utf-8") as log:
        check("journal is damaged" in log.read(), "the log says so")

    data = os.path.join(WORK, "journal2")
    flip(os.path.join(data, "journal", os.path.basename(segment)), length // 5)
    before = sorted(os.listdir(data) + os.listdir(data + "/journal"))
    code, text = tool(data, "--repair", "plan")
    check(code == 1 and os.path.basename(segment) in text, "--repair plan names the segment", text)
    equal(sorted(os.listdir(data) + os.listdir(data + "/journal")), before, "and changes nothing")
    code, text = tool(data, "--repair", "drop")
    equal(code, 0, "--repair drop")
    code, text = tool(data, "--verify")
    check(code == 0, "then nothing is damaged", text)
    server = Server(data="journal2", log="journal2.log")
    again = accounting(server)
    equal(again["samples"], told["samples"], "and all that could be kept is answered")
    books(again, "with balanced books")
    server.stop()


def test_repair():
    data = copy_of("repair")
    path = day_files(data)[-1]
    chance = random.Random(7)
    pages = os.path.getsize(path) // PAGE
    for page in (pages // 3, pages // 2):
        flip(path, page * PAGE + chance.randrange(PAGE))
    flip(os.path.join(data, "symbols.db"), PAGE + 100)
    with open(path, "rb") as file:
        content = file.read()
    code, text = tool(data, "--verify")
    check(code == 1 and os.path.basename(path) in text, "--verify finds the damage", text)
    code, plan = tool(data, "--repair", "plan")
    kept = re.search(r"kept: (\d+) samples; lost: (\d+) samples", plan)
    check(code == 1 and kept and "symbols.db: dropped" in plan, "the plan says what stays and what goes", plan)
    with open(path, "rb") as file:
        check(file.read() == content and not os.path.exists(path + ".damaged"), "and changes nothing")
    note(plan.strip().replace("\n", "; "))
    server = Server(data="busy", log="busy.log")
    code, text = tool(os.path.join(WORK, "busy"), "--repair", "drop")
    check(code == 1 and text.count("\n") == 1, "not beside a server: a sentence", text)
    server.stop()
    code, text = tool(data, "--repair", "drop")
    equal([code, re.search(r"kept: (\d+) samples; lost: (\d+) samples", text).groups()], [0, kept.groups()],
          "what was said is done")
    code, text = tool(data, "--verify")
    check(code == 0, "then nothing is damaged", text)
    server = Server(data=data, log="repair.log")
    told = accounting(server)
    equal([told["samples"], told["lost_by"].get("damaged", 0)], [state["samples"] - int(kept[2]), int(kept[2])],
          "the server answers with what stayed, and counts what went")
    books(told, "the books are balanced")
    server.stop()


run(test_world, test_pages, test_journal, test_repair)
