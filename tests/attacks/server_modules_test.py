# SPDX-License-Identifier: Apache-2.0
"""Modules that a stranger announces, or brings in reports, do not take the place of those that are met and named."""
import gzip
import os
import sqlite3
import subprocess
import sys

sys.path.insert(0, "tests/tools")
import otlp_writer  # noqa: E402
from harness import BUILD, Server, WORK, check, equal, run, wait_for  # noqa: E402


def announce(server, lines, encoding=None):
    body = "".join(lines).encode()
    headers = {"Content-Type": "text/plain"}
    if encoding:
        body, headers["Content-Encoding"] = gzip.compress(body), encoding
    status, _, answer = server.request("POST", "/api/v1/modules", body, headers, timeout=60)
    return status, answer.decode()


def line(number, length=8):
    return "%0*x gnu x\n" % (length, number)


def metric(server, name):
    for text in server.get("/metrics")[2].decode().splitlines():
        if text.startswith("farflame_server_" + name + " "):
            return float(text.split()[1])
    return None


def program(name, build_id):
    """An ELF file of that build-id, with a symbol table."""
    source, path = WORK + "/%s.c" % name, WORK + "/" + name
    with open(source, "w", encoding="utf-8") as file:
        file.write("int %s_function(int a) { return a + 1; }\nint main(void) { return 0; }\n" % name)
    subprocess.run(["cc", "-g", "-O0", "-o", path, source, "-Wl,--build-id=0x" + build_id], check=True)
    return path


def upload(server, build_id, path):
    with open(path, "rb") as file:
        return server.request("PUT", "/api/v1/modules/" + build_id, file.read(),
                              {"Content-Type": "application/octet-stream"})[0]


def rows(server_data):
    with sqlite3.connect("file:%s/%s/symbols.db?mode=ro" % (WORK, server_data), uri=True) as db:
        return db.execute("SELECT count(*) FROM modules").fetchone()[0]


def report(server, numbers, host):
    request = otlp_writer.Request(BUILD)
    profile = request.profile(request.resource(**{"host.name": host}))
    request.sample(profile, [("native", request.mapping("m%x" % number, "%040x" % number), 0x1000)
                             for number in numbers], [1, 10101010])
    status, _, body = server.post(request.bytes(), timeout=60)
    if status != 200:
        raise RuntimeError("report: %d %r" % (status, body[:200]))


def is_ready(server, build_id):
    return [module["state"] for module in server.json("/api/v1/modules", limit=100000)["modules"]
            if module["build_id"] == build_id] == ["ready"]


def announced():
    server = Server(data="announced")
    first = "5ec2" + "00" * 17 + "01"
    equal(upload(server, first, program("first", first)), 201, "a file is uploaded")
    status, answer = announce(server, [line(number) for number in range(1, 120001)], "gzip")
    check(status == 413 and "10000" in answer, "120 000 modules in one request are refused", answer[:300])
    for begin in range(0, 200000, 10000):
        status, answer = announce(server, [line(number) for number in range(begin, begin + 10000)])
        if status != 200:
            break
    equal(status, 200, "200 000 in twenty requests are answered")
    listed = server.json("/api/v1/modules", limit=100000)
    check(listed["total"] <= 9000 and len(listed["modules"]) == listed["total"], "some thousand of them are known",
          listed["total"])
    equal(len(server.json("/api/v1/modules", limit=10, offset=5)["modules"]), 10, "a part of the list")
    second = "5ec2" + "00" * 17 + "02"
    equal(upload(server, second, program("second", second)), 201, "a new module's file is taken")
    check(wait_for(lambda: is_ready(server, first) and is_ready(server, second), 60), "both are converted")
    equal(metric(server, "modules_refused_total"), 0, "none was refused")
    server.stop()
    equal(rows("announced"), 2, "what was only announced is not stored")
    server.start()
    check(is_ready(server, first), "after a restart what was uploaded is there")


def brought():
    server = Server(data="brought")
    mine = "5ec2" + "00" * 17 + "03"
    equal(upload(server, mine, program("mine", mine)), 201, "a file is uploaded")
    for begin in range(1, 130000, 2000):
        report(server, range(begin, begin + 2000), "stranger")
    total = server.json("/api/v1/modules", limit=1)["total"]
    check(total <= 100000, "the list has its end", total)
    check(metric(server, "modules_evicted_total") > 0, "modules made room")
    equal(metric(server, "modules_refused_total"), 0, "and none was refused")
    late = "5ec2" + "00" * 17 + "04"
    equal(upload(server, late, program("late", late)), 201, "a new module's file is taken")
    check(wait_for(lambda: is_ready(server, mine) and is_ready(server, late), 60), "both are converted")
    check(os.path.getsize(WORK + "/brought/symbols.db") < 200 << 20, "symbols.db stays bounded")


run(announced, brought)
