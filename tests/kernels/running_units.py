# SPDX-License-Identifier: Apache-2.0
"""The harness' server and agent as the system's own units, for tests in a guest: options go into /etc/farflame, the log
into a file."""
import os
import shutil
import signal
import subprocess

import harness

SERVER, AGENT = "farflame-server", "farflame-agent"


def systemctl(*arguments):
    return subprocess.run(["systemctl", *arguments], capture_output=True, text=True)


def show(unit, *properties):
    """property → value; without names all of them"""
    wanted = ["-p" + ",".join(properties)] if properties else ["--all"]
    return dict(line.split("=", 1) for line in systemctl("show", *wanted, unit).stdout.splitlines() if "=" in line)


def pid(unit):
    return int(show(unit, "MainPID")["MainPID"])


def wait_until_active(unit, seconds=300):
    return harness.wait_for(lambda: show(unit, "ActiveState")["ActiveState"] == "active", seconds)


class Main:
    """A unit's main process, with as much of a Popen as tests use."""
    def __init__(self, unit):
        self.unit = unit
        self.pid = pid(unit)

    def poll(self):
        if pid(self.unit) == self.pid:
            return None
        self.returncode = int(show(self.unit, "ExecMainStatus")["ExecMainStatus"])
        return self.returncode

    def wait(self, seconds=30):
        harness.wait_for(lambda: self.poll() is not None, seconds)
        return self.poll()

    def send_signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)


def configure(unit, arguments, log):
    """Options as on a command line become the unit's file, its log is a file. What was there before is over."""
    lines, words = [], list(arguments)
    while words:
        name = words.pop(0).removeprefix("--")
        lines.append("%s = %s\n" % (name, words.pop(0) if words and not words[0].startswith("--") else "true"))
    with open("/etc/farflame/%s.conf" % unit.split("-")[1], "w", encoding="utf-8") as file:
        file.writelines(lines)
    folder = "/run/systemd/system/%s.service.d" % unit
    os.makedirs(folder, exist_ok=True)
    with open(folder + "/log.conf", "w", encoding="utf-8") as file:
        file.write("[Service]\nStandardError=append:%s\n" % log)
    systemctl("daemon-reload")


class UnitServer(harness.Server):
    def __init__(self, *arguments, port=None, data="data", log="server.log"):
        self.port = port or harness.free_port()
        self.url = "http://127.0.0.1:%d" % self.port
        self.log = log
        systemctl("stop", SERVER)
        shutil.rmtree("/var/lib/private/farflame", ignore_errors=True)
        configure(SERVER, ["--listen", "127.0.0.1:%d" % self.port, *arguments], os.path.join(harness.WORK, log))
        self.start()

    def start(self):
        started = systemctl("start", SERVER)
        if started.returncode:
            raise RuntimeError("the server's unit does not start: " + started.stderr)
        self.process = Main(SERVER)

    def stop(self):
        systemctl("stop", SERVER)
        return int(show(SERVER, "ExecMainStatus")["ExecMainStatus"]), 0


class UnitAgent(harness.Agent):
    def __init__(self, *arguments, server=None, log="agent.log", wait=True, prefix=()):
        if prefix:
            raise RuntimeError("a unit is started by nothing else")
        self.log = log
        self.log_begin = harness.log_size(log)
        systemctl("stop", AGENT)
        configure(AGENT, [*arguments, *(["--server", server.url] if server else [])], os.path.join(harness.WORK, log))
        systemctl("start", AGENT)
        self.process = Main(AGENT)
        if wait:
            self.wait_until_sampling()

    def wait_until_sampling(self):
        if not harness.wait_for(lambda: "info profiling" in self.text(), 180):
            raise RuntimeError("the agent does not sample after 180 s:\n" + self.text()[-1500:])

    def stop(self):
        systemctl("stop", AGENT)
        return int(show(AGENT, "ExecMainStatus")["ExecMainStatus"]), 0
