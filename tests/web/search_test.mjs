// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import test from "node:test";
import { bundle } from "./bundle.mjs";
import { answerOf, chance, randomTree, totalOf, tree } from "./trees.mjs";

const { compilePattern, findFrames, matchNames } = await bundle("graph/search.ts");
const { Graph } = await bundle("graph/graph.ts");
const { mayExplode } = await bundle("graph/search_guard.ts");

function search(graph, text, zoom = 0) {
  const found = findFrames(graph, matchNames(graph, compilePattern(text).expression), zoom);
  assert.equal(found.nodes().length, found.count);
  return { paths: [...found.nodes()].map((node) => graph.pathOf(node).join(";")), value: found.value };
}

test("no text, no pattern", () => {
  assert.equal(compilePattern(""), null);
});

test("case matters when the text has a capital letter", () => {
  assert.equal(compilePattern("malloc").expression.test("MALLOC"), true);
  assert.equal(compilePattern("Malloc").expression.test("malloc"), false);
});

test("what is no expression is looked for letter by letter, and said to be none", () => {
  for (const text of ["operator()(", "a[", "*", "(?<x", "x{2,1}"]) {
    const { expression, error } = compilePattern(text);
    assert.match(error, /^No expression \(.*(group|class|repeat|order).*\): looked for letter by letter\.$/);
    assert.equal(expression.test(`a ${text} b`), true);
    assert.equal(expression.test("something else"), false);
  }
  assert.equal(compilePattern("a.c").error, "");
});

test("an endless text is cut", () => {
  assert.equal(compilePattern("a".repeat(100_000)).expression.source.length, 1000);
});

test("a match below a match is counted once", () => {
  const graph = new Graph(answerOf(tree("all", 1, [tree("x1", 2, [tree("y", 3), tree("x2", 4)]), tree("x3", 10), tree("z", 80)])));
  assert.deepEqual(search(graph, "^x"), { paths: ["x1", "x1;x2", "x3"], value: 19 });
});

test("only what lies below the zoom is counted; matches elsewhere are found nevertheless", () => {
  const graph = new Graph(answerOf(tree("all", 0, [tree("a", 1, [tree("x", 5)]), tree("b", 0, [tree("x", 7)])])));
  assert.deepEqual(search(graph, "x", graph.find(["b"])), { paths: ["a;x", "b;x"], value: 7 });
  assert.equal(search(graph, "x", graph.find(["a"])).value, 5);
  assert.equal(search(graph, "x", graph.find(["b", "x"])).value, 7);
});

test("share as by a walk over the tree", () => {
  const covered = (node, matches) =>
    node.kind !== "cut" && matches(node.name) ? totalOf(node) : node.callees.reduce((sum, callee) => sum + covered(callee, matches), 0);
  for (let seed = 30; seed < 90; seed++) {
    const root = randomTree(chance(seed));
    const graph = new Graph(answerOf(root));
    for (const text of ["f1", "f3$", "^f[4-6]$", "f", "nothing"]) {
      const pattern = new RegExp(text);
      // The root is "all" to the page, whatever its name.
      const want = root.callees.reduce((sum, callee) => sum + covered(callee, (name) => pattern.test(name)), 0);
      const got = search(graph, text);
      if (!pattern.test(root.name)) {
        assert.equal(got.value, want, `seed ${seed}, ${text}`);
      }
    }
  }
});

test("strangers' names: only their first 4 KB are looked at", () => {
  const long = "a".repeat(5000) + "needle";
  const graph = new Graph(answerOf(tree("all", 0, [tree(long, 1), tree("<script>\u202e\n", 2)])));
  assert.equal(search(graph, "needle").value, 0);
  assert.equal(search(graph, "<script>").value, 2);
});

test("expressions that may take for ever are told from those that cannot", () => {
  const bad = ["(a+)+b", "(a|a)*b", "(.*)*x", "(\\w+\\s?)+:", ".*.*.*=", "(?:x+x+)+y", "(a{2,}){3,}", "(a)\\1", "((ab)*c)*d", "(?<n>x)\\k<n>"];
  const good = ["malloc", "^json::.*parse", "a.c|d.f", "(foo|bar)baz", "[+*]+", "operator\\+\\+", "(a+)b", "x?y?z?", "std::vector<.*>::", "("];
  assert.deepEqual(bad.filter((text) => !mayExplode(text)), []);
  assert.deepEqual(good.filter((text) => mayExplode(text)), []);
  assert.equal(mayExplode(".*a.*"), true);
  assert.equal(mayExplode(".*a.*", 2), false);
});

test("without a guard such an expression is looked for letter by letter", () => {
  const { expression, error } = compilePattern("(a+)+b");
  assert.match(error, /very long/);
  assert.equal(expression.test("x(a+)+b"), true);
  assert.equal(compilePattern("(a+)+b", true).error, "");
});
