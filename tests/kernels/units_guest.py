# SPDX-License-Identifier: Apache-2.0
"""In a guest that has booted with both units: are they what they say, and do they do what they are for, there?"""
import os
import re
import subprocess
import time

from harness import PROGRAMS, Server, check, equal, note, run, start, wait_for
from running_units import AGENT, SERVER, pid, show, systemctl, wait_until_active

NOBODY = 65534
UNITS = "/usr/lib/systemd/system/%s.service"
KERNEL = tuple(int(word) for word in os.uname().release.split(".")[:2])
DENIED = "ermission denied|not permitted|Function not implemented|Cannot allocate|Bad system call|agent lacks"
state = {}


class Running(Server):
    """The one that is there already, at its usual port."""
    def __init__(self):
        self.port, self.url = 7878, "http://127.0.0.1:7878"


def log(unit, *more):
    return subprocess.run(["journalctl", "-b", "-o", "cat", "--no-pager", *more, "-u", unit], capture_output=True,
                          text=True).stdout


def ready():
    try:
        return Running().get("/readyz", timeout=10)[0] == 200
    except OSError:
        return False


# --- started ---

def test_started():
    for unit in (SERVER, AGENT):
        check(wait_until_active(unit), "%s is active" % unit, systemctl("status", "--no-pager", unit).stdout)
        equal(show(unit, "NRestarts"), {"NRestarts": "0"}, "%s started once" % unit)
    equal(show(SERVER, "Type"), {"Type": "notify"}, "the server's readiness is what it says itself")
    check(ready(), "and so it is")
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", UNITS % SERVER, UNITS % AGENT], capture_output=True, text=True)
    said = [line for line in done.stderr.splitlines() if "farflame" in line]
    equal(said, [], "systemd %s understands every line of both" %
          systemctl("show", "-pVersion", "--value").stdout.strip())
    note("up after %s s" % open("/proc/uptime").read().split()[0])


# --- rights ---

UNIT_OF_SIZE = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
NAMES = {"RestartSec": "RestartUSec", "TimeoutStopSec": "TimeoutStopUSec", "TimeoutStartSec": "TimeoutStartUSec",
         "WatchdogSec": "WatchdogUSec", "CPUQuota": "CPUQuotaPerSecUSec"}
SECONDS = {"2": "2s", "10": "10s", "30": "30s", "90": "1min 30s", "180": "3min"}
WORDS = {"CapabilityBoundingSet", "RestrictAddressFamilies", "RestartPreventExitStatus", "SystemCallFilter"}
NOT_SHOWN = {"ExecStart", "ExecReload", "SystemCallErrorNumber"}
MEMORY = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def lines_of(unit):
    """Of [Service]: (name, value)"""
    part = open(UNITS % unit, encoding="utf-8").read().split("[Service]\n")[1].split("\n[")[0]
    return [line.split("=", 1) for line in part.splitlines() if line and not line.startswith("#")]


def is_as_written(name, value, shown):
    if name in WORDS:
        shown, wanted = set(shown.lower().split()), set(value.lower().split())
        if name == "SystemCallFilter":  # shown without the names of groups
            return {word for word in wanted if word[0] != "@"} <= shown and not shown & {"mount", "init_module", "reboot", "bpf"} - wanted
        return shown == wanted
    if name.startswith("Memory") and value.endswith("%"):
        return abs(int(shown) - MEMORY * int(value[:-1]) / 100) < MEMORY / 100
    if value[-1:] in UNIT_OF_SIZE and value[:-1].isdigit():
        return int(shown) == int(value[:-1]) * UNIT_OF_SIZE[value[-1]]
    if name == "CPUQuota":
        return shown == "%dms" % (10 * int(value[:-1]))
    return shown == (SECONDS[value] if name in NAMES else value)


def status_of(process):
    return dict(line.split(":\t", 1) for line in open("/proc/%d/status" % process).read().splitlines() if ":\t" in line)


def mount_options(process):
    """mount point → options, as that process sees them"""
    rows = [line.split() for line in open("/proc/%d/mountinfo" % process)]
    return {row[4]: row[5].split(",") for row in rows}


def test_rights():
    for unit in (SERVER, AGENT):
        shown = show(unit)
        other = ["%s=%s is %s" % (name, value, shown.get(NAMES.get(name, name))) for name, value in lines_of(unit)
                 if name not in NOT_SHOWN and not is_as_written(name, value, shown.get(NAMES.get(name, name), "?"))]
        equal(other, [], "%s: systemd has every one of its lines as it is written" % unit)
        facts = status_of(pid(unit))
        equal((facts["NoNewPrivs"], facts["Seccomp"]), ("1", "2"), "%s: the kernel has its filter" % unit)
        group = "/sys/fs/cgroup" + shown["ControlGroup"] + "/"
        limits = {name: open(group + name).read().strip() for name in ("memory.max", "pids.max")}
        equal(limits, {"memory.max": shown["MemoryMax"], "pids.max": shown["TasksMax"]}, "%s: and its limits" % unit)
        mounts = mount_options(pid(unit))
        check("ro" in mounts["/"], "%s: what is not its own is read-only to it" % unit, mounts["/"])
    server, agent = status_of(pid(SERVER)), status_of(pid(AGENT))
    equal(int(server["CapBnd"], 16), 0, "the server has no capability and gets none")
    check(server["Uid"].split()[0] not in ("0", str(NOBODY)), "and a user of its own", server["Uid"])
    equal(bin(int(agent["CapBnd"], 16)).count("1"), len(dict(lines_of(AGENT))["CapabilityBoundingSet"].split()),
          "the agent has those of its list")


# --- what it is for ---

def test_flame_graph():
    begin = time.monotonic()
    state["busy"] = start([PROGRAMS + "/chain_pie", "3000"], "busy.log", user=NOBODY, group=NOBODY, extra_groups=[], cwd="/")

    def is_named(rows):
        return any(frames[0] == "chain_pie" and {"main", "chain_run", "level_1", "leaf"} <= set(frames) for frames, _ in rows)

    rows = Running().wait_for_names(is_named, 400)
    check(is_named(rows), "a busy program of nobody has a flame graph with its functions' names",
          "\n".join(";".join(frames) for frames, _ in rows[:10]) + log(SERVER)[-1500:] + log(AGENT)[-1500:])
    note("after %d s" % (time.monotonic() - begin))
    metrics = open("/run/farflame-agent/metrics.prom").read()
    check('capture="bpf"' in metrics, "its stacks are taken by BPF", metrics[:600])


def missing_rows(text):
    """Those of --check that say NO though this kernel is new enough."""
    rows = []
    for line in text.splitlines():
        since = re.search(r"\((\d+)\.(\d+)\)", line)
        if line.startswith("  NO ") and not (since and KERNEL < tuple(int(part) for part in since.groups())):
            rows.append(line)
        if re.search("missing|denied|  no  ", line):
            rows.append(line)
    return rows


def test_check():
    done = subprocess.run(["farflame-agent", "--check"], capture_output=True, text=True)
    equal((done.returncode, missing_rows(done.stdout)), (0, []), "--check finds all that this kernel has")
    for line in done.stdout.splitlines():
        if line.startswith("  NO "):
            note(line)
    # With the unit's rights: a copy of it that runs --check instead.
    text = open(UNITS % AGENT, encoding="utf-8").read()
    text = re.sub("ExecStart=.*", "Type=oneshot\nStandardOutput=file:/run/rights.txt\nExecStart=/usr/sbin/farflame-agent --check", text)
    text = re.sub("(?m)^(Restart.*|RuntimeDirectory.*|StateDirectory.*|ExecReload.*)\n", "", text)
    with open("/run/systemd/system/rights.service", "w", encoding="utf-8") as file:
        file.write(text)
    systemctl("daemon-reload")
    equal(systemctl("start", "rights").returncode, 0, "it runs with the unit's rights")
    equal(missing_rows(open("/run/rights.txt").read()), [], "and finds all with those")


def test_status():
    done = subprocess.run(["farflame-agent", "--status"], capture_output=True, text=True)
    equal(done.returncode, 0, "--status says that all is well")
    note(done.stdout.replace("\n", "\n# ").strip("# \n") + done.stderr)
    check("bpf" in done.stdout.lower() and "7878" in done.stdout, "and how, and to whom it reports", done.stdout)


# --- life ---

def samples(until):
    return sum(count for _, count in Running().folded(from_="now-1h", until=until))


def test_restart_keeps():
    systemctl("stop", AGENT)  # nothing more comes of the time that is asked for
    until = str(int(time.time() * 1000))
    before = samples(until)
    check(before > 100, "there are samples", before)
    equal(systemctl("restart", SERVER).returncode, 0, "the server restarts")
    equal(samples(until), before, "with all that it had")
    os.kill(pid(SERVER), 9)
    check(wait_for(lambda: show(SERVER, "NRestarts")["NRestarts"] == "1" and ready(), 120), "killed, it is started again",
          systemctl("status", "--no-pager", SERVER).stdout)
    equal(samples(until), before, "with all that it had")
    systemctl("start", AGENT)


def test_reload():
    check(wait_until_active(AGENT), "the agent runs")
    wait_for(lambda: "server takes reports" in log(AGENT).rpartition("Started ")[2], 180)
    before = pid(AGENT)
    with open("/etc/farflame/agent.conf", "a", encoding="utf-8") as file:
        file.write("label = reloaded=yes\n")
    equal(systemctl("reload", AGENT).returncode, 0, "it is reloaded")
    labels = lambda: "reloaded" in Running().get("/api/v1/labels")[2].decode()
    check(wait_for(labels, 90, 1), "and reports with the new options", log(AGENT)[-1500:])
    equal((pid(AGENT), show(AGENT, "ActiveState")["ActiveState"]), (before, "active"), "as the same process")


def test_nothing_denied():
    for unit in (SERVER, AGENT):
        lines = [line for line in log(unit).splitlines() if re.search(DENIED, line)]
        equal(lines, [], "%s: nothing was denied to it" % unit)
    kernel = subprocess.run(["journalctl", "-b", "-k", "-o", "cat", "--no-pager"], capture_output=True, text=True).stdout
    lines = [line for line in kernel.splitlines() if re.search("segfault|type=1326|WARNING:|BUG:|oom-kill|Oops", line)]
    equal(lines, [], "no complaint of the kernel's")


def test_stop():
    for unit in (AGENT, SERVER):
        begin = time.monotonic()
        systemctl("stop", unit)
        took = time.monotonic() - begin
        end = show(unit, "ActiveState", "Result", "ExecMainStatus", "ExecMainCode")
        equal(end, {"ActiveState": "inactive", "Result": "success", "ExecMainStatus": "0", "ExecMainCode": "1"},
              "%s ends by itself and well, within its TimeoutStopSec" % unit)
        note("%s: stopped after %.1f s" % (unit, took))


run(test_started, test_rights, test_flame_graph, test_check, test_status, test_restart_keeps, test_reload, test_nothing_denied,
    test_stop)
