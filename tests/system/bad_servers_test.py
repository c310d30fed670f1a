# SPDX-License-Identifier: Apache-2.0
"""An agent between whom and the server something goes wrong, in every way there is, and whose spool directory is
removed, read-only, damaged, or written by an earlier run with other labels: in the end the server's accounting has
every sample that the agent took, as a sample or as lost, and no report counted twice."""
import http.client
import os
import re
import signal
import socket
import struct
import subprocess
import threading
import time

from harness import (PROGRAMS, WORK, Agent, Server, build_programs, check, end, equal, free_port, need_bpf, note, run,
                     skip, spool_of, spooled_reports, start, wait_for)

OPTIONS = ["--frequency", "199", "--report-interval", "1s", "--timeout", "1s", "--upload", "never"]


class Proxy:
    """Hands each request to the server and its answer back, as self.mode says."""

    def __init__(self, server):
        self.server, self.mode, self.met = server, "good", {}
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with connection:
            try:
                while self.one(connection, connection.makefile("rb")):
                    pass
            except (OSError, ValueError, http.client.HTTPException):
                pass

    def one(self, connection, file):
        line = file.readline()
        if not line:
            return False
        length = 0
        for field in iter(file.readline, b"\r\n"):
            name, _, value = field.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        method, path, _ = line.decode().split()
        mode = self.mode
        self.met[mode] = self.met.get(mode, 0) + 1
        if mode == "reads half":
            file.read(length // 2)
            return False
        body = file.read(length)
        if mode in ("never answers", "resets", "503", "429", "500", "redirects", "not http"):
            return self.refuse(connection, mode)
        status, fields, answer = self.forward(method, path, body)
        return self.answer(connection, mode, status, fields, answer)

    def forward(self, method, path, body):
        headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"}
        if not path.endswith("profiles"):
            headers = {"Content-Type": "application/json"}
        return self.server.request(method, path, body, headers)

    def refuse(self, connection, mode):
        if mode == "never answers":
            time.sleep(30)
        elif mode == "resets":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif mode == "redirects":
            connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")
        elif mode == "not http":
            connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n" + os.urandom(2000))
        else:
            connection.sendall(b"HTTP/1.1 %s No\r\nRetry-After: 1\r\nContent-Length: 2\r\n\r\nno" % mode.encode())
            return True
        return False

    def answer(self, connection, mode, status, fields, answer):
        head = "HTTP/1.1 %d Text\r\nContent-Type: %s\r\n" % (status, fields.get("Content-Type"))
        if mode == "answer is lost":
            return False
        if mode == "ends in the head":
            connection.sendall(head[:20].encode())
            return False
        if mode == "ends in the body":
            connection.sendall((head + "Content-Length: %d\r\n\r\n" % (len(answer) + 50)).encode() + answer)
            return False
        if mode == "slow":
            for byte in (head + "Content-Length: %d\r\n\r\n" % len(answer)).encode() + answer:
                connection.sendall(bytes([byte]))
                time.sleep(0.004)
            return True
        if mode == "HTTP/1.0":
            connection.sendall(head.replace("1.1", "1.0", 1).encode() + b"\r\n" + answer)
            return False
        if mode == "100 first":
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 3)
        if mode == "chunked":
            connection.sendall((head + "Transfer-Encoding: chunked\r\n\r\n").encode())
            for at in range(0, len(answer), 7):
                connection.sendall(b"%x;x=y\r\n%s\r\n" % (len(answer[at:at + 7]), answer[at:at + 7]))
            connection.sendall(b"0\r\nTrailer: z\r\n\r\n")
            return True
        connection.sendall((head + "Content-Length: %d\r\n\r\n" % len(answer)).encode() + answer)
        return mode != "closes"


FORWARDED = ("answer is lost", "ends in the head", "ends in the body", "slow", "HTTP/1.0", "100 first", "chunked", "closes")
REFUSED = ("reads half", "never answers", "resets", "503", "429", "500", "redirects", "not http")


def taken_by(*agents):
    """As their last lines say."""
    return sum(int(re.findall(r"taken=(\d+)", agent.text())[-1]) for agent in agents)


def closes(server, agents, what, **parameters):
    """Everything that the agents took is at the server, as a sample or as lost. Returns the accounting."""
    accounting = server.flamegraph(from_="now-2h", until="now+2h", **parameters)["accounting"]
    equal((accounting["samples"] + accounting["lost"], accounting["taken"]), (accounting["taken"], taken_by(*agents)),
          what + ": samples + lost = taken = what the agent says it took")
    return accounting


def bad_answers():
    """One agent with a spool and one without, while the ways of failing come one after the other."""
    build_programs("burn")
    start([PROGRAMS + "/burn", "60", "120"])
    server = Server(data="answers")
    proxy = Proxy(server)
    agents = [Agent(*OPTIONS, "--host", "spools", "--spool", spool_of("answers-spool"), server=proxy.url, log="spools.log"),
              Agent(*OPTIONS, "--host", "queues", "--queue-limit", "8M", server=proxy.url, log="queues.log")]
    for mode in FORWARDED + REFUSED:
        proxy.mode = mode
        wait_for(lambda: proxy.met.get(mode, 0) >= 1, 10, 0.02)
    equal(sorted(m for m, n in proxy.met.items() if m != "good"), sorted(FORWARDED + REFUSED),
          "each way of failing was met")
    proxy.mode = "good"
    check(wait_for(lambda: not spooled_reports("answers-spool") and proxy.met.get("good", 0) > 8, 60), "the spool becomes empty",
          agents[0].text()[-600:])
    wait_for(lambda: "taken" in agents[1].text(), 1)
    for agent in agents:
        equal(agent.stop()[0], 0, "SIGTERM ends it")
    for agent, host in zip(agents, ("spools", "queues")):
        accounting = closes(server, [agent], host, match='{host="%s"}' % host)
        equal(accounting["lost"], 0, host + ": nothing is lost")
    note("requests: %s" % proxy.met)
    server.stop()


def other_labels():
    """What an earlier run left keeps that run's labels, whoever sends it and to whom."""
    build_programs("burn")
    start([PROGRAMS + "/burn", "60", "120"])
    nobody = "http://127.0.0.1:%d" % free_port()
    runs = []
    for old in ("a", "b"):
        runs.append(Agent(*OPTIONS, "--label", "run=" + old, "--spool", spool_of("labels"), "--duration", "1300ms",
                          server=nobody, log=old + ".log"))
        equal(runs[-1].process.wait(30), 0, "run %s ends without a server" % old)
    server = Server(data="labels")
    runs.append(Agent(*OPTIONS, "--label", "run=c", "--spool", spool_of("labels"), server=server, log="c.log"))
    check(wait_for(lambda: not spooled_reports("labels"), 30), "another server: the spool becomes empty", runs[2].text()[-500:])
    time.sleep(1.2)
    runs[2].stop()
    closes(server, runs, "three runs")
    for name, agent in zip("abc", runs):
        found = sum(n for _, n in server.folded(from_="now-1h", match='{run="%s"}' % name))
        equal(found, taken_by(agent), "run %s's samples have its label" % name)
    server.stop()


def damaged_spool():
    """Bytes of every second report but the last are changed while no agent runs."""
    build_programs("burn")
    start([PROGRAMS + "/burn", "60", "120"])
    one = Agent(*OPTIONS, "--spool", spool_of("damaged"), "--duration", "2500ms", server="http://127.0.0.1:%d" % free_port(),
                log="damaged.log")
    equal(one.process.wait(30), 0, "a run without a server")
    for name in spooled_reports("damaged")[:-1:2]:
        with open(os.path.join(spool_of("damaged"), name), "r+b") as file:
            size = os.path.getsize(file.name)
            file.seek(size // 2)
            file.write(b"damaged!")
    with open(spool_of("damaged") + "/00ffffffffffff00.spool", "wb") as file:
        file.write(os.urandom(5000))
    server = Server(data="damaged")
    two = Agent(*OPTIONS, "--spool", spool_of("damaged"), server=server, log="damaged2.log")
    check(wait_for(lambda: not spooled_reports("damaged"), 30), "what is left of it is sent", two.text()[-500:])
    time.sleep(1.2)
    two.stop()
    accounting = closes(server, [one, two], "with damaged reports")
    check(accounting["lost"] > 0, "what was in them is lost, and said so", accounting)
    equal(accounting["lost_by"].get("spool", 0), accounting["lost"], "as lost by the spool")
    note("\n# ".join(line for line in two.text().splitlines() if "spool" in line))
    server.stop()


def vanishing_spool():
    """The directory is removed, then it is of a file system that becomes read-only, under the agent."""
    build_programs("burn")
    start([PROGRAMS + "/burn", "60", "120"])
    server = Server(data="vanishing")
    proxy = Proxy(server)
    proxy.mode = "503"
    place = spool_of("mounted")
    os.makedirs(place, mode=0o700)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m,mode=0700", "tmpfs", place], capture_output=True).returncode:
        return skip("mounting a small tmpfs is not permitted here")
    try:
        spool = place + "/spool"
        os.makedirs(spool, mode=0o700)
        one = Agent(*OPTIONS, "--spool", spool, server=proxy.url, log="vanishing.log")
        check(wait_for(lambda: any(f.endswith(".spool") for f in os.listdir(spool)), 15), "reports go to disk")
        readonly = subprocess.run(["mount", "-o", "remount,ro", place], capture_output=True).returncode == 0
        if readonly or subprocess.run(["mount", "-o", "remount,ro,size=16m", place], capture_output=True).returncode == 0:
            check(wait_for(lambda: "spool does not take reports" in one.text(), 20), "read-only: it says so", one.text()[-500:])
            time.sleep(1.5)
            subprocess.run(["mount", "-o", "remount,rw", place], check=True)
            time.sleep(1.5)
        else:
            note("a file that is open for writing keeps the file system writable")
        for file in os.listdir(spool):
            os.unlink(os.path.join(spool, file))
        os.rmdir(spool)
        time.sleep(2.5)
        equal(one.process.poll(), None, "without its directory it goes on")
        proxy.mode = "good"
        check(wait_for(lambda: "server takes reports" in one.text(), 30), "the server takes reports", one.text()[-500:])
        time.sleep(2.5)
        equal(one.stop()[0], 0, "SIGTERM ends it")
        accounting = closes(server, [one], "after all that")
        note("%s\n# %s" % (accounting["lost_by"], "\n# ".join(line for line in one.text().splitlines() if "spool" in line)))
        server.stop()
    finally:
        subprocess.run(["umount", "-l", place])


if __name__ == "__main__":
    need_bpf()
    run(bad_answers, other_labels, damaged_spool, vanishing_spool)
