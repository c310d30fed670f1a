// SPDX-License-Identifier: Apache-2.0
// Recursion collapsed, as the server's recursion= does for the page: a function that is called by itself becomes one
// frame. Pure.
//
// direct: f → f → g is f → g. all: what a function calls through others before it comes to itself
// again moves up to its outermost frame too, f → h → f → g is f → (h, g); so widths below f say how
// much of f's time is spent in each callee, whichever round called it.

import type { FlameAnswer, FlameNodes } from "../server/api";

export type Recursion = "" | "direct" | "all";

const FUNCTIONS = new Set(["native", "inline", "kernel", "interpreter", "jit", "gpu", "runtime"]);

// What a frame is: frames of one caller that are the same become one.
class Identities {
  private readonly known = new Map<string, number>();

  constructor(private readonly nodes: FlameNodes) {}

  of(row: number): number {
    const { name, kind, module } = this.nodes;
    const text = `${name[row]},${kind[row]},${module[row]}`;
    let id = this.known.get(text);
    if (id === undefined) {
      id = this.known.size;
      this.known.set(text, id);
    }
    return id;
  }
}

class Merged {
  readonly row: number[] = []; // of the answer: the first that became this node
  readonly parent: number[] = [];
  readonly self: number[] = [];
  private readonly callee = new Map<number, number>();

  constructor(private readonly room: number) {}

  add(row: number, parent: number, identity: number): number {
    const key = (parent + 1) * this.room + identity;
    const known = this.callee.get(key);
    if (known !== undefined) {
      return known;
    }
    const node = this.row.push(row) - 1;
    this.parent.push(parent);
    this.self.push(0);
    this.callee.set(key, node);
    return node;
  }

  totals(): number[] {
    const total = this.self.slice();
    for (let i = total.length - 1; i > 0; i--) {
      total[this.parent[i]] += total[i];
    }
    return total;
  }
}

export function collapseRecursion(answer: FlameAnswer, recursion: Recursion): FlameAnswer {
  return recursion === "" ? answer : columnsOf(answer, merge(answer, recursion === "all"));
}

function merge(answer: FlameAnswer, all: boolean): Merged {
  const { nodes } = answer;
  const isFunction = answer.kinds.map((kind) => FUNCTIONS.has(kind));
  const identities = new Identities(nodes);
  const merged = new Merged(nodes.name.length + 1);
  const became = new Int32Array(nodes.name.length);
  for (let row = 0; row < nodes.name.length; row++) {
    const parent = row === 0 ? -1 : became[nodes.parent[row]];
    let node = -1;
    if (isFunction[nodes.kind[row]]) {
      for (let at = parent; at >= 0 && node < 0; at = all ? merged.parent[at] : -1) {
        const above = merged.row[at];
        if (nodes.name[above] === nodes.name[row] && nodes.module[above] === nodes.module[row] && isFunction[nodes.kind[above]]) {
          node = at;
        }
      }
    }
    became[row] = node >= 0 ? node : merged.add(row, parent, identities.of(row));
    merged.self[became[row]] += nodes.self[row];
  }
  return merged;
}

// The widest callee first, as answers have it.
function columnsOf(answer: FlameAnswer, merged: Merged): FlameAnswer {
  const { nodes } = answer;
  const total = merged.totals();
  const callees: number[][] = total.map(() => []);
  for (let i = 1; i < total.length; i++) {
    callees[merged.parent[i]].push(i);
  }
  const order = [0];
  const place = new Int32Array(total.length);
  for (let i = 0; i < order.length; i++) {
    place[order[i]] = i;
    for (const callee of callees[order[i]].sort((a, b) => total[b] - total[a])) {
      order.push(callee);
    }
  }
  const rows = order.map((node) => merged.row[node]);
  return {
    ...answer,
    nodes: {
      name: rows.map((row) => nodes.name[row]),
      file: rows.map((row) => nodes.file[row]),
      line: rows.map((row) => nodes.line[row]),
      module: rows.map((row) => nodes.module[row]),
      kind: rows.map((row) => nodes.kind[row]),
      parent: order.map((node, i) => (i === 0 ? -1 : place[merged.parent[node]])),
      self: order.map((node) => merged.self[node]),
      total: order.map((node) => total[node]),
    },
  };
}
