// SPDX-License-Identifier: Apache-2.0
// Trees for tests of graphs, as answers of the API: tree("main", 10, [callee, callee]) has 10 of its own.

export const KINDS = [
  "root", "group", "native", "inline", "kernel", "interpreter", "jit", "gpu", "unresolved", "incomplete", "cut",
];

export function tree(name, self, callees = [], kind = "native") {
  return { name, self, callees, kind };
}

export function totalOf(node) {
  return node.callees.reduce((sum, callee) => sum + totalOf(callee), node.self);
}


// Children in the order given, each below its parent, depth first.
export function answerOf(root) {
  const names = [];
  const numbers = new Map();
  const nodes = { name: [], file: [], line: [], module: [], parent: [], self: [], total: [], kind: [] };
  const add = (node, parent) => {
    if (!numbers.has(node.name)) {
      numbers.set(node.name, names.push(node.name) - 1);
    }
    const row = nodes.name.push(numbers.get(node.name)) - 1;
    nodes.file.push(-1);
    nodes.line.push(0);
    nodes.module.push(-1);
    nodes.parent.push(parent);
    nodes.self.push(node.self);
    nodes.total.push(totalOf(node));
    nodes.kind.push(KINDS.indexOf(node.kind));
    node.callees.forEach((callee) => add(callee, row));
  };
  add(root, -1);
  return { type: "on-cpu", unit: "nanoseconds", from: 0, until: 60_000, names, files: [], modules: [], kinds: KINDS, nodes };
}

// Chance that is the same each time (Numerical Recipes' LCG).
export function chance(seed) {
  let state = seed;
  return (below) => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return Math.floor((state / 2 ** 32) * below);
  };
}

export function randomTree(pick, depth = 0) {
  const callees = Array.from({ length: depth > 8 ? 0 : depth < 2 ? 3 : pick(4) }, () => randomTree(pick, depth + 1));
  return tree("f" + pick(12), pick(5), callees, pick(20) === 0 ? "cut" : "native");
}
