// SPDX-License-Identifier: Apache-2.0
// The two trees of /api/v1/sandwich as flame graphs whose root is the function. Pure.

import type { FlameAnswer, FlameNodes, FrameTree, SandwichAnswer } from "../../server/api";
import { Graph } from "../../graph/graph";

const COLUMNS = ["name", "file", "line", "module", "self", "total", "kind"] as const;

// The tree without its root where that has one child only, which is the root then: all others are
// below it, so the child is the second row.
export function withoutRoot(nodes: FlameNodes<number[]>): FlameNodes {
  const isSingle = nodes.parent.length > 1 && nodes.parent.indexOf(0, 2) < 0 && nodes.self[0] === 0;
  if (!isSingle) {
    return nodes;
  }
  const out = { ...nodes, parent: nodes.parent.slice(1).map((parent) => parent - 1) };
  for (const column of COLUMNS) {
    out[column] = nodes[column].slice(1);
  }
  out.self_error = nodes.self_error?.slice(1);
  out.total_error = nodes.total_error?.slice(1);
  return out;
}

function graphOf(answer: SandwichAnswer, tree: FrameTree): Graph {
  const { type, unit, from, until, accounting } = answer;
  const { names, signatures, languages, files, modules, kinds } = tree;
  const shown: FlameAnswer = { type, unit, from, until, accounting, names, signatures, languages, files, modules, kinds, nodes: withoutRoot(tree.nodes) };
  const graph = new Graph(shown);
  graph.rootName = answer.function;
  return graph;
}

export interface Sandwich {
  callers: Graph;
  callees: Graph;
}

export function sandwichOf(answer: SandwichAnswer): Sandwich {
  return { callers: graphOf(answer, answer.callers), callees: graphOf(answer, answer.callees) };
}

export interface Neighbour {
  name: string;
  signature?: string;
  module: string;
  value: number;
}

// The frames next to the root, the heaviest first; names that occur with several lines or files once.
export function neighbours(graph: Graph): Neighbour[] {
  const found = new Map<string, Neighbour>();
  const first = graph.firstChild[0];
  for (let node = first; node < first + graph.childCount[0]; node++) {
    const module = graph.moduleOf(node)?.name ?? "";
    const key = `${module}\n${graph.wholeNameOf(node)}`;
    const known = found.get(key) ?? { name: graph.nameOf(node), signature: graph.signatureOf(node), module, value: 0 };
    known.value += graph.total[node];
    found.set(key, known);
  }
  return [...found.values()].sort((a, b) => b.value - a.value);
}
