// SPDX-License-Identifier: Apache-2.0
// Which graph is drawn and which of its frames is zoomed: that of the whole answer, or one with a
// finer subtree where the zoomed frame holds what was cut.

import type { Graph } from "../../graph/graph";
import { splitPath } from "../../graph/path";
import type { Shell } from "../../shell/view";

// The graph with a finer subtree at that path, which it has; null: there is no such frame any more.
export type Finer = (graph: Graph, path: string[], signal: AbortSignal) => Promise<Graph | null>;

export class FlameZoom {
  graph: Graph | null = null; // what is drawn: base, or base with a finer subtree
  zoom = 0;
  selected = -1;
  private base: Graph | null = null; // the answer about everything
  private detailDepth = 0; // of the finer subtree's root, when graph is not base
  private asking = new AbortController();

  // finer: undefined: what there is is all.
  constructor(
    private readonly shell: Shell,
    private readonly finer: Finer | undefined,
    private readonly paint: (graph: Graph) => void,
  ) {}

  clear(): void {
    this.stop();
    this.base = this.graph = null;
    this.zoom = 0;
    this.selected = -1;
  }

  stop(): void {
    this.asking.abort();
  }

  // Another answer under the same eyes: selection and zoom stay at their paths.
  show(base: Graph): void {
    const selected = this.graph !== null && this.selected > 0 ? this.graph.pathOf(this.selected) : null;
    this.base = base;
    this.setGraph(base, selected);
    this.follow();
  }

  private setGraph(graph: Graph, selected: string[] | null): void {
    this.graph = graph;
    this.selected = selected === null ? -1 : graph.find(selected);
  }

  // Shows the zoom of the state; a path that is gone is followed as far as it goes.
  follow(): void {
    const { base, graph } = this;
    if (base === null || graph === null) {
      return;
    }
    const begin = performance.now();
    this.asking.abort();
    const path = splitPath(this.shell.state.zoom);
    let node = graph.find(path);
    if (node < 0 || (graph !== base && !this.isWholeAt(graph, path))) {
      this.setGraph(base, this.selected > 0 ? graph.pathOf(this.selected) : null);
      node = base.find(path);
      while (node < 0) {
        path.pop();
        node = base.find(path);
      }
    }
    this.zoom = (this.graph as Graph).total[node] > 0 ? node : 0;
    this.paint(this.graph as Graph);
    document.body.dataset.zoomMs = (performance.now() - begin).toFixed(1);
    if (node > 0 && this.graph?.holdsCut(node) === true && this.finer !== undefined) {
      void this.loadDetail(this.graph.pathOf(node), this.finer);
    }
  }

  // A graph with a finer subtree is complete only inside it: there the way down has one child each.
  private isWholeAt(graph: Graph, path: string[]): boolean {
    return path.length >= this.detailDepth && graph.find(path) >= 0;
  }

  private async loadDetail(path: string[], finer: Finer): Promise<void> {
    const old = this.graph as Graph;
    this.asking = new AbortController();
    const { signal } = this.asking;
    document.body.classList.add("loading");
    try {
      const graph = await finer(old, path, signal);
      if (graph !== null && !signal.aborted) {
        this.detailDepth = path.length;
        this.setGraph(graph, this.selected > 0 ? old.pathOf(this.selected) : null);
        this.showDetail(graph, path, finer);
      }
    } catch (failure) {
      if (!signal.aborted) {
        this.shell.notice(`The finer picture did not come: ${(failure as Error).message}`);
      }
    } finally {
      if (!signal.aborted) {
        document.body.classList.remove("loading");
      }
    }
  }

  // The finer subtree has come. The address may lead further down, to where only it reaches.
  private showDetail(graph: Graph, path: string[], finer: Finer): void {
    const wanted = splitPath(this.shell.state.zoom);
    const deepest = graph.find(wanted);
    this.zoom = deepest >= 0 ? deepest : Math.max(0, graph.find(path));
    this.paint(graph);
    document.body.dataset.detail = String(graph.count);
    if (wanted.length > path.length && deepest >= 0 && graph.holdsCut(deepest)) {
      void this.loadDetail(wanted, finer);
    }
  }
}
