# SPDX-License-Identifier: Apache-2.0
"""The server as its shipped unit runs it: it is ready, its children convert and download with the rights that the unit
leaves them, and nothing is denied."""
import http.server
import os
import re
import subprocess
import threading

import service
from harness import WORK, Server, check, equal, free_port, run, skip, wait_for

UNIT = "deploy/systemd/farflame-server.service"


def program(name, text):
    """(build-id, path) of a program with debug information"""
    source, path = os.path.join(WORK, name + ".c"), os.path.join(WORK, name)
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    subprocess.run(["gcc", "-g", "-O0", "-Wl,--build-id", "-o", path, source], check=True)
    notes = subprocess.run(["readelf", "-n", path], check=True, capture_output=True, text=True).stdout
    return re.search("Build ID: (\\w+)", notes)[1], path


class OneFile(http.server.BaseHTTPRequestHandler):
    """A debuginfod that has one file."""
    file = None

    def do_GET(self):
        is_it = self.path == "/buildid/%s/debuginfo" % self.file[0]
        body = open(self.file[1], "rb").read() if is_it else b""
        self.send_response(200 if is_it else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Running(Server):
    """One that is there already."""
    def __init__(self, port):
        self.port = port


def state(server, id_):
    return {row["build_id"]: row["state"] for row in server.json("/api/v1/modules")["modules"]}.get(id_)


def test_as_unit():
    why = service.missing()
    if why:
        return skip(why)
    uploaded = program("uploaded", "int first(void) { return 1; } int main(void) { return first(); }")
    OneFile.file = program("fetched", "int second(void) { return 2; } int main(void) { return second(); }")
    debuginfod = http.server.ThreadingHTTPServer(("127.0.0.1", 0), OneFile)
    threading.Thread(target=debuginfod.serve_forever, daemon=True).start()
    port = free_port()
    unit = service.Unit(UNIT, "listen = 127.0.0.1:%d\ndebuginfod = http://127.0.0.1:%d\nlog-level = debug\nmax-disk = 50%%\n" % (
        port, debuginfod.server_port), [])
    try:
        as_unit(unit, Running(port), uploaded, OneFile.file)
    finally:
        unit.stop()
        debuginfod.shutdown()


def as_unit(unit, server, uploaded, fetched):
    if not check(wait_for(lambda: unit.state() == "active", 40), "systemd hears that it is ready",
                 unit.state() + unit.text()[-1500:]):
        return
    equal(server.request("PUT", "/api/v1/modules/" + uploaded[0], open(uploaded[1], "rb").read(),
                         {"Content-Type": "application/octet-stream"})[0], 201, "a file is taken")
    check(wait_for(lambda: state(server, uploaded[0]) == "ready", 30), "its child converts it", unit.text()[-1500:])
    asked = b'{"jobs":[{"memoryMap":[["fetched","%s"]],"stacks":[[[0,4096]]]}]}' % fetched[0].encode()
    equal(server.request("POST", "/symbolicate/v5", asked, {"Content-Type": "application/json"})[0], 200, "another is asked for")
    check(wait_for(lambda: state(server, fetched[0]) == "ready", 30), "its child downloads it", unit.text()[-1500:])
    denied = [line for line in unit.text().splitlines()
              if re.search("ermission denied|not permitted|Function not implemented|Cannot allocate|Bad system call", line)]
    equal(denied, [], "nothing was denied to it")


run(test_as_unit)
