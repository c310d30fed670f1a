# SPDX-License-Identifier: Apache-2.0
"""Programs whose stacks are known: at least 99 % of their samples show exactly the chain of calls, by name
and line, in every way a program can lie on disk and in memory."""
import os
import re
import shutil
import subprocess

from harness import (PROGRAMS, WORK, Agent, Server, build_programs, check, need_bpf, note, program_copy,
                     run, skip, start, wait_for)

CHAIN = ["chain_run", "level_1", "level_2", "level_3", "level_4", "leaf"]
SECONDS = 12


def marked_lines():
    """What stands in the sources: function → line of its only call; and the lines each function spans."""
    calls, spans = {}, {}
    for source in ("chain.c", "chain_main.c", "chain_dlopen.c"):
        function, begin = None, 0
        for number, line in enumerate(open("tests/programs/" + source), 1):
            if re.match(r"[a-zA-Z_].*\b(\w+)\(.*\)$", line) and not line.endswith(";\n"):
                function, begin = re.findall(r"\b(\w+)\(", line)[-1], number
            mark = re.search(r"/\* call: (.+) \*/", line)
            if mark:
                calls[mark.group(1)] = number
            if line.startswith("}") and function:
                spans.setdefault((source, function), (begin, number))
    return calls, spans


def start_all():
    """Every variant at once: name of the process → its outermost function."""
    start([PROGRAMS + "/chain_pie", str(SECONDS)])
    start([PROGRAMS + "/chain_nopie", str(SECONDS)])
    start([PROGRAMS + "/chain_static", str(SECONDS)])
    start([PROGRAMS + "/chain_thread", str(SECONDS)])
    start([PROGRAMS + "/chain_dlopen", str(SECONDS), PROGRAMS + "/libchain.so"])
    deleted = program_copy("chain_deleted", "chain_deleted")
    process = start([deleted, str(SECONDS)])
    wait_for(lambda: os.readlink("/proc/%d/exe" % process.pid) == deleted)
    os.unlink(deleted)
    variants = {"chain_pie": "main", "chain_nopie": "main", "chain_static": "main", "chain_thread": "thread_main",
                "chain_dlopen": "main", "chain_deleted": "main"}
    # A file that only its own mount namespace has, in a pid namespace where it is process 1 or so.
    possible = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--mount-proc", "true"], capture_output=True,
                              text=True)
    if possible.returncode:
        skip("no mount and pid namespaces here: " + possible.stderr.strip())
        return variants
    hidden = os.path.join(WORK, "hidden")
    os.makedirs(hidden)
    shutil.copy2(PROGRAMS + "/chain_ns", WORK + "/chain_ns")
    start(["unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c",
           "mount -t tmpfs none %s && cp %s/chain_ns %s/ && %s/chain_ns %d" % (
               hidden, WORK, hidden, hidden, SECONDS)], "unshare.log")
    variants["chain_ns"] = "main"
    return variants


def is_chain(frames, last):
    """Exactly the chain from its outermost function on; a tick between two calls sees a shorter one."""
    if last not in frames:
        return False
    inner = [f for f in frames[frames.index(last):] if not f.endswith("_[k]")]
    return inner == ([last] + CHAIN)[:len(inner)]


def lines(graph, process, last, all_samples, calls, spans):
    """(what has another line than its function's, for each caller whether its line is that of its call)"""
    nodes = graph["nodes"]
    outside, exact = [], []
    for i, name in enumerate(graph["names"][n] if n >= 0 else "" for n in nodes["name"]):
        if name not in [last] + CHAIN or nodes["total"][i] < 0.9 * all_samples:
            continue
        line = nodes["line"][i]
        source = "chain.c" if name in CHAIN else "chain_dlopen.c" if process == "chain_dlopen" else "chain_main.c"
        low, high = spans[source, name]
        file = graph["files"][nodes["file"][i]] if nodes["file"][i] >= 0 else ""
        if not low <= line <= high or os.path.basename(file) != source:
            outside.append("%s: %s:%d, expected %s:%d-%d" % (name, file, line, source, low, high))
        if name != "leaf":
            wanted = calls["main of chain_dlopen" if source == "chain_dlopen.c" else name]
            exact.append(line == wanted)
    return outside, exact


def check_variant(server, process, last, calls, spans, exact_lines):
    match = '{process="%s"}' % process
    rows = server.wait_for_names(lambda rows: rows and all("+0x" not in ";".join(f) or last in f
                                                           for f, _ in rows), match=match)
    rows = [(frames, value) for frames, value in rows
            if any(not f.endswith("_[k]") for f in frames[1:])]
    all_samples = sum(value for _, value in rows)
    right = sum(value for frames, value in rows if is_chain(frames, last))
    wrong = sorted(((v, ";".join(f)) for f, v in rows if not is_chain(f, last)), reverse=True)[:5]
    check(all_samples >= 100, "%s: enough samples" % process, "only %d" % all_samples)
    check(all_samples and right >= 0.99 * all_samples,
          "%s: at least 99 %% of the stacks are exactly the chain" % process,
          "%d of %d are; the others:\n%s" % (right, all_samples, "\n".join("%d %s" % w for w in wrong)))
    # Names come first, lines when the whole of the debug information has been read.
    wait_for(lambda: not lines(server.flamegraph(match=match), process, last, all_samples, calls, spans)[0], 60, 0.5)
    outside, exact = lines(server.flamegraph(match=match), process, last, all_samples, calls, spans)
    exact_lines += exact
    check(not outside, "%s: every function with a line of its own source" % process, "\n".join(outside))


def chains():
    build_programs()
    calls, spans = marked_lines()
    server = Server()
    variants = start_all()
    agent = Agent("--frequency", "499", "--report-interval", "2s", server=server)
    wait_for(lambda: False, SECONDS - 3)
    check(agent.stop()[0] == 0, "the agent ends with status 0", agent.text()[-500:])
    exact_lines = []
    for process, last in sorted(variants.items()):
        check_variant(server, process, last, calls, spans, exact_lines)
    # The line that most of a node's samples have: not that of the few that were just entering or leaving.
    note("%d of %d callers show the line of their call" % (sum(exact_lines), len(exact_lines)))
    check(len(exact_lines) >= 5 * len(variants) and all(exact_lines),
          "callers show the line of their call", "%d of %d" % (sum(exact_lines), len(exact_lines)))


need_bpf()
run(chains)
