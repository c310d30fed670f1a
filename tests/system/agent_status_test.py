# SPDX-License-Identifier: Apache-2.0
"""What an agent tells on its own host: --metrics-file as promtool and --status read it, and what it says to wrong uses."""
import os
import re
import subprocess
import time

from harness import Agent, BUILD, Server, WORK, check, end, equal, free_port, need_bpf, run, start, wait_for

AGENT = BUILD + "/farflame-agent"
FILE = WORK + "/agent.prom"


def agent(*arguments, seconds=30):
    done = subprocess.run([AGENT, *arguments], capture_output=True, text=True, timeout=seconds)
    return done.returncode, done.stdout, done.stderr


def status():
    return agent("--status", "--metrics-file", FILE)


def metrics():
    text = open(FILE, encoding="utf-8").read()
    return {name: float(value) for name, value in re.findall(r"^(\S+) (\S+)$", text, re.M)}


def busy():
    return start(["sh", "-c", "while :; do :; done"])


def tells_how_it_fares():
    code, text, _ = status()
    check(code == 1 and "no agent writes" in text, "without an agent --status says so and exits with 1", text)
    server = Server()
    busy()
    one = Agent("--report-interval", "1s", "--frequency", "49", "--metrics-file", FILE, server=server)
    accepted = wait_for(lambda: os.path.exists(FILE) and metrics().get("farflame_agent_reports_accepted", 0) >= 2, 40)
    check(accepted, "reports are accepted", one.text()[-800:])
    tried = subprocess.run(["promtool", "check", "metrics"], stdin=open(FILE, "rb"), capture_output=True)
    equal((tried.returncode, tried.stdout + tried.stderr), (0, b""), "promtool check metrics has nothing to say")
    code, text, _ = status()
    equal(code, 0, "--status exits with 0")
    check(server.url in text and "by bpf" in text and "49 Hz" in text, "and names server, rate and capture", text)
    check(re.search(r"samples +[1-9]\d* taken, \d+ lost", text), "and what was taken and lost", text)
    server.stop()
    check(wait_for(lambda: status()[0] == 1 and "it is away" in status()[1], 40),
          "with the server away it exits with 1 and says why", status()[1])
    end(one.process, how=9)
    check(wait_for(lambda: "does not run" in status()[1], 30), "after a SIGKILL the agent does not run", status()[1])


def wrong_uses():
    gone = start(["true"])
    gone.wait()
    code, _, text = agent("--server", "http://127.0.0.1:1", "--pid", str(gone.pid))
    equal((code, text.strip()), (2, "farflame-agent: --pid %d: there is no such process" % gone.pid), "--pid of nobody")
    code, _, text = agent("--server", "https://127.0.0.1:1", "--ca-file", WORK + "/none")
    check(code == 2 and text.startswith("farflame-agent: --ca-file '%s/none'" % WORK), "a --ca-file that is not there", text)
    code, _, text = agent("--server", "http://127.0.0.1:1", "--ca-file", AGENT)
    check(code == 2 and "is not https" in text, "a --ca-file for http", text)
    busy()
    code, _, text = agent("--server", "http://127.0.0.1:%d" % free_port(), "--duration", "2s", "--frequency", "99")
    check(code == 1 and "could not be sent" in text, "--duration without a server exits with 1", text[-500:])


def pid_that_ends():
    server = Server()
    sleeper = start(["sleep", "60"])
    one = Agent("--pid", str(sleeper.pid), server=server)
    check("nothing is left" not in one.text(), "nothing is said while the process is there")
    end(sleeper)
    check(wait_for(lambda: "nothing is left to profile" in one.text(), 20), "its end is said", one.text()[-500:])
    time.sleep(2.5)
    equal(one.text().count("nothing is left to profile"), 1, "once")
    equal(one.stop()[0], 0, "the agent ends well")


need_bpf()
run(tells_how_it_fares, wrong_uses, pid_that_ends)
