// SPDX-License-Identifier: Apache-2.0
// ± of frames: beside the pointer, and in the picture that a zoom joins of two answers.

import assert from "node:assert/strict";
import test from "node:test";
import { bundle } from "./bundle.mjs";
import { answerOf, tree } from "./trees.mjs";

const { Graph } = await bundle("graph/graph.ts");
const { graft } = await bundle("graph/graft.ts");
const { detailRows } = await bundle("graph/details.ts");
const { joinTrees, widthsOf } = await bundle("views/wall/wall_join.ts");
const { sandwichOf } = await bundle("views/flame/sandwich_trees.ts");
const { kindsBySelf, modulesBySelf } = await bundle("views/flame/frame_sums.ts");
const { chartOf } = await bundle("views/chart_data.ts");
const { sampledSides } = await bundle("views/diff/diff_words.ts");

// Samples of 10 units each.
function sampled(root) {
  const answer = answerOf(root);
  const error = (value) => Math.round(19.6 * Math.sqrt(value / 10 + 1));
  answer.nodes.self_error = answer.nodes.self.map(error);
  answer.nodes.total_error = answer.nodes.total.map(error);
  answer.accounting = {};
  return { ...answer, type: "off-cpu", unit: "things" };
}

const text = (answer, path) => {
  const graph = new Graph(answer);
  return detailRows(graph, graph.find(path)).slice(0, 2).map(([, row]) => row.split(" · ")[1]);
};

test("a frame says how sure its shares are, and nothing where nobody knows", () => {
  const root = tree("all", 0, [tree("a", 500, [tree("b", 1500)]), tree("c", 8000)]);
  // Of 1000 samples 200 and 50: 1.96 √(0.2 · 0.8 / 1000) = 2.5 %, rounded up.
  assert.deepEqual(text(sampled(root), ["a"]), ["20.0 % ± 2.5 of all", "5.00 % ± 1.37 of all"]);
  const plain = answerOf(root);
  assert.deepEqual(text({ ...plain, accounting: {} }, ["a"]), ["20.0 % of all", "5.00 % of all"]);
});

test("a zoom keeps them, of both answers", () => {
  const base = new Graph(sampled(tree("all", 0, [tree("a", 2000), tree("c", 8000)])));
  const detail = sampled(tree("all", 0, [tree("a", 500, [tree("b", 1500)])]));
  const joined = graft(base, base.find(["a"]), detail);
  assert.equal(joined.nodes.total_error.length, joined.nodes.total.length);
  assert.deepEqual(text(joined, ["a", "b"]), ["15.0 % ± 2.3 of all", "15.0 % ± 2.3 of all"]);
  delete detail.nodes.total_error;
  assert.equal(graft(base, base.find(["a"]), detail).nodes.total_error, undefined);
});

test("of each side of the wall clock its own, and of their sum none", () => {
  const on = sampled(tree("all", 0, [tree("a", 2000), tree("b", 500)]));
  const off = sampled(tree("all", 0, [tree("b", 8000)]));
  const joined = joinTrees([on, off]);
  const at = (path) => new Graph(joined.answer).rowOf(new Graph(joined.answer).find(path));
  assert.deepEqual(joined.parts.map(({ total_error }) => total_error[at(["b"])]), [on.nodes.total_error[2], off.nodes.total_error[1]]);
  assert.deepEqual(joined.parts.map(({ total_error }) => total_error[at(["a"])]), [on.nodes.total_error[1], 0]);
  assert.equal(new Graph(widthsOf(joined, 0)).totalErrorOf(0), on.nodes.total_error[0]);
  assert.equal(new Graph(joined.answer).totalErrorOf(0), undefined);
  const { total_error, ...rest } = on.nodes;
  assert.equal(total_error.length, 3);
  assert.equal(joinTrees([{ ...on, nodes: rest }, off]).parts[0].total_error, undefined);
});

test("the sandwich's halves keep them where the root goes", () => {
  const half = sampled(tree("all", 0, [tree("f", 500, [tree("a", 1500)])]));
  const answer = { ...half, function: "f", functions: [], total: 2000, callers: { ...half, cut: 0 }, callees: { ...half, cut: 0 } };
  const { callees } = sandwichOf(answer);
  assert.deepEqual([callees.totalErrorOf(0), callees.selfErrorOf(0)], [half.nodes.total_error[1], half.nodes.self_error[1]]);
});

test("parts of one name are off as their squares add up", () => {
  const own = { kinds: { native: 70, kernel: 30 }, kind_errors: { native: 9, kernel: 6 },
    modules: [{ name: "libc", build_id: "a", value: 5, error: 3 }, { name: "libc", build_id: "b", value: 6, error: 4 }, { name: "x", build_id: "", value: 1 }] };
  assert.deepEqual(kindsBySelf({ own }), [{ name: "native", value: 70, error: 9 }, { name: "kernel", value: 30, error: 6 }]);
  assert.deepEqual(modulesBySelf({ own }), [{ name: "libc", value: 11, error: 5 }, { name: "x", value: 1 }]);
});

test("each series of a chart has those of its steps, as rates", () => {
  const answer = { type: "on-cpu", unit: "nanoseconds", from: 0, until: 120_000, step_ms: 60_000, accounting: {},
    series: [{ labels: {}, value: 90e9, samples: 9, points: [[0, 60e9, 6], [60_000, 30e9, 3]], errors: [6e9, 3e9] }] };
  const rate = { unit: "CPUs", of: (value, ms) => value / ms / 1e6, format: String };
  assert.deepEqual([...chartOf(answer, rate, false, 1, () => "").series[0].errors], [0.1, 0.05]);
  delete answer.series[0].errors;
  assert.equal("errors" in chartOf(answer, rate, false, 1, () => "").series[0], false);
});

test("both sides of a comparison have their own", () => {
  const row = { before: 0.05, after: 0.123, before_error: 0.01, after_error: 0.02, base_samples: 1, samples: 20 };
  assert.equal(sampledSides({ norm: "share", unit: "bytes", type: "mem-alloc" }, row), "5.00 % ± 1.00 %, 1 sample → 12.3 % ± 2.00 %, 20 samples");
  const { before_error, after_error, ...whole } = row;
  assert.equal(before_error < after_error && sampledSides({ norm: "raw", unit: "bytes", type: "x" }, { ...whole, before: 5, after: 7 }), "5 B, 1 sample → 7 B, 20 samples");
});
