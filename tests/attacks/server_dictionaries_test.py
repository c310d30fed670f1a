# SPDX-License-Identifier: Apache-2.0
"""A sender of deep random stacks, of many days, gets its share of the memory of dictionaries; others' stacks go on, and
what it sends keeps its totals. Dictionaries that questions brought into memory leave it again."""
import random
import re
import sys
import time

sys.path.insert(0, "tests/tools")
import otlp_writer  # noqa: E402
from harness import BUILD, Server, WORK, check, equal, run, wait_for  # noqa: E402

MIB = 1 << 20
DAYS, REPORTS, STACKS, DEPTH = 6, 72, 50, 2000
RANDOM = random.Random(24)


def deep(host, day):
    """Stacks that share nothing but their functions, a sample each."""
    request = otlp_writer.Request(BUILD)
    profile = request.profile(request.resource(**{"host.name": host, "process.executable.name": "deep"}), type_="samples",
                              unit="count", scope="other", time_ns=time.time_ns() - day * 86400 * 10**9 - 3600 * 10**9)
    frames = [request.frame(("cpython", "f%d" % number, "a.py", 1)) for number in range(DEPTH)]
    for _ in range(STACKS):
        entry = request.tables.stack_table.add()
        entry.location_indices.extend(RANDOM.sample(frames, DEPTH))
        sample = profile.samples.add()
        sample.stack_index = len(request.tables.stack_table) - 1
        sample.values.append(1)
    return request.bytes()


def shallow(host, number):
    request = otlp_writer.Request(BUILD)
    profile = request.profile(request.resource(**{"host.name": host, "process.executable.name": "shallow"}), type_="samples",
                              unit="count", scope="other")
    request.sample(profile, [("cpython", "mine%d" % number, "b.py", 1)], [1], thread="thread%d" % number)
    return request.bytes()


def metric(server, name):
    found = re.search(r"^farflame_server_%s (\S+)$" % re.escape(name), server.get("/metrics")[2].decode(), re.M)
    return float(found.group(1)) if found else None


def resident(server):
    with open("/proc/%d/status" % server.process.pid, encoding="utf-8") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1)) << 10


def told(server, host):
    """Without how finely it is known when: minutes at first, hours when these have been summed up."""
    accounting = server.json("/api/v1/flamegraph", type="on-cpu", from_="now-8d", until="now", max_nodes=100,
                             match='{host="%s"}' % host)["accounting"]
    accounting.pop("resolution_ms")
    return accounting


def attack(server):
    for number in range(REPORTS):
        status, _, body = server.post(deep("greedy", number % DAYS), timeout=60)
        if status != 200:
            return check(False, "reports of deep stacks are taken", "%d %r" % (status, body[:200]))
    memory = metric(server, "dictionary_bytes")
    check(memory and memory < 72 * MIB, "all dictionaries together stay within their memory", memory)
    check(resident(server) < 400 * MIB, "the server too", resident(server))
    for number in range(50):
        if server.post(shallow("honest", number))[0] != 200:
            return check(False, "another host's reports are taken")
    names = {frames[-1] for frames, _ in server.folded(from_="now-1h", match='{host="honest"}')}
    missing = ["mine%d" % number for number in range(50) if not any("mine%d" % number in name for name in names)]
    equal(missing, [], "new stacks of another host are there")
    equal(told(server, "honest").get("folded_stacks", 0), 0, "all of them")
    return True


def dictionaries():
    server = Server("--dictionary-memory", "64M")
    if not attack(server):
        return
    before = told(server, "greedy")
    equal((before["samples"], before["lost"], before["lost_by"]["unexplained"]), (REPORTS * STACKS, 0, 0), "no sample of the greedy host is lost")
    check(0 < before.get("folded_stacks", 0) < REPORTS * STACKS, "those without a stack are counted", before)
    equal(metric(server, "stacks_overflowed_total"), before.get("folded_stacks"), "in /metrics too")
    check("new stacks find no room" in open(WORK + "/server.log", errors="replace").read(), "the log says so")
    server.process.kill()
    server.process.wait()
    server.start()
    equal(told(server, "greedy"), before, "the same after a crash")
    server.stop()
    server.arguments[server.arguments.index("64M")] = "16M"
    server.start()
    equal(told(server, "greedy"), before, "a question brings all days' dictionaries into memory")
    check(wait_for(lambda: metric(server, "dictionary_bytes") <= 16 * MIB, 45), "those used least leave it",
          metric(server, "dictionary_bytes"))
    check(metric(server, "dictionaries_dropped_total") > 0, "which is counted")
    equal(told(server, "greedy"), before, "and come back when they are asked for")


run(dictionaries)
