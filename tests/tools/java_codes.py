# SPDX-License-Identifier: Apache-2.0
"""Names, files and lines of compiled code as the agent has them, beside what its JDK says of the same stopped process: of
each compiled method its address and name (jcmd Compiler.perfmap, 17 and newer), of described addresses in each all calls
that are inlined there (the Serviceability Agent, by JavaCodes.java).

    /usr/bin/python3 tests/tools/java_codes.py BUILD JAVA…

JAVA: the java of a JDK. Needs make BUILD/tests/tools/hotspot_name. Prints a row each, and what differs; the status says
whether anything does. ADDRESSES: of each method at most (12); PROGRAM: what it runs (tests/programs/java/Shapes.java);
SECONDS: for so long (10).

8's agent of its own differs at some addresses (14 of 5 029): where its bytes were looked at, they say what ours does."""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = ("", ".code", ".debugger", ".oops", ".runtime", ".types")
ADDRESSES, SECONDS = os.environ.get("ADDRESSES", "12"), float(os.environ.get("SECONDS", "10"))
PROGRAM = os.environ.get("PROGRAM", os.path.join(HERE, "../programs/java/Shapes.java"))


def plain(name):
    """Without what differs with each start, as the agent has it."""
    name = re.sub(r"[/+]0x[0-9a-f]+", "", name)
    name = re.sub(r"(\$\$Lambda)(\$\d+)?(/\d+)?", r"\1", name)
    name = re.sub(r"(LambdaForm\$[DB]?MH)[^.]*\.", r"\1.", name)
    return re.sub(r"(Generated(?:Method|Constructor)Accessor|\$Proxy)\d+", r"\1", name)


def ask(build, pid, what):
    return subprocess.run([build + "/tests/tools/hotspot_name", str(pid)], input=what + "\n", capture_output=True, text=True,
                          check=True).stdout


def calls_of(text, from_judge):
    found, calls = {}, None
    for line in text.splitlines():
        if line.startswith("= "):
            calls = found.setdefault(line[2:], [])
            calls.clear()
        elif line:
            name, place = line.split("\t") if from_judge else line.split("\t")[1:]
            calls.append((plain(name) if from_judge else name, place))
    return found


def judge_scopes(java, pid, asked, folder):
    """What JavaCodes has of them; "": this JDK has no Serviceability Agent."""
    home = os.path.dirname(os.path.dirname(os.path.realpath(java)))
    old = next((path for path in (home + "/lib/sa-jdi.jar", home + "/../lib/sa-jdi.jar") if os.path.exists(path)), None)
    options = ["-cp", old + ":" + folder] if old else ["-cp", folder, "--add-modules", "jdk.hotspot.agent"]
    for package in () if old else PACKAGES:
        options += ["--add-exports", "jdk.hotspot.agent/sun.jvm.hotspot%s=ALL-UNNAMED" % package]
    javac = next(path for path in (home + "/bin/javac", home + "/../bin/javac") if os.path.exists(path))
    subprocess.run([javac, *options, "-nowarn", "-d", folder, HERE + "/JavaCodes.java"], check=True, capture_output=True)
    return subprocess.run([java, *options, "JavaCodes", str(pid)], input=asked, capture_output=True, text=True, check=True).stdout


def names_of_perfmap(java, pid):
    """{address: name} of methods; {}: it has no such command."""
    jcmd, path = os.path.join(os.path.dirname(java), "jcmd"), "/tmp/perf-%d.map" % pid
    if not os.path.exists(jcmd):
        return {}
    subprocess.run([jcmd, str(pid), "Compiler.perfmap"], check=False, capture_output=True)
    if not os.path.exists(path):
        return {}
    rows = [line.rstrip("\n").split(" ", 2) for line in open(path)]
    os.unlink(path)
    return {int(row[0], 16): plain(row[2].split("(")[0].split(" ")[-1]) for row in rows if "(" in row[2]}


def compare(build, java, classes, folder):
    program = os.path.basename(PROGRAM).split(".")[0]
    process = subprocess.Popen([java, "-cp", classes, program, "3600"], stdout=subprocess.DEVNULL)
    try:
        time.sleep(SECONDS)
        perfmap = names_of_perfmap(java, process.pid)
        process.send_signal(signal.SIGSTOP)
        rows = [line.split(" ", 4) for line in ask(build, process.pid, "codes").splitlines()]
        methods = {int(row[0], 16): row[4] for row in rows}
        both = [address for address in methods if address in perfmap]
        ours = ask(build, process.pid, "pcs " + ADDRESSES)
        theirs = calls_of(judge_scopes(java, process.pid, ours, folder), True)
        ours = calls_of(ours, False)
    finally:
        process.kill()
        process.wait()
    wrong = [(hex(a), methods[a], perfmap[a]) for a in both if methods[a] != perfmap[a]]
    judged = [address for address, calls in theirs.items() if calls]
    differ = [(address, theirs[address], ours[address]) for address in judged if theirs[address] != ours[address]]
    print("%-40s %5d methods, %5d by perfmap, %d differ; %6d addresses, %6d calls by SA, %d differ" % (
        java, len(methods), len(both), len(wrong), len(judged), sum(len(theirs[a]) for a in judged), len(differ)))
    for row in (wrong + differ)[:3]:
        print("  ", row)
    return bool(wrong or differ or not judged)


def main():
    build, javas = sys.argv[1], sys.argv[2:]
    has_failed = False
    with tempfile.TemporaryDirectory() as classes:
        subprocess.run(["javac", "-g", "--release", "8", "-Xlint:-options", "-d", classes, PROGRAM], check=True)
        for java in javas:
            with tempfile.TemporaryDirectory() as folder:
                has_failed |= compare(build, java, classes, folder)
    return has_failed


sys.exit(main())
