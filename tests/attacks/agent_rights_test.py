# SPDX-License-Identifier: Apache-2.0
"""The agent as its shipped unit runs it: all that it does works with the rights that the unit leaves to it; what
speaks to the network, and the threads that read what it heard, have none of them, by https, while it spools and while it
uploads."""
import glob
import os
import re
import socket
import ssl
import subprocess
import threading
import time

import service
from harness import PROGRAMS, WORK, Agent, Server, build_programs, check, equal, need_bpf, run, skip, start, stop_all, wait_for

UNIT = "deploy/systemd/farflame-agent.service"
READERS = {"ship", "upload", "symbols"}
CONFIG = """
server = https://127.0.0.1:%d
ca-file = %s
report-interval = 1s
frequency = 49
profile = on-cpu,off-cpu,mem-alloc,page-fault
mem-budget = 20%%
spool = /var/lib/farflame-agent
log-level = debug
"""


def pump(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
    for end_ in (source, sink):
        try:
            end_.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def tls_before(server):
    """A port that speaks TLS before the server, and the certificate to be trusted."""
    certificate = os.path.join(WORK, "tls.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", certificate + ".key", "-out", certificate,
                    "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"], check=True,
                   capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate + ".key")
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(plain):
        try:
            outer = context.wrap_socket(plain, server_side=True)
            inner = socket.create_connection(("127.0.0.1", server.port))
        except OSError:
            plain.close()
            return
        threading.Thread(target=pump, args=(outer, inner), daemon=True).start()
        pump(inner, outer)

    def accept():
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1], certificate


def threads(pid):
    """name → fields of status, of all threads"""
    found = {}
    for path in glob.glob("/proc/%d/task/*/status" % pid):
        try:
            fields = dict(line.split(":", 1) for line in open(path) if ":" in line)
        except OSError:
            continue
        found[fields["Name"].strip()] = {name: value.strip() for name, value in fields.items()}
    return found


def may_have_realtime(pid):
    """Not where its group has no time for it: in cgroups of the first version a new group has none (sched-rt-group.rst)."""
    groups = dict(line.rstrip("\n").split(":", 2)[1:] for line in open("/proc/%d/cgroup" % pid))
    path = next((path for names, path in groups.items() if "cpu" in names.split(",")), None)
    budget = "/sys/fs/cgroup/cpu%s/cpu.rt_runtime_us" % path
    return path is None or not os.path.exists(budget) or int(open(budget).read()) > 0


def check_threads(pid, when):
    found = {name: fields for name, fields in threads(pid).items() if name in READERS}
    for child in open("/proc/%d/task/%d/children" % (pid, pid)).read().split():
        found.update((name, fields) for name, fields in threads(int(child)).items() if name == "farflame-net")
    rights = {name: [fields[key].strip("0") for key in ("CapEff", "CapPrm", "CapInh", "CapAmb")] + [fields["Seccomp"], fields["NoNewPrivs"]]
              for name, fields in found.items()}
    equal({name: right for name, right in rights.items() if right != ["", "", "", "", "2", "1"]}, {},
          "%s: nobody who hears the server has capabilities, each has a filter" % when)
    if check({"ship", "upload", "farflame-net"} <= set(rights), "%s: they are there" % when, rights):
        check(found["farflame-net"]["Uid"] != found["ship"]["Uid"], "%s: the process of the network has a user of its own" % when,
              found["farflame-net"]["Uid"])


def test_as_unit():
    why = service.missing()
    if why:
        return skip(why)
    build_programs("takes")
    server = Server()
    port, certificate = tls_before(server)
    takes = start([PROGRAMS + "/takes", "60", "40000"], "takes.log")
    unit = service.Unit(UNIT, CONFIG % (port, certificate), [])
    try:
        as_unit(server, unit)
    finally:
        unit.stop()
        takes.kill()


def as_unit(server, unit):
    check(wait_for(lambda: "server takes reports" in unit.text(), 60), "started by the unit it reports, by https",
          unit.text()[-1500:] + unit.manager_text()[-500:])
    pid = unit.pid()
    check_threads(pid, "it ships")
    check(wait_for(lambda: "module uploaded" in unit.text(), 30), "what the server asks for is uploaded", unit.text()[-1500:])
    check_threads(pid, "it uploads")
    server.stop()
    check(wait_for(lambda: "server does not take reports now" in unit.text(), 30), "the server goes away")
    spool = glob.glob(unit.room + "/layers/_var_lib/farflame-agent") or [unit.room]
    check(wait_for(lambda: any(os.path.getsize(path) for path in glob.glob(spool[0] + "/*.spool")), 30),
          "reports go to the spool", os.listdir(spool[0]))
    check_threads(pid, "it spools")
    server.start()
    check(wait_for(lambda: unit.text().count("server takes reports") >= 2, 60), "and from there to the server",
          unit.text()[-1500:])
    rows = wait_for(lambda: [types for types in [{row["name"] for row in server.json("/api/v1/types")["types"]}]
                             if {"on-cpu", "off-cpu", "page-fault", "mem-alloc"} <= types], 40, 1)
    check(rows, "samples of all types came, windows in allocators too", server.get("/api/v1/types")[2][:500])
    has_realtime = may_have_realtime(pid)
    os.kill(pid, 15)
    wait_for(lambda: "info stacks" in unit.text(), 10)
    time.sleep(0.2)
    text = unit.text()
    stacks = re.findall(r"info stacks complete=(\d+) guessed=\d+ incomplete=(\d+)", text)
    check(stacks and int(stacks[-1][0]) > int(stacks[-1][1]), "most stacks are complete", stacks)
    denied = [line for line in text.splitlines() if re.search("ermission denied|not permitted|gave up|Function not implemented|"
                                                            "keeps its rights|Cannot allocate|agent lacks", line)]
    if not has_realtime:
        denied = [line for line in denied if "what=realtime" not in line]  # nobody has it here
    equal(denied, [], "nothing was denied to it")


def metrics(path):
    try:
        return open(path, encoding="utf-8").read()
    except OSError:
        return ""


class Group:
    """Memory for processes, as containers have it."""
    def __init__(self):
        is_new = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
        self.path = "/sys/fs/cgroup/%sfarflame-rights-%d" % ("" if is_new else "memory/", os.getpid())
        self.limit = "memory.max" if is_new else "memory.limit_in_bytes"

    def open(self, text):
        try:
            os.mkdir(self.path)
            self.give(text)
        except OSError:
            return False
        return True

    def give(self, text):
        with open(os.path.join(self.path, self.limit), "w") as file:
            file.write(text)

    def prefix(self):
        return ["sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', self.path]


def test_bpf_again():
    """The child that loads BPF programs is ended by a limit on memory, which is lifted later."""
    server, path, group = Server(), os.path.join(WORK, "agent.prom"), Group()
    if not group.open("12M"):
        return skip("no limits on memory here")
    try:
        agent = Agent("--report-interval", "1s", "--frequency", "49", "--metrics-file", path, server=server, wait=False,
                      prefix=group.prefix())
        if not check(wait_for(lambda: 'capture="perf"' in metrics(path), 30), "too little memory for BPF: perf events",
                     agent.text()[-800:]):
            return
        check(wait_for(lambda: "what=bpf" in agent.text() and "lacks_bpf_total" in metrics(path), 40),
              "it tries BPF again, says and counts that it cannot", agent.text()[-800:])
        told = lambda: any(row.get("lacks", {}).get("bpf") for row in server.json("/api/v1/agents")["agents"])
        check(wait_for(told, 20), "so does the server, of that agent", server.get("/api/v1/agents")[2][:800])
        check('farflame_server_agents_lacking{what="bpf"} 1' in server.get("/metrics")[2].decode(), "and to Prometheus")
        group.give("512M")
        check(wait_for(lambda: 'capture="bpf"' in metrics(path), 60), "with more memory it goes over to BPF",
              agent.text()[-800:])
        equal(agent.process.poll(), None, "as the same process")
        agent.stop()
    finally:
        stop_all()
        wait_for(lambda: not os.path.exists(group.path) or not subprocess.run(["rmdir", group.path], capture_output=True).returncode, 5)


def test_few_descriptors():
    agent = Agent("--report-interval", "1s", "--frequency", "49", server=Server(), wait=False, log="few.log",
                  prefix=["prlimit", "--nofile=40:40"])
    check(wait_for(lambda: "what=descriptors" in agent.text(), 40), "too few descriptors: it says so",
          agent.text()[-800:])
    agent.stop()


need_bpf()
run(test_as_unit, test_bpf_again, test_few_descriptors)
