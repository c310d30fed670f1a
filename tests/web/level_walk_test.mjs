// SPDX-License-Identifier: Apache-2.0
// What is drawn of a level, against all of its frames looked at one by one.

import assert from "node:assert/strict";
import test from "node:test";
import { bundle } from "./bundle.mjs";
import { answerOf, chance, randomTree, tree } from "./trees.mjs";

const { Graph } = await bundle("graph/graph.ts");
const { walkLevel } = await bundle("graph/level_walk.ts");

function drawn(graph, level, zoomed, width) {
  const frames = new Map();
  const strips = [];
  walkLevel(graph, level, zoomed, width, {
    frame: (node, from, to) => frames.set(node, [from, to]),
    haze: (from, to) => strips.push([from, to]),
  });
  return { frames, strips };
}

// Wide: itself, where it is. Narrower: a strip over the pixel in which it begins.
function check(graph, level, zoomed, width) {
  const { frames, strips } = drawn(graph, level, zoomed, width);
  const scale = width / graph.total[zoomed];
  let wide = 0;
  for (let node = graph.levelStart[level]; node < graph.levelStart[level + 1]; node++) {
    const from = (graph.x[node] - graph.x[zoomed]) * scale;
    const to = from + graph.total[node] * scale;
    if (to <= 0 || from >= width) {
      assert.ok(!frames.has(node));
    } else if (to - from >= 1) {
      wide++;
      const [left, right] = frames.get(node) ?? assert.fail(`node ${node} of ${from}…${to} is not drawn`);
      assert.ok(Math.abs(left - Math.max(0, from)) < 1e-6 && Math.abs(right - Math.min(width, to)) < 1e-6);
    } else if (graph.total[node] > 0) {
      const pixel = Math.max(0, Math.floor(from));
      assert.ok(strips.some((strip) => strip[0] <= pixel && pixel < strip[1]), `nothing stands for node ${node} at ${from}`);
    }
  }
  assert.equal(frames.size, wide);
}

test("a wide frame that begins in the pixel of a narrow one is drawn", () => {
  const graph = new Graph(answerOf(tree("all", 0, [tree("a", 600), tree("tiny", 1), tree("tinier", 1), tree("wide", 398)])));
  for (const width of [100, 150, 333, 400]) {
    check(graph, 1, 0, width);
    assert.ok(drawn(graph, 1, 0, width).frames.has(graph.find(["wide"])));
  }
});

test("all frames of random graphs, at any zoom and width", () => {
  const pick = chance(7);
  for (let i = 0; i < 60; i++) {
    const graph = new Graph(answerOf(randomTree(pick)));
    for (const width of [1, 7, 40, 300, 1400]) {
      const zoomed = pick(graph.count);
      if (graph.total[zoomed] > 0) {
        for (let level = 0; level < graph.levels; level++) {
          check(graph, level, zoomed, width);
        }
      }
    }
  }
});
