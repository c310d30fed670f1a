// SPDX-License-Identifier: Apache-2.0
// The answer of /sandwich to an answer of /flamegraph: as the API says it, a stack counts once, where the
// function is first met from the root.

import { KINDS } from "./fake_answers.mjs";

class Tree {
  nodes = { name: [], file: [], line: [], module: [], parent: [], self: [], total: [], kind: [] };
  #callees = new Map();

  constructor(answer) {
    this.answer = answer;
    this.add(0, -1);
  }

  // row: of the answer.
  add(row, parent) {
    const { name, file, line, module, kind } = this.answer.nodes;
    const key = `${parent},${name[row]},${module[row]}`;
    if (!this.#callees.has(key)) {
      const { nodes } = this;
      [["name", name], ["file", file], ["line", line], ["module", module], ["kind", kind]].forEach(([to, from]) => nodes[to].push(from[row]));
      nodes.self.push(0);
      nodes.total.push(0);
      this.#callees.set(key, nodes.parent.push(parent) - 1);
    }
    return this.#callees.get(key);
  }

  // Value of its own for the last of a way of rows.
  put(rows, value) {
    let at = 0;
    this.nodes.total[0] += value;
    for (const row of rows) {
      at = this.add(row, at);
      this.nodes.total[at] += value;
    }
    this.nodes.self[at] += value;
  }

  get json() {
    const { names, files, modules, kinds } = this.answer;
    return { names, files, modules, kinds, nodes: this.nodes, cut: 0 };
  }
}

export function sandwichOf(answer, functions, wanted) {
  const { names, nodes } = answer;
  const callers = new Tree(answer);
  const callees = new Tree(answer);
  for (let row = 1; row < nodes.name.length; row++) {
    const way = [];
    for (let at = row; at > 0; at = nodes.parent[at]) {
      way.unshift(at);
    }
    const first = way.findIndex((at) => names[nodes.name[at]] === wanted);
    if (first >= 0 && nodes.self[row] > 0) {
      const isGroup = (at) => KINDS[nodes.kind[at]] === "group";
      callers.put(way.slice(0, first + 1).filter((at) => !isGroup(at)).reverse(), nodes.self[row]);
      callees.put(way.slice(first), nodes.self[row]);
    }
  }
  const { type, unit, from, until, accounting } = answer;
  const total = callees.nodes.total[0];
  return {
    type, unit, from, until, function: wanted, total,
    total_samples: Math.round(total / 10_101_010),
    functions: functions.filter(({ name }) => name === wanted),
    callers: callers.json, callees: callees.json, accounting,
  };
}
