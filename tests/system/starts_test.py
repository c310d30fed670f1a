# SPDX-License-Identifier: Apache-2.0
"""A server's start: what the service manager hears, what the log says was found, and wrong uses: one sentence each,
with the exit status that says whose fault it is."""
import os
import signal
import socket
import subprocess

from harness import BUILD, WORK, check, end, equal, note, run, start

SERVER = BUILD + "/farflame-server"


def refused(status, part, what, *arguments):
    done = subprocess.run([SERVER, *arguments], capture_output=True, text=True, timeout=30)
    lines = [line for line in done.stderr.splitlines() if line.startswith("farflame-server: ")]
    check(done.returncode == status and len(lines) == 1 and part in lines[0], "%s: %d and one sentence" % (what, status),
          "%d\n%s" % (done.returncode, done.stderr))


def wrong_uses():
    data = WORK + "/data"
    for listen in ("7878", "127.0.0.1", "127.0.0.1:99999", ":7878", "::1:7878", "127.0.0.1:http"):
        refused(2, "is not an address and a port", "--listen " + listen, "--data", data, "--listen", listen)
    with open(WORK + "/quoted.conf", "w") as file:
        file.write('\nlisten = "127.0.0.1:7878"\n')
    refused(2, "quoted.conf:2: the value of 'listen' stands in quotes", "a value in quotes", "--config", WORK + "/quoted.conf")
    for value in ("0%", "96%", "many%", "7x"):
        refused(2, "--max-disk", "--max-disk " + value, "--data", data, "--max-disk", value)
    check(not os.path.exists(data), "nothing was made of all that")
    refused(1, "the directory it is to lie in is not there", "a --data that is misspelt", "--data", WORK + "/misspelt/data",
            "--listen", "127.0.0.1:0")
    refused(1, "--symbol-dir: use directory " + WORK + "/none", "a --symbol-dir that is not there", "--data", data,
            "--listen", "127.0.0.1:0", "--symbol-dir", WORK + "/none")
    printed = subprocess.run([SERVER, "--symbol-memory", "256M", "--max-disk", "50%", "--print-config"], capture_output=True,
                             text=True).stdout
    check("symbol-memory = 256M\n" in printed and "max-disk = 50%\n" in printed, "--print-config has sizes as they are written")


class Manager:
    """The service manager's side of sd_notify(3)."""

    def __init__(self, abstract):
        self.path = "\0farflame-test-%d" % os.getpid() if abstract else WORK + "/notify"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.settimeout(20)

    def environment(self, **more):
        return dict(os.environ, NOTIFY_SOCKET=self.path.replace("\0", "@"), **more)

    def hear(self, wanted):
        """Everything up to the datagram that has it."""
        heard = []
        while not heard or wanted not in heard[-1]:
            heard.append(self.socket.recv(1000).decode())
        return heard


def notifies():
    for abstract in (False, True):
        manager = Manager(abstract)
        server = start([SERVER, "--data", WORK + "/notified", "--listen", "127.0.0.1:0"], "notified.log",
                       env=manager.environment(WATCHDOG_USEC="1500000"))
        heard = manager.hear("READY=1")
        note(repr(heard))
        check("STATUS=ready at 127.0.0.1:" in heard[-1], "READY=1, and where", heard)
        check(manager.hear("WATCHDOG=1"), "the watchdog hears of it")
        server.send_signal(signal.SIGHUP)
        check(manager.hear("WATCHDOG=1") and server.poll() is None, "SIGHUP does nothing")
        server.send_signal(signal.SIGTERM)
        check("STOPPING=1" in manager.hear("STOPPING=1")[-1], "STOPPING=1 at SIGTERM")
        equal(end(server)[0], 0, "it ends with 0")
    said = open(WORK + "/notified.log").read()
    equal(said.count("new data directory"), 1, "a new data directory is said once")
    check("days=0 oldest=none" in said and "retention=7d" in said, "what was found and is in force is said", said)


if __name__ == "__main__":
    run(wrong_uses, notifies)
