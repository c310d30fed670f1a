// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import test from "node:test";
import { bundle } from "./bundle.mjs";
import { answerOf, chance, randomTree, tree } from "./trees.mjs";

const { collapseRecursion } = await bundle("report/recursion.ts");
const { Graph } = await bundle("graph/graph.ts");

// path → [self, total]
function shapeOf(answer) {
  const graph = new Graph(answer);
  return Object.fromEntries(
    Array.from({ length: graph.count }, (_, node) => [graph.pathOf(node).join(";"), [graph.selfOf(node), graph.total[node]]]),
  );
}

function collapsed(root, recursion) {
  return shapeOf(collapseRecursion(answerOf(root), recursion));
}

const CYCLE = tree("all", 0, [tree("f", 1, [tree("f", 2, [tree("g", 3)]), tree("h", 4, [tree("f", 5, [tree("g", 6)])])])], "root");

test("nothing asked, nothing changed", () => {
  const answer = answerOf(CYCLE);
  assert.equal(collapseRecursion(answer, ""), answer);
});

test("direct: only a function right below itself", () => {
  assert.deepEqual(collapsed(CYCLE, "direct"), {
    "": [0, 21], f: [3, 21], "f;h": [4, 15], "f;g": [3, 3], "f;h;f": [5, 11], "f;h;f;g": [6, 6],
  });
});

test("all: also through others, and its callees are joined", () => {
  assert.deepEqual(collapsed(CYCLE, "all"), { "": [0, 21], f: [8, 21], "f;g": [9, 9], "f;h": [4, 4] });
});

test("groups, cut and incomplete frames of one name are no recursion", () => {
  for (const kind of ["group", "cut", "incomplete", "unresolved"]) {
    const root = tree("all", 0, [tree("x", 1, [tree("x", 2, [], kind)], kind)], "root");
    assert.deepEqual(collapsed(root, "all"), { "": [0, 3], x: [1, 3], "x;x": [2, 2] }, kind);
  }
});

test("deep recursion is one frame", () => {
  let root = tree("f", 1);
  for (let i = 0; i < 500; i++) {
    root = tree("f", 1, [root]);
  }
  assert.deepEqual(collapsed(tree("all", 0, [root], "root"), "direct"), { "": [0, 501], f: [501, 501] });
});

// Another way to the same: over stacks as lists of names.
function byStacks(root, all) {
  const out = new Map();
  const walk = (node, path) => {
    const at = all ? path.lastIndexOf(node.name) : path.at(-1) === node.name ? path.length - 1 : -1;
    const here = at < 0 ? [...path, node.name] : path.slice(0, at + 1);
    out.set(here.join(";"), (out.get(here.join(";")) ?? 0) + node.self);
    node.callees.forEach((callee) => walk(callee, here));
  };
  root.callees.forEach((callee) => walk(callee, []));
  return out;
}

const withoutCut = (node) => ({ ...node, kind: "native", callees: node.callees.map(withoutCut) });

test("as by stacks, whatever the tree", () => {
  for (let seed = 1; seed < 100; seed++) {
    const root = { ...withoutCut(randomTree(chance(seed))), kind: "root", self: 0 };
    for (const recursion of ["direct", "all"]) {
      const got = new Map(Object.entries(collapsed(root, recursion)).map(([path, [self]]) => [path, self]));
      got.delete("");
      assert.deepEqual(got, byStacks(root, recursion === "all"), `seed ${seed}, ${recursion}`);
    }
  }
});
