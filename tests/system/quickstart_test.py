# SPDX-License-Identifier: Apache-2.0
"""deploy/quickstart.sh as a stranger uses it: once, again while running, stop, stop again, a taken port, and
without the right to load eBPF or to sample at all. Works in build/, where it always works."""
import json
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request

from harness import check, equal, free_port, need_bpf, note, run, skip, skip_all

STATE = "build/quickstart"


def quickstart(*arguments, port, before=(), timeout=280, **more):
    environment = dict(os.environ, FARFLAME_PORT=str(port), **more)
    environment.pop("DEBUGINFOD_URLS", None)
    begin = time.monotonic()
    done = subprocess.run([*before, "sh", "deploy/quickstart.sh", *arguments], env=environment, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout)
    return done.returncode, done.stdout, time.monotonic() - begin


def pids():
    found = {}
    for name in ("server", "agent"):
        try:
            found[name] = int(open("%s/%s.pid" % (STATE, name)).read().split()[0])
        except OSError:
            pass
    return found


def is_alive(pid):
    try:
        return open("/proc/%d/stat" % pid).read().split(") ")[1][0] != "Z"
    except OSError:
        return False


def check_result(text, what):
    check(re.search(r"^CPU time by process:\n +\d+\.\d %", text, re.M), what + ": CPU share per process", text)
    rows = re.findall(r"^ +\d+\.\d %  (\S.*?)  +", text.split("Hottest functions")[-1], re.M)
    check(5 <= len(rows) <= 20, what + ": hottest functions, 20 at most", text)
    check(re.search(r"^Accounting: (\d+) samples taken = (\d+) shown \+ (\d+) lost", text, re.M),
          what + ": the accounting line", text[-600:])
    taken, shown, lost = map(int, re.search(r"Accounting: (\d+) samples taken = (\d+) shown \+ (\d+)", text).groups())
    equal(taken, shown + lost, what + ": which closes")
    check("sh deploy/quickstart.sh stop" in text, what + ": how to stop", text[-300:])
    return re.search(r"flame graph: (\S+)", text).group(1)


def check_names(url, what):
    """On a busy host the demonstration's functions are not among the hottest of all."""
    query = urllib.parse.urlencode({"type": "on-cpu", "from": "now-15m", "until": "now", "match": '{process="farflame-demo"}'})
    answer = json.load(urllib.request.urlopen(url.split("#")[0] + "api/v1/top?" + query, timeout=30))
    names = [row["name"] for row in answer["functions"]]
    check("sort_orders" in names, what + ": the demonstration's functions by name", names[:20])


def whole_life():
    port = free_port()
    status, text, seconds = quickstart(port=port, FARFLAME_DEMO="yes")
    if not check(status == 0, "quickstart returns 0", text):
        return
    check("demonstration program" in text and re.search(r"^ .* farflame-demo$", text, re.M),
          "on an idle host a program of ours runs, named as such", text)
    first = seconds
    url = check_result(text, "first run")
    check_names(url, "first run")
    running = pids()
    check(len(running) == 2 and all(is_alive(p) for p in running.values()), "both still run", running)
    check("DEBUGINFOD_URLS=https://debuginfod." in text, "nothing is asked of the network unasked: how to do it is said", text)
    command = open("/proc/%d/cmdline" % running["server"]).read()
    check("--debuginfod" not in command, "nor is it", command)
    check("&type=off-cpu" in text and "&type=mem-alloc" in text, "where waits and memory are seen", text[-600:])
    answer = json.load(urllib.request.urlopen(url.split("#")[0] + "api/v1/types?from=now-15m", timeout=10))
    taken = {kind["name"]: kind["samples"] for kind in answer["types"]}
    check(taken.get("off-cpu", 0) > 0 and taken.get("page-fault", 0) > 0, "waits and page faults are there at once", taken)
    note("types: %s" % taken)
    page = urllib.request.urlopen(url.split("#")[0], timeout=10).read()
    check(b"<html" in page.lower(), "the page is served at the address it prints", page[:200])
    status, text, seconds = quickstart(port=port)
    equal(status, 0, "run while running: 0")
    check("running already" in text, "run while running: says so", text)
    check_result(text, "run while running")
    note("took %.0f s, again %.0f s" % (first, seconds))
    check(seconds < first / 2, "run while running: takes seconds", (first, seconds))
    equal(pids(), running, "run while running: the same processes")
    status, text, seconds = quickstart("stop", port=port)
    equal(status, 0, "stop: 0")
    check(not any(is_alive(p) for p in running.values()), "stop: both have ended", text)
    status, text, _ = quickstart("stop", port=port)
    check(status == 0 and "not running" in text, "stop again: says that nothing runs", text)


def a_pid_of_somebody_else():
    """A stale pid file must never end another process."""
    other = subprocess.Popen(["sleep", "60"])
    with open(STATE + "/agent.pid", "w") as file:
        file.write("%d 12345\n" % other.pid)
    quickstart("stop", port=free_port())
    check(other.poll() is None, "stop leaves a process alone that only has the pid")
    other.kill()
    other.wait()


def taken_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        status, text, _ = quickstart(port=taken.getsockname()[1])
    check(status != 0, "a taken port: not 0", text)
    last = text.strip().splitlines()[-1]
    check("taken" in last, "a taken port: one sentence", text)
    equal(pids(), {}, "a taken port: nothing is left running")


def not_root():
    if not shutil.which("setpriv"):
        return skip("no setpriv")
    status, text, _ = quickstart(port=free_port(), before=["setpriv", "--reuid=65534", "--clear-groups"])
    check(status != 0 and len(text.strip().splitlines()) == 1, "not root: one sentence and not 0", text)


def restricted(rights, port):
    return quickstart(port=port, FARFLAME_DEMO="yes",
                      before=["setpriv", "--bounding-set=" + rights, "--inh-caps=" + rights])


def perf_instead_of_ebpf():
    if not shutil.which("setpriv"):
        return skip("no setpriv")
    status, text, _ = restricted("-sys_admin,-bpf", free_port())
    if check(status == 0, "perf events instead of eBPF: returns 0", text):
        check("eBPF is not permitted here" in text and "perf events" in text,
              "perf events instead of eBPF: says so, and why", text)
        check("type=off-cpu" not in text, "perf events instead of eBPF: no page of waits is promised", text[-600:])
        check("RECORDED" not in text, "perf events instead of eBPF: it is this host's profile", text)
        check_names(check_result(text, "perf events instead of eBPF"), "perf events instead of eBPF")
    quickstart("stop", port=free_port())


def without_ebpf():
    if not shutil.which("setpriv"):
        return skip("no setpriv")
    status, text, _ = restricted("-sys_admin,-bpf,-perfmon", free_port())
    if check(status == 0, "without eBPF and perf events: returns 0", text):
        check("RECORDED" in text, "without eBPF and perf events: says that the profile is a recorded one, and why", text)
        check_result(text, "without eBPF and perf events")
        names = text.split("Hottest functions")[-1]
        check("sort_orders" in names, "without eBPF and perf events: with names", names)
        check("a frame without name in 0" in text, "without eBPF and perf events: of all frames", text)
    quickstart("stop", port=free_port())


need_bpf()
if pids() and any(is_alive(p) for p in pids().values()):
    skip_all("a quickstart is running in this folder; stop it first")
run(whole_life, a_pid_of_somebody_else, taken_port, not_root, perf_instead_of_ebpf, without_ebpf)
