// SPDX-License-Identifier: Apache-2.0
// ± of frames: beside the pointer, and in the picture that a zoom joins of two answers.

import assert from "node:assert/strict";
import test from "node:test";
import { bundle } from "./bundle.mjs";
import { answerOf, tree } from "./trees.mjs";

const { Graph } = await bundle("graph/graph.ts");
const { graft } = await bundle("graph/graft.ts");
const { detailRows } = await bundle("graph/details.ts");

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
