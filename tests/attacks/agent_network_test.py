# SPDX-License-Identifier: Apache-2.0
"""Whom the server's bytes meet first: a process without rights, by itself. The agent has no socket of the network. That
process is killed while reports go, while a file is uploaded and while nothing is said: it is replaced, which is counted, and
every sample arrives."""
import glob
import os
import re
import signal
import time

from harness import PROGRAMS, WORK, Agent, Server, build_programs, check, equal, need_bpf, note, run, start, wait_for

METRICS = os.path.join(WORK, "agent.prom")
OPTIONS = ["--frequency", "199", "--report-interval", "1s", "--metrics-file", METRICS]


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def network_of(agent):
    """Its process id, once it has entered its sandbox; None: there is none now."""
    for pid in read("/proc/%d/task/%d/children" % (agent.process.pid, agent.process.pid)).split():
        if read("/proc/%s/comm" % pid) == "farflame-net\n" and "Seccomp:\t2" in read("/proc/%s/status" % pid):
            return int(pid)
    return None


def tasks(pid):
    """status of all its threads, as name → value"""
    for path in glob.glob("/proc/%d/task/*/status" % pid):
        yield dict(line.split(":", 1) for line in read(path).splitlines() if ":" in line)


def network_sockets(pid):
    """inodes of its descriptors that are sockets of TCP or UDP"""
    mine = {int(m[1]) for link in glob.glob("/proc/%d/fd/*" % pid) if os.path.lexists(link)
            for m in [re.match(r"socket:\[(\d+)\]", os.readlink(link))] if m}
    there = {int(line.split()[9]) for name in ("tcp", "tcp6", "udp", "udp6")
             for line in read("/proc/%d/net/%s" % (pid, name)).splitlines()[1:]}
    return mine & there


def restarts():
    found = re.search(r"^farflame_agent_ship_network_restarts_total (\d+)", read(METRICS), re.M)
    return int(found[1]) if found else 0


def rights():
    server = Server(data="rights")
    agent = Agent(*OPTIONS, server=server)
    check(wait_for(lambda: "server takes reports" in agent.text(), 30), "reports arrive", agent.text()[-800:])
    pid = network_of(agent)
    if not check(pid, "by a process of its own"):
        return
    seen = 0
    wrong = []
    for fields in tasks(pid):
        seen += 1
        ids = {int(i) for key in ("Uid", "Gid") for i in fields[key].split()}
        given = [int(fields[key], 16) for key in ("CapEff", "CapPrm", "CapInh", "CapAmb")]
        if (len(ids) != 1 or min(ids) < 0x7fc00000 or any(given) or fields["NoNewPrivs"].strip() != "1"
                or fields["Seccomp"].strip() != "2" or fields["Groups"].strip()):
            wrong.append(fields)
    check(seen >= 2, "it serves by threads", seen)
    equal(wrong, [], "each has a user and group that nobody else has, no capabilities, no_new_privs and a filter")
    check(network_sockets(pid), "it has the connection to the server")
    equal(network_sockets(agent.process.pid), set(), "the agent has none")
    note("kept by it: %s" % sorted({os.path.basename(os.readlink(link)).split(":")[0] for link in glob.glob("/proc/%d/fd/*" % pid)}))
    equal(agent.stop()[0], 0, "SIGTERM ends the agent")
    check(wait_for(lambda: not os.path.exists("/proc/%d" % pid), 5), "and the process with it")
    server.stop()


def kills():
    build_programs("burn")
    start([PROGRAMS + "/burn", "60", "120"])
    server = Server(data="kills")
    agent = Agent(*OPTIONS, "--upload-rate", "2M", server=server, log="kills.log")
    check(wait_for(lambda: "server takes reports" in agent.text(), 30), "reports arrive")
    for times, wait_s in enumerate((0, 0.3, 0.9, 0), 1):
        pid = wait_for(lambda: network_of(agent), 40, 0.01)
        time.sleep(wait_s)
        if not check(pid, "there is a process to kill"):
            break
        os.kill(pid, signal.SIGKILL)
        check(wait_for(lambda: restarts() >= times, 40), "killed %d times: replaced, and counted" % times,
              agent.text()[-800:])
    uploaded = lambda: int((re.findall(r"^farflame_agent_ship_modules_uploaded_total (\d+)", read(METRICS), re.M) or ["0"])[-1])
    check(wait_for(lambda: uploaded() > 0, 60), "files are uploaded", agent.text()[-800:])
    check("process of the network ended why=\"signal 9\"" in agent.text(), "and said", agent.text()[-800:])
    sent = lambda: int((re.findall(r"^farflame_agent_ship_samples_total (\d+)", read(METRICS), re.M) or ["0"])[-1])
    before = sent()
    check(wait_for(lambda: sent() > before, 60), "reports go on")
    equal(agent.stop()[0], 0, "SIGTERM ends the agent")
    taken = int(re.findall(r"taken=(\d+)", agent.text())[-1])
    accounting = server.flamegraph(from_="now-1h", until="now+1h")["accounting"]
    equal((accounting["taken"], accounting["lost"], accounting["samples"]), (taken, 0, taken), "every sample arrived, once")
    server.stop()


def orphan():
    """An agent that is killed leaves nobody behind."""
    server = Server(data="orphan")
    agent = Agent(*OPTIONS, server=server, log="orphan.log")
    pid = wait_for(lambda: network_of(agent), 30)
    os.kill(agent.process.pid, signal.SIGKILL)
    check(pid and wait_for(lambda: not os.path.exists("/proc/%d" % pid), 5), "with the agent killed, the process is gone")
    server.stop()


need_bpf()
run(rights, kills, orphan)
