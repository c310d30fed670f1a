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
