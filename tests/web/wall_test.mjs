// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import test from "node:test";
import { bundle } from "./bundle.mjs";

const { graftJoined, joinTrees, partsOf, widthsOf } = await bundle("views/wall/wall_join.ts");
const { joinTraces, lastMinute, nameOf, wallRows } = await bundle("views/wall/wall_rows.ts");
const { wallColour } = await bundle("views/wall/wall_colours.ts");
const { Graph } = await bundle("graph/graph.ts");

const CUT_KINDS = ["root", "native", "kernel", "group", "cut"];
const graphOf = (joined, part = -1) => new Graph(widthsOf(joined, part));
const partsAt = (graph, ...path) => partsOf(graph, graph.find(path)).map(({ total, most }) => [total, most]);

// An answer of stacks: [frames from the root's child down, value]; a frame is "name", or "name@module/kind".
function answer(type, stacks, kinds = ["root", "native", "kernel", "group"]) {
  const names = [];
  const modules = [];
  const nodes = { name: [], file: [], line: [], module: [], parent: [], self: [], total: [], kind: [] };
  const rows = new Map();
  const index = (table, entry, same) => {
    const at = table.findIndex(same);
    return at >= 0 ? at : table.push(entry) - 1;
  };
  const row = (path, parent) => {
    const key = path.join("\n");
    if (!rows.has(key)) {
      const [, name, module, kind] = /^([^@]*)@?([^/]*)\/?(.*)$/.exec(path.at(-1) ?? "all");
      nodes.name.push(index(names, name, (n) => n === name));
      nodes.file.push(-1);
      nodes.line.push(0);
      nodes.module.push(module === "" ? -1 : index(modules, { name: module, build_id: "ab" }, (m) => m.name === module));
      nodes.parent.push(parent);
      nodes.self.push(0);
      nodes.total.push(0);
      rows.set(key, nodes.kind.push(kinds.indexOf(path.length === 0 ? "root" : kind || "native")) - 1);
    }
    return rows.get(key);
  };
  row([], -1);
  for (const [frames, value] of stacks) {
    let at = 0;
    nodes.total[0] += value;
    frames.forEach((_, i) => {
      at = row(frames.slice(0, i + 1), at);
      nodes.total[at] += value;
    });
    nodes.self[at] += value;
  }
  return { type, unit: "nanoseconds", from: 0, until: 60_000, names, files: [], modules, kinds, nodes, accounting: { value: 0 } };
}

// {"a;b": [self of the sum, total, its parts…]}
function seen({ answer: of, parts }) {
  const graph = new Graph(of);
  const out = {};
  for (let node = 0; node < graph.count; node++) {
    const row = graph.rowOf(node);
    out[graph.pathOf(node).join(";")] = [graph.selfOf(node), graph.total[node], ...parts.map(({ total }) => total[row])];
  }
  return out;
}

test("frames of two trees are one where their paths are equal", () => {
  const on = answer("on-cpu", [[["api", "main", "work"], 30], [["api", "main"], 5]]);
  const off = answer("off-cpu", [[["api", "main", "read", "schedule@vmlinux/kernel"], 70], [["db", "main"], 7]]);
  assert.deepEqual(seen(joinTrees([on, off])), {
    "": [0, 112, 35, 77],
    api: [0, 105, 35, 70],
    "api;main": [5, 105, 35, 70],
    "api;main;work": [30, 30, 30, 0],
    "api;main;read": [0, 70, 0, 70],
    "api;main;read;schedule": [70, 70, 0, 70],
    db: [0, 7, 0, 7],
    "db;main": [7, 7, 0, 7],
  });
});

test("widths of one side are that side's own tree", () => {
  const on = answer("on-cpu", [[["api", "main", "work"], 30], [["api", "main"], 5]]);
  const off = answer("off-cpu", [[["api", "main", "read"], 70], [["api", "main"], 3]]);
  const joined = joinTrees([on, off]);
  assert.equal(widthsOf(joined, -1).nodes, joined.answer.nodes);
  const sides = { "": [0, 35, 35, 73], api: [0, 35, 35, 73], "api;main": [5, 35, 35, 73], "api;main;work": [30, 30, 30, 0] };
  assert.deepEqual(seen({ ...joined, answer: widthsOf(joined, 0) }), { ...sides, "api;main;read": [0, 0, 0, 70] });
  assert.deepEqual(seen({ ...joined, answer: widthsOf(joined, 1) })["api;main"], [3, 73, 35, 73]);
});

test("one name of two modules or kinds is two frames", () => {
  const on = answer("on-cpu", [[["f@a.so"], 1]]);
  const off = answer("off-cpu", [[["f@b.so"], 2], [["f@a.so/kernel"], 4]]);
  const { answer: joined, parts } = joinTrees([on, off]);
  assert.deepEqual(joined.nodes.total, [7, 4, 2, 1]);
  assert.deepEqual([...parts[0].total], [1, 0, 0, 1]);
});

test("callees come widest first, whatever order the answers have", () => {
  const on = answer("on-cpu", [[["a"], 3], [["b"], 2], [["c"], 1]]);
  const off = answer("off-cpu", [[["c"], 10], [["b"], 3]]);
  const { answer: joined } = joinTrees([on, off]);
  assert.deepEqual(joined.nodes.name.map((name) => joined.names[name]), ["all", "c", "b", "a"]);
});

test("kinds are told by their names, not by their place in the answer", () => {
  const on = answer("on-cpu", [[["k@/kernel"], 1]], ["root", "native", "kernel", "group"]);
  const off = answer("off-cpu", [[["k@/kernel"], 2]], ["kernel", "group", "native", "root"]);
  const { answer: joined } = joinTrees([on, off]);
  assert.deepEqual(joined.nodes.total, [3, 3]);
  assert.equal(new Graph(joined).kindOf(1), "kernel");
});

test("an empty tree adds nothing, and one tree alone is itself", () => {
  const on = answer("on-cpu", [[["a", "b"], 3]]);
  const want = { "": [0, 3, 3, 0], a: [0, 3, 3, 0], "a;b": [3, 3, 3, 0] };
  assert.deepEqual(seen(joinTrees([on, answer("off-cpu", [])])), want);
  assert.deepEqual(joinTrees([on]).answer.nodes.total, [3, 3, 3]);
});

test("sums of random trees are kept at every path", () => {
  let seed = 11;
  const draw = (below) => (seed = (seed * 1_664_525 + 1_013_904_223) % 2 ** 32) % below;
  const stacks = () =>
    Array.from({ length: 300 }, () => [Array.from({ length: 1 + draw(7) }, () => "f" + draw(4)), 1 + draw(99)]);
  const sides = [stacks(), stacks()];
  const want = {};
  sides.forEach((side, i) =>
    side.forEach(([frames, value]) => {
      for (let depth = 0; depth <= frames.length; depth++) {
        const sums = (want[frames.slice(0, depth).join(";")] ??= [0, 0, 0, 0]);
        sums[0] += depth === frames.length ? value : 0;
        sums[1] += value;
        sums[2 + i] += value;
      }
    }),
  );
  assert.deepEqual(seen(joinTrees([answer("on-cpu", sides[0]), answer("off-cpu", sides[1])])), want);
});

test("a damaged answer is a sentence, not a picture", () => {
  const on = answer("on-cpu", [[["a", "b"], 3]]);
  on.nodes.parent[2] = 4711;
  assert.throws(() => joinTrees([on]), /damaged/);
});

const timeline = (type, series) => ({
  type, unit: "nanoseconds", from: 0, until: 1, step_ms: 1, accounting: {},
  series: series.map(([labels, value]) => ({ labels, value, samples: value / 10, points: [] })),
});

test("groups have a row each, ordered by the type asked for, then by the others", () => {
  const on = timeline("on-cpu", [[{ process: "a", thread: "x" }, 50], [{ process: "b", thread: "x" }, 20]]);
  const off = timeline("off-cpu", [[{ thread: "x", process: "b" }, 900], [{ process: "c", thread: "" }, 20]]);
  const names = (sortBy) => wallRows([on, off], sortBy).map(({ labels }) => nameOf(labels, "process,thread"));
  assert.deepEqual(names("on-cpu"), ["a · x", "b · x", "c"]);
  assert.deepEqual(names("off-cpu"), ["b · x", "c", "a · x"]);
  assert.deepEqual(wallRows([on, off], "on-cpu")[1].values.get("off-cpu"), { value: 900, samples: 90 });
  assert.equal(wallRows([on, off], "on-cpu")[0].values.has("off-cpu"), false);
});

test("a group without the labels says so", () => {
  assert.equal(nameOf({}, ""), "all");
  assert.equal(nameOf({ container: "" }, "container"), "(no container)");
});

test("requests of both types add up, and what one does not have is not zero", () => {
  const trace = (trace_id, value, from, services) => ({
    trace_id, value, samples: 1, spans: 1, from, until: from + 60_000, services, hosts: [], processes: [], threads: [],
  });
  const on = { traces: [trace("aa", 5, 60_000, ["web"]), trace("bb", 4, 0, ["web"])] };
  const off = { traces: [trace("cc", 7, 0, ["db"]), trace("aa", 6, 0, ["db"])] };
  const found = joinTraces([on, off]);
  assert.deepEqual(found.map(({ trace: { trace_id }, values }) => [trace_id, ...values]), [["aa", 5, 6], ["cc", null, 7], ["bb", 4, null]]);
  assert.deepEqual([found[0].trace.from, found[0].trace.until, found[0].trace.services], [0, 120_000, ["web", "db"]]);
});

test("the last minute is of the range, and not of what is yet to come", () => {
  assert.deepEqual(lastMinute(0, 600_000, 1e12), { from: 540_000, until: 600_000 });
  assert.deepEqual(lastMinute(0, 600_000, 590_000), { from: 530_000, until: 590_000 });
  assert.deepEqual(lastMinute(580_000, 600_000, 1e12), { from: 580_000, until: 600_000 });
});

test("time on the CPU and time waited have other hues, and steps between them", () => {
  const hue = (part, dark) => Number(/hsl\((\d+)/.exec(wallColour(part, dark))[1]);
  for (const dark of [false, true]) {
    assert.equal(hue(0, dark) !== hue(1, dark), true);
    assert.equal(hue(0.2, dark), hue(0, dark));
    assert.equal(hue(0.8, dark), hue(1, dark));
    assert.notEqual(wallColour(0.4, dark), wallColour(0, dark));
  }
});

// api;main calls wide, of which only one tree has a frame, and narrow ones that both cut.
const CUT = joinTrees([
  answer("on-cpu", [[["api", "main", "wide"], 90], [["api", "main", "[cut]@/cut"], 10]], CUT_KINDS),
  answer("off-cpu", [[["api", "main", "[cut]@/cut"], 40], [["db", "read"], 60]], CUT_KINDS),
]);
const FINER = joinTrees([
  answer("on-cpu", [[["api", "main", "wide", "inner"], 90], [["api", "main", "small"], 10]], CUT_KINDS),
  answer("off-cpu", [[["api", "main", "wide", "inner"], 15], [["api", "main", "small"], 25]], CUT_KINDS),
]);

test("of a frame that a tree cut, it may have as much as was cut there", () => {
  const graph = graphOf(CUT);
  assert.deepEqual(partsAt(graph, "api", "main", "wide"), [[90, 90], [0, 40]]);
  assert.deepEqual(partsAt(graph, "api", "main", "[cut]"), [[10, 10], [40, 40]]);
  assert.deepEqual(partsAt(graph, "db", "read"), [[0, 0], [60, 60]], "nothing was cut beside it");
  const deep = joinTrees([
    answer("on-cpu", [[["a", "b", "c"], 9]], CUT_KINDS),
    answer("off-cpu", [[["a", "[cut]@/cut"], 4]], CUT_KINDS),
  ]);
  assert.deepEqual(partsAt(graphOf(deep), "a", "b", "c"), [[9, 9], [0, 4]], "also where its caller was cut");
});

test("a finer subtree of both trees takes the place of what was cut", () => {
  for (const part of [-1, 0, 1]) {
    const base = graphOf(CUT, part);
    const graph = graftJoined(base, base.find(["api", "main"]), FINER, part);
    assert.deepEqual(partsAt(graph, "api", "main", "wide"), [[90, 90], [15, 15]], `widths ${part}`);
    assert.deepEqual(partsAt(graph, "api", "main", "wide", "inner"), [[90, 90], [15, 15]]);
    assert.deepEqual(partsAt(graph, "api", "main", "small"), [[10, 10], [25, 25]]);
    assert.deepEqual(partsAt(graph, "api", "main"), [[100, 100], [40, 40]]);
    const node = graph.find(["api", "main", "small"]);
    assert.equal(graph.total[node], [35, 10, 25][part + 1]);
    assert.equal(graph.holdsCut(graph.find(["api", "main"])), false);
    assert.equal(graph.find(["api", "main", "[cut]"]), -1);
  }
  const base = graphOf(CUT);
  assert.equal(graftJoined(base, base.find(["db", "read"]), FINER, -1), null, "a frame that is gone");
});

test("the way down to a finer subtree has what the subtree has, even where it was cut before", () => {
  const base = graphOf(CUT);
  const deeper = joinTrees([
    answer("on-cpu", [[["api", "main", "wide", "inner"], 90]], CUT_KINDS),
    answer("off-cpu", [[["api", "main", "wide", "inner"], 15]], CUT_KINDS),
  ]);
  const graph = graftJoined(base, base.find(["api", "main", "wide"]), deeper, -1);
  assert.deepEqual(partsAt(graph, "api", "main", "wide"), [[90, 90], [15, 15]]);
  assert.deepEqual(partsAt(graph, "api", "main"), [[100, 100], [40, 40]], "its callers keep theirs");
});
