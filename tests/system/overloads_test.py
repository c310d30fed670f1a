# SPDX-License-Identifier: Apache-2.0
"""Functions of one name: three C++ overloads and two instances of a Rust generic, by both of its manglings. Each has its
own time, as the program itself says, and the signature that c++filt makes of its symbol, in every answer; collapse=name
makes them one."""
import collections
import csv
import io
import json
import os
import re
import shutil
import subprocess

from harness import PROGRAMS, WORK, Agent, Server, build_programs, check, equal, need_bpf, note, run, skip

SECONDS = "8"
CXX = {"work(int)": 0, "work(long)": 1, "work(char const*)": 2}


def build_id(path):
    text = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    return text.split("Build ID: ")[1].split()[0]


def symbols(path):
    """{signature, as c++filt has it: address} of the program's functions named work."""
    rows = [row.split() for row in subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines()]
    rows = [row for row in rows if len(row) == 3 and row[1] in "tT" and re.search("_[ZR].*4work", row[2])]
    plain = subprocess.run(["c++filt"], input="\n".join(row[2] for row in rows), capture_output=True, text=True, check=True)
    return {text: int(row[0], 16) for text, row in zip(plain.stdout.splitlines(), rows)}


def profile(program):
    """(server, its functions named work, what the program printed)"""
    build_programs(program)
    server = Server(data=program, log=program + ".log")
    agent = Agent("--frequency", "499", "--report-interval", "1s", server=server)
    printed = subprocess.run([PROGRAMS + "/" + program, SECONDS], capture_output=True, text=True, check=True, timeout=300).stdout
    of = {"match": '{process="%s"}' % program[:15]}
    server.wait_for_names(lambda rows: any(re.search(r"work", frame) for frames, _ in rows for frame in frames), **of)
    check(agent.stop()[0] == 0, "the agent ends with status 0", agent.text()[-500:])
    return server, of, list(map(float, printed.split()))


def works(server, of, **more):
    top = server.json("/api/v1/top", **{**of, **more})
    return [f for f in top["functions"] if re.search(r"\bwork\b", f["name"])], top["accounting"]["value"]


def shares(program, functions, printed, order):
    """Each function's share of them all is the program's own, within 5 of 100."""
    whole, used = sum(f["total"] for f in functions), sum(printed)
    got = {f.get("signature", f["name"]): f["total"] / whole for f in functions}
    want = {signature: printed[i] / used for signature, i in order.items()}
    note("%s: %s, the program says %s" % (program, got, want))
    check(got.keys() == want.keys() and all(abs(got[s] - want[s]) < 0.05 for s in want),
          "%s: a row for each, with the time that the program says" % program, "%s, not %s" % (got, want))


def graph(server, of, names, **more):
    """{signature: value} of the nodes of those names."""
    answer = server.json("/api/v1/flamegraph", **{**of, **more})
    sums = collections.Counter()
    for number, total in zip(answer["nodes"]["name"], answer["nodes"]["total"]):
        if answer["names"][number] in names:
            sums[answer["signatures"].get(str(number), answer["names"][number])] += total
    return dict(sums)


def everywhere(program, server, of, functions):
    names, own = {f["name"] for f in functions}, {f.get("signature", f["name"]): f["total"] for f in functions}
    equal(graph(server, of, names), own, "%s: the flame graph has the same" % program)
    rows = csv.DictReader(io.StringIO(server.get("/api/v1/top", format="csv", **of)[2].decode()))
    equal({row["signature"] or row["name"]: int(row["total"]) for row in rows if row["name"] in names}, own,
          "%s: so has CSV" % program)
    for signature in own:
        one = server.json("/api/v1/sandwich", function=signature, **of)
        equal(([f.get("signature", f["name"]) for f in one["functions"]], one["functions"][0]["total"]),
              ([signature], own[signature]), "%s: the sandwich of %s is its own" % (program, signature))
    joined, _ = works(server, of, collapse="name")
    by_name = collections.Counter()
    for f in functions:
        by_name[f["name"]] += f["total"]
    equal({f["name"]: f["total"] for f in joined}, dict(by_name), "%s: collapse=name: one of each name, with their sum" % program)
    check(not any("signature" in f for f in joined), "%s: which has no signature" % program, joined)


def symbolicate(program, server):
    path = PROGRAMS + "/" + program
    want = symbols(path)
    body = json.dumps({"memoryMap": [[program, build_id(path)]], "stacks": [[[0, a - load_base(path)] for a in want.values()]]})
    answer = json.loads(server.request("POST", "/symbolicate/v5", body)[2])
    equal([frame["function"] for frame in answer["results"][0]["stacks"][0]], list(want), "%s: /symbolicate/v5 has them" % program)
    return set(want)


def load_base(path):
    text = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=True).stdout
    return min(int(m, 16) for m in re.findall(r"^ *LOAD +0x\w+ +0x(\w+)", text, re.M))


def pprof(program, server, of, signatures, names):
    go = next((go for go in ("/usr/local/go/bin/go", shutil.which("go")) if go and os.access(go, os.X_OK)), None)
    if go is None:
        return skip("needs go tool pprof")
    path = WORK + "/" + program + ".pb.gz"
    with open(path, "wb") as file:
        file.write(server.get("/api/v1/flamegraph", format="pprof", **of)[2])

    def ask(*arguments):
        env = dict(os.environ, PPROF_TMPDIR=WORK, GOTOOLCHAIN="local")
        return subprocess.run([go, "tool", "pprof", *arguments, path], capture_output=True, text=True, check=True, env=env).stdout

    raw = ask("-raw")
    found = re.findall(r"(\S*\bwork\S*) \S*:\d+(?::\d+)? s=0\((.*)\)$", raw, re.M)
    equal(({name for name, _ in found}, {system for _, system in found}), (names, signatures),
          "%s: go tool pprof: name and system name" % program)
    whole = ask("-symbolize=demangle=full", "-top", "-nodecount=1000")
    check(all(signature in whole for signature in signatures), "%s: which it shows apart by them" % program, whole[:600])


def cxx():
    server, of, printed = profile("overloads_cc")
    functions, _ = works(server, of)
    equal({f["name"] for f in functions}, {"work"}, "overloads_cc: their name is short")
    shares("overloads_cc", functions, printed, CXX)
    everywhere("overloads_cc", server, of, functions)
    signatures = symbolicate("overloads_cc", server)
    equal(signatures, set(CXX), "and they are those of c++filt")
    pprof("overloads_cc", server, of, signatures, {"work"})
    root = server.json("/api/v1/flamegraph", root="overloads_cc;%s" % ";".join(way(server, of)), **of)
    equal(root["nodes"]["total"][0], next(f["total"] for f in functions if f["signature"] == "work(long)"),
          "a signature in root= is that function's subtree")
    server.stop()


def way(server, of):
    """Names from below the process to work(long), where most of it is: some stacks are cut off."""
    answer = server.json("/api/v1/flamegraph", **of)
    nodes, names = answer["nodes"], answer["names"]
    at = max((i for i, number in enumerate(nodes["name"]) if answer["signatures"].get(str(number)) == "work(long)"),
             key=lambda i: nodes["total"][i])
    path = []
    while nodes["parent"][at] > 0:
        path.insert(0, answer["signatures"].get(str(nodes["name"][at]), names[nodes["name"][at]]))
        at = nodes["parent"][at]
    return path


def rust():
    if not shutil.which("rustc"):
        return skip("needs rustc")
    for program in ("overloads_rs", "overloads_rs_v0"):
        server, of, printed = profile(program)
        functions, _ = works(server, of)
        known = symbols(PROGRAMS + "/" + program)
        equal(len(known), 2, "%s: two instances" % program)
        slow = max(functions, key=lambda f: f["total"])
        shares(program, functions, printed, {signature: int(signature == slow.get("signature")) for signature in known})
        everywhere(program, server, of, functions)
        signatures = symbolicate(program, server)
        pprof(program, server, of, signatures, {f["name"] for f in functions})
        server.stop()


need_bpf()
run(cxx, rust)
