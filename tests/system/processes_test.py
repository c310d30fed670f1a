# SPDX-License-Identifier: Apache-2.0
"""Which process: its id, command line, executable, unit, cgroup, user and start, asked for as labels, are what /proc
has; two workers of one name are told apart, a restarted one is another one under the same command line, and one that
got the number of another is not taken for it. No series is of one process."""
import collections
import datetime
import glob
import os
import pwd
import re
import shutil
import sys
import time
import urllib.parse

from harness import BUILD, PROGRAMS, WORK, Agent, Server, build_programs, check, end, equal, files_with, need_bpf, note, open_folder, \
    run, start, wait_for

sys.path.insert(0, "tests/tools")
from otlp_writer import Request  # noqa: E402

need_bpf()
build_programs("burn")
NAME = "burning-worker-of-a-long-name"
LABELS = ("pid", "command", "exe", "user", "cgroup", "started", "ppid")


FOLDER = open_folder()


def worker(*arguments, **more):
    program = os.path.join(FOLDER, NAME)
    if not os.path.exists(program):
        shutil.copy2(os.path.join(PROGRAMS, "burn"), program)
    return start([program, "30", "600", *arguments], "worker.log", **more)


def busy():
    """In the parent's copy, before it runs the program: samples that are read when /proc has the program already."""
    end_of_it = time.process_time() + 0.05
    while time.process_time() < end_of_it:
        pass


def of(pid):
    """Not what its parent's copy did before it ran the program."""
    return '{pid="%d",process="%s"}' % (pid, NAME)


def told(server, label, match="", **more):
    """value → samples"""
    found = collections.Counter()
    for frames, value in server.folded(group_by=label, match=match, **more):
        found[frames[0]] += value
    return dict(found)


def of_proc(pid):
    """What /proc says, read by other means than the agent's."""
    with open("/proc/%d/cmdline" % pid, "rb") as file:
        command = b" ".join(file.read().rstrip(b"\0").split(b"\0")).decode()
    with open("/proc/%d/stat" % pid) as file:
        fields = file.read().rpartition(")")[2].split()
    ticks = int(fields[19])
    with open("/proc/stat") as file:
        boot = next(int(line.split()[1]) for line in file if line.startswith("btime"))
    uid = os.stat("/proc/%d" % pid).st_uid
    lines = open("/proc/%d/cgroup" % pid).read().splitlines()
    return {"pid": str(pid), "command": command, "exe": os.readlink("/proc/%d/exe" % pid), "user": pwd.getpwuid(uid).pw_name, "ppid": fields[1],
            "cgroup": {line.split(":", 2)[2] for line in lines}, "started": boot + ticks / os.sysconf("SC_CLK_TCK")}


def compare(server, pid, text):
    want, wrong = of_proc(pid), []
    for label in LABELS:
        got = list(told(server, label, of(pid)))
        if len(got) != 1:
            wrong.append((label, got))
        elif label == "cgroup":
            wrong += [] if got[0] in want[label] else [(label, got, want[label])]
        elif label == "started":
            at = datetime.datetime.fromisoformat(got[0].replace("Z", "+00:00")).timestamp()
            wrong += [] if abs(at - want[label]) < 2 else [(label, got, want[label])]
        elif got[0] != want[label]:
            wrong.append((label, got, want[label]))
    equal(wrong, [], text + ": every label is what /proc has")


def wait_until_told(server, *processes):
    def all_there():
        pids = told(server, "pid", '{exe=~".*/%s"}' % NAME)
        return all(str(process.pid) in pids for process in processes)
    check(wait_for(all_there, 60), "samples of each process are there")


def services(server, process):
    """Nobody has called it so: the name of its unit, if it runs in one, not a copy of the list of processes."""
    with open("/proc/%d/cgroup" % process.pid) as file:
        text = file.read()
    units = re.findall(r"([^/\n]+)\.service", text)
    if re.search("[0-9a-f]{64}", text):
        units = []  # a container's
    want = units[-1] if units else "[no service]"
    equal(list(told(server, "service", of(process.pid))), [want], "a process that nobody called a service is of its unit, or of none")
    match = '{service="%s",%s' % (units[-1] if units else "", of(process.pid)[1:])
    equal(list(told(server, "pid", match)), [str(process.pid)], "and is selected so")
    equal(list(told(server, "pid", '{service="%s",%s' % (NAME, of(process.pid)[1:]))), [], "not by its process' name")


def two_workers(server):
    first = worker("--shard", "1", preexec_fn=busy)
    second = worker("--shard", "2", "--password=hunter2", "--api-key", "hunter3", preexec_fn=busy)
    nobody = worker("--shard", "3", user=65534)
    wait_until_told(server, first, second, nobody)
    compare(server, first.pid, "the first worker")
    compare(server, nobody.pid, "one of another user")
    equal(list(told(server, "process", '{command=~".* --shard .*"}')), [NAME], "the process' name is whole, and no copy of its parent is told as it")
    by_command = told(server, "command", '{process="%s"}' % NAME)
    equal(sorted(command.partition("--shard ")[2] for command in by_command),
          ["1", "2 --password=*** --api-key ***", "3"], "two workers are told apart, and secrets are not told")
    equal(list(told(server, "pid", '{command=~".*--shard 1",user="root"}')), [str(first.pid)],
          "a command line selects its process")
    equal([pid for pid in told(server, "pid", '{process="%s"}' % NAME) if pid.startswith("[")], [],
          "no sample is of an unknown process")
    ask = {"from_": "now-15m", "until": "now"}
    names = {row["name"] for row in server.json("/api/v1/labels", **ask)["labels"]}
    check(set(LABELS) <= names and "farflame.lifetime" not in names, "they are among the labels", sorted(names))
    values = server.json("/api/v1/labels/pid", type="on-cpu", match='{process="%s"}' % NAME, **ask)["values"]
    equal({row["value"] for row in values}, {str(process.pid) for process in (first, second, nobody)},
          "/labels/pid has the three")
    everywhere(server, first)
    listings(server, first, (first, second, nobody))
    services(server, first)
    no_such(server, (first, second, nobody))
    for process in (first, second, nobody):
        end(process)


def everywhere(server, process):
    """Whatever takes match and group_by takes these."""
    ask = {"type": "on-cpu", "from_": "now-15m", "until": "now", "match": of(process.pid)}
    top = server.json("/api/v1/top", **ask)
    check(top["functions"], "/top knows pid", list(top))
    lines = server.json("/api/v1/timeline", group_by="command", **ask)["series"]
    check(len(lines) == 1 and lines[0]["labels"]["command"].endswith("--shard 1"), "/timeline knows command", lines)
    status, _, body = server.get("/api/v1/diff", **dict(ask, **{"base.match": '{command=~".*--shard 3"}'}))
    equal(status, 200, "/diff compares two workers: " + body[:100].decode())
    for form in ("folded", "pprof", "csv"):
        equal(server.get("/api/v1/flamegraph", **dict(ask, format=form))[0], 200, "format=%s of a pid" % form)


def listings(server, process, all_):
    """What there is to choose is of what is chosen already: the types, labels and values of one process alone."""
    ask = {"from_": "now-15m", "until": "now"}
    one = dict(ask, match=of(process.pid))
    sums, other = ({row["name"]: row["samples"] for row in server.json("/api/v1/types", **asked)["types"]} for asked in (one, ask))
    drawn = sum(value for _, value in server.folded(match=of(process.pid)))
    check(0 < sums["on-cpu"] <= drawn < other["on-cpu"], "/types of a pid has its samples alone", (sums, drawn, other))
    for label, want in (("pid", [str(process.pid)]), ("command", [of_proc(process.pid)["command"]]), ("process", [NAME]),
                        ("host", ["here"])):
        rows = server.json("/api/v1/labels/" + label, type="on-cpu", **one)["values"]
        equal([row["value"] for row in rows], want, "/labels/%s of a pid has its value alone" % label)
        check(rows and rows[0]["samples"] >= sums["on-cpu"], "with the samples of the pid alone", (label, rows, sums))
    counts = {row["name"]: row["values"] for row in server.json("/api/v1/labels", **one)["labels"]}
    equal([counts.get(label) for label in ("pid", "command", "process", "host")], [1, 1, 1, 1], "/labels of a pid counts its values")
    rows = server.json("/api/v1/labels/pid", type="on-cpu", match='{command=~".*--shard 2.*"}', **ask)["values"]
    equal([row["value"] for row in rows], [str(all_[1].pid)], "a command line narrows the pids that there are")
    rows = server.json("/api/v1/labels/pid", match='{pid="0"}', **ask)["values"]
    equal(rows, [], "of no sample there is no label")


def no_such(server, all_):
    """Whose number or command nobody has is told so, with those that there are."""
    nothing = server.flamegraph(match='{pid="4194305",process="%s"}' % NAME)["accounting"].get("nothing", "")
    check(nothing.startswith("no sample of this time has the pid '4194305'; there are: "), "an unknown pid is said to be none", nothing)
    pids = {int(row["value"]) for row in server.json("/api/v1/labels/pid", from_="now-15m", until="now")["values"]}
    shown = re.findall(r"\d+", nothing.partition("there are: ")[2].partition(" and ")[0])
    check(0 < len(shown) <= 12 and set(map(int, shown)) <= pids, "and some of those that there are follow", (nothing, pids))
    nothing = server.flamegraph(match='{command="nonesuch --at-all"}')["accounting"].get("nothing", "")
    check("the command 'nonesuch --at-all'; there are: " in nothing, "so is an unknown command", nothing)
    nothing = server.flamegraph(match='{pid="%d",command="nonesuch"}' % all_[0].pid)["accounting"].get("nothing", "")
    check("the command 'nonesuch'" in nothing, "of several the one that nobody has", nothing)


def in_a_cgroup(server):
    """A folder of version 2 where it may be made."""
    for root in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup"):
        if os.path.exists(root + "/cgroup.procs") and os.path.exists(root + "/cgroup.controllers"):
            break
    else:
        note("no cgroup of version 2 here")
        return
    place = "%s/ff%d.slice" % (root, os.getpid())
    inner = place + "/shop@7.service/part"
    process = None
    try:
        os.makedirs(inner)

        def enter():
            with open(inner + "/cgroup.procs", "w") as file:
                file.write(str(os.getpid()))
        process = worker("--in-a-unit", preexec_fn=enter)
        wait_until_told(server, process)
        compare(server, process.pid, "a worker of a unit")
        match = of(process.pid)
        equal(list(told(server, "cgroup", match)), [inner[len(root):]], "its cgroup is its own")
        equal(list(told(server, "unit", match)), ["shop@7.service"], "its unit is systemd's")
        equal(list(told(server, "service", '{unit="shop@7.service"}')), ["shop@7"], "and so is its service")
    except OSError as error:
        note("no cgroup of ours here: %s" % error)
    finally:
        if process:
            end(process)
        for folder in (inner, os.path.dirname(inner), place):
            wait_for(lambda: not os.path.exists(folder) or remove(folder), 5)


def remove(folder):
    try:
        os.rmdir(folder)
    except OSError:
        return False
    return True


def with_number(pid, *arguments):
    """A worker that gets that number; None: another process was faster each time."""
    for _ in range(50):
        try:
            with open("/proc/sys/kernel/ns_last_pid", "w") as file:
                file.write(str(pid - 1))
        except OSError as error:
            note("no number can be chosen: %s" % error)
            return None
        process = worker(*arguments)
        if process.pid == pid:
            return process
        end(process)
    return None


def restarted_and_reused(server):
    first = worker("--life", "1")
    wait_until_told(server, first)
    end(first)
    again = worker("--life", "1")
    wait_until_told(server, again)
    pids = told(server, "pid", '{command=~".*--life 1"}')
    equal(set(pids), {str(first.pid), str(again.pid)}, "a restarted process is another one under the same command line")
    equal(len(told(server, "started", '{command=~".*--life 1"}')), 2, "with another start")
    end(again)
    named = worker("--named", env=dict(os.environ, OTEL_SERVICE_NAME="checkout"))
    wait_until_told(server, named)
    equal(list(told(server, "service", of(named.pid))), ["checkout"], "OTEL_SERVICE_NAME is the service")
    end(named)
    third = with_number(first.pid, "--life", "3")
    if not third:
        note("no number was used again")
        return
    check(wait_for(lambda: len(told(server, "command", of(first.pid))) == 2, 60),
          "of one number there are two command lines", told(server, "command", of(first.pid)))
    equal(sorted(command[-1] for command in told(server, "command", of(first.pid))), ["1", "3"],
          "and they are those of the two processes")
    equal(told(server, "pid", '{command=~".*--life 1"}').get(str(first.pid)), pids[str(first.pid)],
          "what the first used is not taken for the second's")
    end(third)


def processes():
    server = Server(data="processes")
    agent = Agent("--frequency", "99", "--report-interval", "1s", "--host", "here", server=server)
    two_workers(server)
    in_a_cgroup(server)
    restarted_and_reused(server)
    agent.stop()
    before = told(server, "command", '{process="%s"}' % NAME)
    server.stop()
    server = Server(data="processes")
    equal(told(server, "command", '{process="%s"}' % NAME), before, "a restart of the server forgets none of it")
    server.stop()


def untold():
    """A server that has lost what the agent told of processes: it is told again within the hour, and until then answers
    say of how many samples it lacks."""
    server = Server(data="told")
    agent = Agent("--frequency", "99", "--report-interval", "1s", "--host", "here", server=server)
    process = worker("--life", "1")
    wait_until_told(server, process)
    server.stop()
    server = Server(port=server.port, data="untold")
    check(wait_for(lambda: told(server, "pid", '{pid="%d"}' % process.pid), 60), "its samples come to a server that knows nothing of it")
    late = worker("--life", "2")
    wait_until_told(server, late)
    time.sleep(3)
    agent.stop()
    all_, nothing = 0, 0
    for frames, value in server.folded(group_by="command,exe,unit,cgroup,user,started"):
        all_ += value
        nothing += value if all(frame.startswith("[no ") for frame in frames[:6]) else 0
    alone = sum(value for _, value in server.folded(match='{pid="%d"}' % process.pid))
    told_late = sum(value for _, value in server.folded(match=of(late.pid)))
    check(0 < alone <= nothing < all_ - told_late + 1, "of the first nothing is known, of the second all", (alone, nothing, told_late, all_))
    told_of = lambda **asked: tuple(server.flamegraph(**asked)["accounting"].get("processes_" + key) for key in ("untold", "of"))
    equal(told_of(group_by="command"), (nothing, all_), "answers say of how many samples it is not known")
    equal(told_of(match='{command=~".*--life 2"}'), (nothing, all_), "also to who selects by it and does not see them")
    equal(told_of(match='{user!="nobody",host="here"}', group_by="pid"), (nothing, all_), "and by another label")
    equal(told_of(match=of(process.pid)), (None, None), "its number is known all the same")
    text = server.get("/api/v1/flamegraph", type="on-cpu", from_="now-15m", until="now", format="md", group_by="command")[2].decode()
    check("(%d of %d samples)" % (nothing, all_) in text, "and so does Markdown", text[-1500:])
    for one in (process, late):
        end(one)
    server.stop()


def command_lines():
    """--command-lines name, off."""
    for what, want in (("name", os.path.join(FOLDER, NAME)), ("off", "[no command]")):
        server = Server(data="lines-" + what)
        process = worker("--private")
        agent = Agent("--report-interval", "1s", "--command-lines", what, server=server)
        wait_until_told(server, process)
        equal(list(told(server, "command", '{pid="%d",exe=~".*/%s"}' % (process.pid, NAME))), [want], "--command-lines " + what)
        end(process)
        agent.stop()
        server.stop()


def foreign():
    """Senders whose resources are processes, by the conventions' attributes; threads and attributes of samples are
    kept beside it. The same pid on two hosts, and twice on one."""
    server = Server(data="foreign")
    rows = [("h1", 7, "web --shard 1", "www", 3), ("h1", 8, "web --shard 2", "www", 5), ("h2", 7, "db", "pg", 7),
            ("h1", 7, "web --shard 9", "root", 11)]
    series = metric(server, "farflame_server_series")
    for again in range(2):
        request, base = Request(BUILD), (int(time.time()) - 60) * 10**9 + again
        for host, pid, command, user, count in rows:
            resource = request.resource(**{"host.name": host, "process.executable.name": "web", "process.pid": pid,
                                           "process.command_line": command, "process.owner": user,
                                           "process.executable.path": "/bin/" + command.split()[0],
                                           "process.creation.time": "2026-01-02T03:04:0%dZ" % (count % 10)})
            profile = request.profile(resource, scope="elsewhere", time_ns=base)
            for thread in ("main", "pool"):
                request.sample(profile, [("cpython", thread, "a.py", 3)], [count * 10**9 // 100], thread=thread)
                profile.samples[-1].attribute_indices.append(request.attribute("app.key", "v"))
        equal(server.post(request.bytes())[0], 200, "a foreign report is taken")
    for label, at in (("pid", 1), ("command", 2), ("user", 3)):
        want = collections.Counter()
        for row in rows:
            want[str(row[at])] += row[4] * 4
        got = collections.Counter()
        for frames, value in server.folded(group_by=label, value="value"):
            got[frames[0]] += value // (10**9 // 100)
        equal(dict(got), dict(want), "group_by=%s of a foreign sender" % label)
    got = [frames[:3] for frames, _ in server.folded(group_by="exe,app.key,thread", match='{command="db"}')]
    equal(sorted(got), [["/bin/db", "v", "main"], ["/bin/db", "v", "pool"]], "threads and attributes are theirs")
    check(metric(server, "farflame_server_series") - series <= 2, "processes are no series")
    server.stop()


def deleted():
    """The sample that told of a process goes, with all that it said of a thread; what it told of the process stays as
    long as the process has samples, and goes with them."""
    server, folder = Server(data="deleted"), WORK + "/deleted"
    request = Request(BUILD)
    for pid in (7, 8):
        resource = request.resource(**{"host.name": "h1", "process.executable.name": "web", "process.pid": pid,
                                       "process.command_line": "web --told %d" % pid})
        profile = request.profile(resource, scope="elsewhere", time_ns=(int(time.time()) - 120) * 10**9)
        for thread in ("secret-thread", "pool"):
            request.sample(profile, [("cpython", thread, "a.py", 3)], [10**9], thread=thread)
            profile.samples[-1].attribute_indices.append(request.attribute("user.id", thread + "-user"))
    equal(server.post(request.bytes())[0], 200, "a report is taken")
    check(wait_for(lambda: files_with("secret-thread-user", glob.glob(folder + "/*.db*")), 180), "and is in a database")
    for match in ('{thread="secret-thread"}', '{command="web --told 8"}'):
        query = urllib.parse.urlencode({"match": match, "from": "now-1h", "until": "now"})
        equal(server.request("DELETE", "/api/v1/samples?" + query)[0], 200, "deletes " + match)
    check(wait_for(lambda: not files_with("secret", glob.glob(folder + "/*.db*")) and not files_with("--told 8", glob.glob(folder + "/*.db*")), 180),
          "neither the thread nor the other process is in a database", files_with("secret", glob.glob(folder + "/*.db*")))
    equal(list(told(server, "command")), ["web --told 7"], "what is left is of a process that is known")
    server.stop()
    server = Server(data="deleted")
    equal(list(told(server, "command")), ["web --told 7"], "and is after a restart")
    server.stop()


def metric(server, name):
    return next((int(line.split()[1]) for line in server.get("/metrics")[2].decode().splitlines()
                 if line.startswith(name + " ")), 0)


run(processes, untold, command_lines, foreign, deleted)
