# SPDX-License-Identifier: Apache-2.0
"""group_by=program: what interpreters run, told of real ones by their process ids, which the test has from starting them. What
--command-lines keeps on the host is not told so either; where nobody told a program it is the executable's name."""
import gzip
import os
import shutil
import signal
import sys
import time

from harness import BUILD, PROGRAMS, Agent, Server, build_programs, check, equal, need_bpf, note, open_folder, run, start, wait_for

sys.path.insert(0, "tests/tools")
from otlp_writer import Request  # noqa: E402

need_bpf()
build_programs("burn")
FOLDER = open_folder()
OWN = {os.path.basename(sys.argv[0]), "env"}  # what a process is before it runs what it was started for
SHELL = "while :; do :; done\n"
PYTHON = "while True:\n    pass\n"
NODE = "for (;;);\n"
JAVA = "package com.acme; public class Main { public static void main(String[] a) { for (;;); } }\n"


def write(name, text, mode=0o644):
    path = os.path.join(FOLDER, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, mode)
    return path


def commands():
    """What the program is to be called → what is started."""
    write("shop/work.py", PYTHON)
    write("shop/__init__.py", "")
    found = {
        "app.py": ["/usr/bin/python3", "-u", "-X", "dev", "-W", "ignore", write("app.py", PYTHON), "--port", "80"],
        "shop.work": ["/usr/bin/python3", "-m", "shop.work"],
        "python3 -c": ["/usr/bin/python3", "-c", PYTHON],
        "gunicorn": [write("gunicorn", "#!/usr/bin/python3 -B\n" + PYTHON, 0o755), "app:app"],
        "script.sh": ["/bin/bash", "-e", write("script.sh", SHELL), "x"],
        "sh -c": ["/bin/sh", "-c", SHELL],
        "x.pl": ["/usr/bin/perl", "-w", "-I", FOLDER, write("x.pl", "1 while 1;\n")],
        "burn": [os.path.join(PROGRAMS, "burn"), "30", "600"],
    }
    if shutil.which("node"):
        found["server.js"] = ["node", "--max-old-space-size=256", "-r", "fs", write("server.js", NODE)]
    else:
        note("no node here")
    if shutil.which("javac") and not os.system("cd %s && javac -d classes %s && jar cfe app.jar com.acme.Main -C classes ." % (
            FOLDER, write("com/acme/Main.java", JAVA))):
        # behind more of a class path than is told of a command line
        path = ":".join(["classes"] + ["/lib/of-a-long-name-%d.jar" % number for number in range(400)])
        found["com.acme.Main"] = ["java", "-Xmx64m", "-XX:+UseSerialGC", "-Da=b", "-cp", path, "com.acme.Main", "-jar", "no.jar"]
        found["app.jar"] = ["java", "-Xmx64m", "-XX:+UseSerialGC", "-jar", os.path.join(FOLDER, "app.jar")]
    else:
        note("no Java compiler here")
    return found


def told(server, label, match):
    found = {}
    for frames, value in server.folded(group_by=label, match=match):
        found[frames[0]] = found.get(frames[0], 0) + value
    return found


def stop(processes):
    for process in processes:
        os.killpg(process.pid, signal.SIGKILL)  # each is of a session of its own
        process.wait()


def real():
    server = Server(data="programs")
    agent = Agent("--frequency", "99", "--report-interval", "1s", "--host", "here", server=server)
    wanted = commands()
    processes = {name: start(arguments, "program.log", cwd=FOLDER) for name, arguments in wanted.items()}
    npm = None
    if shutil.which("npm"):
        write("package.json", '{"name": "x", "version": "1.0.0", "scripts": {"start": "sleep 600"}}')
        npm = start(["npm", "run", "start"], "npm.log", cwd=FOLDER,
                    env=dict(os.environ, npm_config_cache=os.path.join(FOLDER, "npm"), npm_config_update_notifier="false"))
        processes["npm run start"] = npm
    try:
        def missing():
            return [name for name, process in processes.items() if name not in told(server, "program", '{pid="%d"}' % process.pid)]
        wait_for(lambda: not missing(), 40)
        shown = {name: told(server, "program", '{pid="%d"}' % process.pid) for name, process in processes.items()}
        for name, programs in shown.items():
            check(name in programs and set(programs) - OWN == {name}, "%s is called so" % name, programs)
        everywhere(server, processes)
    finally:
        stop(processes.values())
        agent.stop()
        server.stop()


def everywhere(server, processes):
    """Selected by, listed, and in each format."""
    ask = {"type": "on-cpu", "from_": "now-15m", "until": "now"}
    match = '{program="app.py"}'
    equal(list(told(server, "pid", match)), [str(processes["app.py"].pid)], "a program selects its process")
    listed = {row["value"] for row in server.json("/api/v1/labels/program", **ask)["values"]}
    check(set(processes) <= listed, "/labels/program has them all", sorted(listed))
    check("program" in {row["name"] for row in server.json("/api/v1/labels", from_="now-15m", until="now")["labels"]}, "/labels has the label")
    check(server.json("/api/v1/top", match=match, **ask)["functions"], "/top of a program has functions")
    lines = server.json("/api/v1/timeline", match='{process="python3"}', group_by="program", **ask)["series"]
    check({"app.py", "shop.work", "python3 -c"} <= {line["labels"]["program"] for line in lines}, "/timeline tells them apart", lines)
    for form in ("folded", "pprof", "csv", "speedscope", "md"):
        equal(server.get("/api/v1/flamegraph", format=form, group_by="program", match=match, **ask)[0], 200, "format=%s" % form)
    body = server.get("/api/v1/flamegraph", format="pprof", group_by="program", **ask)[2]
    body = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
    equal([text in body for text in (b"\x07program", b"\x06app.py", b"\x0fno such program")], [True, True, False], "pprof has it as a label")
    nothing = server.flamegraph(match='{program="nonesuch"}')["accounting"].get("nothing", "")
    check("the program 'nonesuch'; there are: " in nothing, "an unknown one is told so", nothing)


def private():
    """What does not leave the host by the command line does not by the program's name."""
    for what in ("name", "off"):
        server = Server(data="programs-" + what)
        process = start(["/usr/bin/python3", write("app.py", PYTHON)], cwd=FOLDER)
        agent = Agent("--report-interval", "1s", "--frequency", "99", "--command-lines", what, server=server)
        want = os.path.basename(os.path.realpath("/usr/bin/python3"))
        wait_for(lambda: told(server, "program", '{pid="%d"}' % process.pid), 40)
        equal(list(told(server, "program", '{pid="%d"}' % process.pid)), [want], "--command-lines %s: the executable's name" % what)
        stop([process])
        agent.stop()
        server.stop()


def older():
    """Of agents and senders that tell no program."""
    server = Server(data="programs-older")
    request, base = Request(BUILD), (int(time.time()) - 60) * 10**9
    for pid, more in ((7, {}), (8, {"farflame.program": "app.py"})):
        resource = request.resource(**{"host.name": "h", "process.executable.name": "python3", "process.pid": pid,
                                       "process.executable.path": "/usr/bin/python3.11"}, **more)
        profile = request.profile(resource, scope="elsewhere", time_ns=base)
        request.sample(profile, [("cpython", "work", "a.py", 3)], [pid * 10**9 // 100])
    equal(server.post(request.bytes())[0], 200, "a report is taken")
    equal(sorted(told(server, "program", "")), ["app.py", "python3.11"], "what is not told is the executable's name")
    equal(list(told(server, "pid", '{program="python3.11"}')), ["7"], "which selects, too")
    equal({row["value"] for row in server.json("/api/v1/labels/program", from_="now-15m", until="now")["values"]}, {"app.py", "python3.11"},
          "and is listed")
    server.stop()


run(real, private, older)
