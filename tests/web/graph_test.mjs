// SPDX-License-Identifier: Apache-2.0
// Layout against a plain walk over the tree of objects from which the answer was written.

import assert from "node:assert/strict";
import test from "node:test";
import { bundle } from "./bundle.mjs";
import { answerOf, chance, KINDS, randomTree, totalOf, tree } from "./trees.mjs";

const { Graph } = await bundle("graph/graph.ts");

// path → facts, as the tree tells them; siblings of one name are told apart by their place.
function factsOf(root) {
  const rows = [];
  const walk = (node, path, x, depth) => {
    rows.push({ path, x, depth, self: node.self, total: totalOf(node), kind: node.kind });
    let left = x;
    for (const callee of node.callees) {
      walk(callee, [...path, callee.name], left, depth + 1);
      left += totalOf(callee);
    }
  };
  walk(root, [], 0, 0);
  return rows;
}

const holdsCut = (node) => node.callees.some((callee) => callee.kind === "cut" || holdsCut(callee));

test("each node lies where the tree has it, in reading order", () => {
  for (let seed = 1; seed <= 60; seed++) {
    const root = randomTree(chance(seed));
    const graph = new Graph(answerOf(root));
    const got = [...graph.preorder()].map((node) => ({
      path: graph.pathOf(node), x: graph.x[node], depth: graph.depth[node], self: graph.selfOf(node),
      total: graph.total[node], kind: graph.kindOf(node),
    }));
    assert.deepEqual(got, factsOf(root), `seed ${seed}`);
  }
});

test("a level is a run of neighbours from left to right", () => {
  const graph = new Graph(answerOf(randomTree(chance(9))));
  for (let level = 0; level < graph.levels; level++) {
    for (let i = graph.levelStart[level]; i < graph.levelStart[level + 1]; i++) {
      assert.equal(graph.depth[i], level);
      if (i > graph.levelStart[level]) {
        assert.ok(graph.x[i] >= graph.x[i - 1] + graph.total[i - 1]);
      }
      const callees = Array.from({ length: graph.childCount[i] }, (_, k) => graph.firstChild[i] + k);
      assert.ok(callees.every((callee) => graph.parent[callee] === i));
    }
  }
  assert.equal(graph.levelStart[graph.levels], graph.count);
});

test("what lies at a place is found as by looking at all", () => {
  for (const seed of [3, 4, 5]) {
    const graph = new Graph(answerOf(randomTree(chance(seed))));
    for (let level = 0; level < graph.levels; level++) {
      const [first, end] = [graph.levelStart[level], graph.levelStart[level + 1]];
      for (let x = -0.5; x < graph.total[0] + 1; x += 0.5) {
        let want = first;
        for (let i = first; i < end; i++) {
          want = graph.x[i] <= x ? i : want;
        }
        assert.equal(graph.at(level, x), want);
      }
    }
  }
});

test("a path leads to its node, another nowhere", () => {
  const graph = new Graph(answerOf(tree("all", 0, [tree("a;b", 1, [tree("c", 2)]), tree("", 1, [tree("c", 4)])])));
  assert.equal(graph.find([]), 0);
  assert.deepEqual(graph.pathOf(graph.find(["a;b", "c"])), ["a;b", "c"]);
  assert.equal(graph.total[graph.find(["", "c"])], 4);
  assert.equal(graph.find(["c"]), -1);
  assert.equal(graph.find(["a;b", "c", "d"]), -1);
  assert.equal(graph.find(["__proto__"]), -1);
});

test("inside is below or itself", () => {
  const graph = new Graph(answerOf(randomTree(chance(12))));
  for (let a = 0; a < graph.count; a++) {
    for (let b = 0; b < graph.count; b++) {
      assert.equal(graph.isInside(a, b), graph.ancestorsOf(a).includes(b));
    }
  }
});

test("above what was cut, and only there, more can be asked for", () => {
  for (const seed of [21, 22, 23, 24]) {
    const root = randomTree(chance(seed));
    const graph = new Graph(answerOf(root));
    const want = [];
    const walk = (node) => {
      want.push(holdsCut(node));
      node.callees.forEach(walk);
    };
    walk(root);
    assert.deepEqual([...graph.preorder()].map((node) => graph.holdsCut(node)), want);
  }
});

test("kinds are told by the answer's table; one that the page does not know is native code", () => {
  const answer = answerOf(tree("all", 0, [tree("a", 1, [], "kernel"), tree("b", 1, [], "cut")], "root"));
  answer.kinds = [...KINDS].reverse();
  answer.nodes.kind = answer.nodes.kind.map((kind) => KINDS.length - 1 - kind);
  let graph = new Graph(answer);
  assert.deepEqual([0, 1, 2].map((node) => graph.kindOf(node)), ["root", "kernel", "cut"]);
  assert.equal(graph.holdsCut(0), true);
  answer.kinds = ["root", "what comes in some years"];
  answer.nodes.kind = [0, 1, 77];
  graph = new Graph(answer);
  assert.deepEqual([0, 1, 2].map((node) => graph.kindOf(node)), ["root", "native", "native"]);
});

test("columns that contradict each other are refused with a sentence", () => {
  const small = () => answerOf(tree("all", 0, [tree("a", 1, [tree("b", 1)])]));
  const damages = {
    "no nodes": (a) => (a.nodes = undefined),
    "no rows": (a) => Object.keys(a.nodes).forEach((key) => (a.nodes[key] = [])),
    "a short column": (a) => a.nodes.total.pop(),
    "a missing column": (a) => delete a.nodes.kind,
    "a parent below": (a) => (a.nodes.parent[1] = 2),
    "its own parent": (a) => (a.nodes.parent[2] = 2),
    "a second root": (a) => (a.nodes.parent[2] = -1),
    "no number as parent": (a) => (a.nodes.parent[1] = NaN),
    "a name that is not there": (a) => (a.nodes.name[2] = 3),
    "a file that is not there": (a) => (a.nodes.file[2] = 0),
    "a module that is not there": (a) => (a.nodes.module[2] = 7),
    "a negative value": (a) => (a.nodes.total[1] = -1),
    "a negative value of its own": (a) => (a.nodes.self[1] = -1),
    "no number as value": (a) => (a.nodes.self[1] = NaN),
    "text as value": (a) => (a.nodes.self[1] = "x"),
  };
  for (const [what, damage] of Object.entries(damages)) {
    const answer = small();
    damage(answer);
    assert.throws(() => new Graph(answer), /^Error: The server's .*\.$/, what);
  }
});

test("a stack deeper than anything can be is refused, one of 65 535 is drawn", () => {
  const chain = (depth) => {
    const nodes = { name: [], file: [], line: [], module: [], parent: [], self: [], total: [], kind: [] };
    for (let i = 0; i <= depth; i++) {
      for (const [key, value] of Object.entries({ name: 0, file: -1, line: 0, module: -1, parent: i - 1, self: 0, total: 1, kind: 2 })) {
        nodes[key].push(value);
      }
    }
    return { ...answerOf(tree("f", 1)), nodes };
  };
  assert.equal(new Graph(chain(65_535)).levels, 65_536);
  assert.throws(() => new Graph(chain(65_536)), /deeper than 65535/);
});

test("a million nodes", () => {
  const count = 1_000_000;
  const nodes = { name: [], file: [], line: [], module: [], parent: [], self: [], total: [], kind: [] };
  for (let i = 0; i < count; i++) {
    nodes.name.push(i % 1000);
    nodes.file.push(-1);
    nodes.line.push(i);
    nodes.module.push(-1);
    nodes.parent.push(i === 0 ? -1 : (i - 1) >> 1); // a binary heap: 20 levels
    nodes.self.push(1);
    nodes.total.push(0);
    nodes.kind.push(2);
  }
  for (let i = count - 1; i >= 0; i--) {
    nodes.total[i] += 1;
    if (i > 0) {
      nodes.total[nodes.parent[i]] += nodes.total[i];
    }
  }
  const names = Array.from({ length: 1000 }, (_, i) => "f" + i);
  const graph = new Graph({ ...answerOf(tree("all", 1)), names, nodes });
  assert.equal(graph.count, count);
  assert.equal(graph.levels, 20);
  assert.equal(graph.total[0], count);
  const order = graph.preorder();
  assert.deepEqual([...order.slice(0, 4)], [0, 1, 3, 7]);
  assert.equal(new Set(order).size, count);
  assert.equal(graph.lineOf(order[count - 1]), 2 ** 19 - 2); // the last of each level but the lowest, which is not full
});

// Of a name with parameters the part before them is the name, all of it the signature.
function overloaded(root) {
  const answer = { ...answerOf(root), signatures: {} };
  answer.names = answer.names.map((name, i) => {
    if (name.includes("(")) {
      answer.signatures[i] = name;
    }
    return name.split("(")[0];
  });
  return answer;
}

test("overloads have one name and ways of their own, also beside other answers", async () => {
  const { graft } = await bundle("graph/graft.ts");
  const { joinTrees } = await bundle("views/wall/wall_join.ts");
  const root = (leaf) => tree("all", 0, [tree("work(int)", 5, [tree("leaf", leaf)]), tree("work(long)", 3), tree("main", 1)], "root");
  const whole = new Graph(overloaded(root(1)));
  const at = whole.find(["work(long)"]);
  assert.deepEqual([whole.nameOf(at), whole.signatureOf(at), whole.total[at]], ["work", "work(long)", 3]);
  assert.deepEqual(whole.pathOf(whole.find(["work", "leaf"])), ["work(int)", "leaf"], "a name alone is the first one's");
  assert.equal(whole.signatureOf(whole.find(["main"])), undefined);
  const finer = overloaded(tree("all", 0, [tree("work(long)", 2, [tree("below(char)", 1)])], "root"));
  const joined = new Graph(graft(whole, at, finer));
  assert.deepEqual([...joined.preorder()].map((node) => joined.wholeNameOf(node)), ["all", "work(long)", "below(char)"]);
  const both = new Graph(joinTrees([overloaded(root(1)), overloaded(root(2))]).answer);
  const sums = [...both.preorder()].map((node) => [both.nameOf(node), both.signatureOf(node), both.total[node]]);
  assert.deepEqual(sums.slice(1), [["work", "work(int)", 13], ["leaf", undefined, 3], ["work", "work(long)", 6], ["main", undefined, 2]]);
});
