// SPDX-License-Identifier: Apache-2.0
// The selection moved through a flame graph by arrow keys.

import type { FlameGraph } from "../../graph/flamegraph";
import type { Graph } from "../../graph/graph";

export type Way = "parent" | "child" | "left" | "right";

export class FlameSteps {
  constructor(
    private readonly flame: FlameGraph,
    private readonly select: (node: number) => void,
  ) {}

  // selected: −1 none yet; then any way leads to the zoomed frame.
  move(graph: Graph | null, way: Way, selected: number, zoom: number): void {
    if (graph !== null) {
      this.select(selected < 0 ? zoom : this.next(graph, way, selected, zoom));
    }
  }

  private next(graph: Graph, way: Way, at: number, zoom: number): number {
    if (way === "parent") {
      return Math.max(0, graph.parent[at]);
    }
    if (way === "child") {
      return widestChild(graph, at);
    }
    const to = at + (way === "left" ? -1 : 1);
    const isBeside =
      to > 0 &&
      to < graph.count &&
      graph.depth[to] === graph.depth[at] &&
      (graph.isInside(to, zoom) || graph.depth[at] <= graph.depth[zoom]);
    return isBeside && this.flame.widthOf(to) >= 1 ? to : at;
  }
}

// To the nearest wider caller, and on while that shows the same: up to the first of equal width.
// −1: all is shown.
export function outwards(graph: Graph, zoom: number): number {
  if (zoom === 0) {
    return -1;
  }
  let node = graph.parent[zoom];
  while (node > 0 && graph.total[node] <= graph.total[zoom]) {
    node = graph.parent[node];
  }
  while (node > 0 && graph.total[graph.parent[node]] <= graph.total[node]) {
    node = graph.parent[node];
  }
  return node;
}

// One step from the zoomed frame towards this one, without one towards its widest callee: to the first
// that is narrower. −1: there is none.
export function inwards(graph: Graph, zoom: number, towards: number): number {
  const isBelow = towards >= 0 && towards !== zoom && graph.isInside(towards, zoom);
  const target = isBelow ? towards : widestChild(graph, zoom);
  if (target === zoom) {
    return -1;
  }
  const way = graph.ancestorsOf(target).slice(graph.depth[zoom] + 1);
  return way.find((node) => graph.total[node] < graph.total[zoom]) ?? target;
}

export function widestChild(graph: Graph, node: number): number {
  const first = graph.firstChild[node];
  let widest = node;
  for (let child = first; child < first + graph.childCount[node]; child++) {
    if (widest === node || graph.total[child] > graph.total[widest]) {
      widest = child;
    }
  }
  return widest;
}

// Frames too narrow to draw are seen in their caller.
export function solid(graph: Graph, node: number): number {
  return graph.kindOf(node) === "cut" ? graph.parent[node] : node;
}
