# SPDX-License-Identifier: Apache-2.0
"""recursion=direct|all, beside stacks that are collapsed here: in folded stacks, in the table, leaves first, below a path; and
cuts of what is left, at their places, which a question for the path makes finer."""
import collections
import json
import random
import sys
import time

from harness import BUILD, Server, check, equal, run

sys.path.insert(0, "tests/tools")
from otlp_writer import Request  # noqa: E402

DRAW = random.Random(7)
VALUE = 10101010


def stacks():
    """{frames from the root: samples}, of few functions, so that they come again in many ways."""
    made = collections.Counter()
    for _ in range(400):
        made[tuple(DRAW.choice("abcdefgh") for _ in range(DRAW.randrange(1, 14)))] += DRAW.randrange(1, 9)
    made[("a",) * 500 + ("b",)] += 100
    made[tuple("ab" * 200)] += 50
    return made


def collapsed(frames, mode):
    kept = []
    for frame in frames:
        if mode == "direct" and kept[-1:] == [frame]:
            continue
        if mode == "all" and frame in kept:
            del kept[kept.index(frame) + 1:]
            continue
        kept.append(frame)
    return tuple(kept)


def sums(rows):
    out = collections.Counter()
    for frames, samples in rows:
        out[tuple(frames)] += samples
    return dict(out)


def tree(server, **asked):
    """{path below the root: (self, total, kind)}"""
    graph = server.flamegraph(group_by="", **asked)
    nodes, found, paths = graph["nodes"], {}, []
    for i, parent in enumerate(nodes["parent"]):
        paths.append(paths[parent] + (graph["names"][nodes["name"][i]],) if i else ())
        found[paths[i]] = (nodes["self"][i], nodes["total"][i], graph["kinds"][nodes["kind"][i]])
    return found


def totals(made, mode):
    out = collections.Counter()
    for frames, samples in made.items():
        path = collapsed(frames, mode)
        for depth in range(len(path) + 1):
            out[path[:depth]] += samples
    return out


def shapes(server, made):
    for mode in ("direct", "all"):
        want = collections.Counter()
        for frames, samples in made.items():
            want[collapsed(frames, mode)] += samples
        equal(sums(server.folded(group_by="", recursion=mode)), dict(want), "%s: each stack is collapsed" % mode)
        turned = collections.Counter()
        for frames, samples in made.items():
            turned[collapsed(frames[::-1], mode)] += samples
        equal(sums(server.folded(group_by="", recursion=mode, invert=1)), dict(turned), "leaves first: after they are turned")
        top = server.json("/api/v1/top", value="samples", recursion=mode)["functions"]
        own, total = collections.Counter(), collections.Counter()
        for path, samples in want.items():
            own[path[-1]] += samples
            total.update({name: samples for name in set(path)})
        equal({f["name"]: (f["self"], f["total"]) for f in top}, {name: (own[name], total[name]) for name in total}, "the table is of these frames")
    equal(sums(server.folded(group_by="", recursion="none")), {f: n for f, n in made.items()}, "none: as it is")
    equal(tree(server, recursion="all")[("a", "b")][1], totals(made, "all")[("a", "b")], "the tree, too")


def cuts(server, made):
    for mode in ("direct", "all"):
        whole = totals(made, mode)
        share = 0.02
        found = tree(server, recursion=mode, min_share=share)
        least = share * sum(made.values())
        kept = {path: total for path, (_, total, kind) in found.items() if kind != "cut"}
        equal(kept, {path: n for path, n in whole.items() if n >= least}, "%s: of what is left, what is wide enough is there, whole" % mode)
        cut = {path[:-1]: total for path, (_, total, kind) in found.items() if kind == "cut"}
        missing = collections.Counter()
        for path, n in whole.items():
            if path and n < least and path[:-1] in kept:
                missing[path[:-1]] += n
        equal(cut, dict(missing), "and what is not, is cut where it was called")
        path = max((p for p in cut if p), key=lambda p: cut[p])
        finer = tree(server, recursion=mode, root=";".join(path))
        equal({p: t for p, (_, t, _) in finer.items() if p[:len(path)] == path}, {p: n for p, n in whole.items() if p[:len(path)] == path},
              "a question for %s has all that was cut there" % ";".join(path))
        top = server.json("/api/v1/top", value="samples", recursion=mode, root=";".join(path))
        equal(top["accounting"]["value"], whole[path], "as has the table")


def recursion():
    server = Server(data="recursion")
    made = stacks()
    request = Request(BUILD)
    profile = request.profile(request.resource(**{"host.name": "h1", "farflame.process": "p"}), time_ns=time.time_ns() - 120 * 10**9)
    for frames, samples in made.items():
        request.sample(profile, [("cpython", f, "a.py", 3) for f in frames[::-1]], [samples, samples * VALUE])
    equal(server.post(request.bytes())[0], 200, "the stacks are taken")
    for text in ("in memory", "after a restart"):
        shapes(server, made)
        cuts(server, made)
        if text == "in memory":
            server.stop()
            server.start()
    for asked, words in (({"recursion": "some"}, "recursion"), ({"recursion": "all", "format": "pprof"}, "pprof")):
        status, _, body = server.get("/api/v1/flamegraph", **asked)
        check(status == 422 and words in json.loads(body)["error"]["message"], "%s: 422, and why" % asked, (status, body))
    server.stop()


if __name__ == "__main__":
    run(recursion)
