// SPDX-License-Identifier: Apache-2.0
// Which graph is drawn and which of its frames is zoomed: that of the whole answer, or one with a
// finer subtree where the zoomed frame holds what was cut.

import { ask, type FlameAnswer, type Parameters } from "../../server/api";
import { graft } from "../../graph/graft";
import { Graph } from "../../graph/graph";
import { joinPath, splitPath } from "../../graph/path";
import type { Shell } from "../../shell/view";

export class FlameZoom {
  graph: Graph | null = null; // what is drawn: base, or base with a finer subtree
  zoom = 0;
  selected = -1;
  private base: Graph | null = null; // the answer about everything
  private detailDepth = 0; // of the finer subtree's root, when graph is not base
  private asking = new AbortController();

  // parameters: of the question that base answers; null: no finer ones can be asked.
  constructor(
    private readonly shell: Shell,
    private readonly parameters: () => Parameters | null,
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
    this.zoom = node;
    this.paint(this.graph as Graph);
    document.body.dataset.zoomMs = (performance.now() - begin).toFixed(1);
    this.refine(node);
  }

  private refine(node: number): void {
    const parameters = this.parameters();
    if (node > 0 && this.graph?.holdsCut(node) === true && parameters !== null) {
      void this.loadDetail(this.graph.pathOf(node), parameters);
    }
  }

  // A graph with a finer subtree is complete only inside it: there the way down has one child each.
  private isWholeAt(graph: Graph, path: string[]): boolean {
    return path.length >= this.detailDepth && graph.find(path) >= 0;
  }

  private async loadDetail(path: string[], parameters: Parameters): Promise<void> {
    const base = this.base as Graph;
    this.asking = new AbortController();
    const { signal } = this.asking;
    const { from, until } = base.answer;
    document.body.classList.add("loading");
    try {
      const range = { from: String(from), until: String(until), root: joinPath(path) };
      const answer = await ask<FlameAnswer>("flamegraph", { ...parameters, ...range }, signal);
      const node = base.find(path);
      const joined = node < 0 ? null : graft(base, node, answer);
      if (joined !== null && !signal.aborted) {
        const old = this.graph as Graph;
        this.detailDepth = path.length;
        this.setGraph(new Graph(joined), this.selected > 0 ? old.pathOf(this.selected) : null);
        this.showDetail(path, parameters);
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
  private showDetail(path: string[], parameters: Parameters): void {
    const graph = this.graph as Graph;
    const wanted = splitPath(this.shell.state.zoom);
    const deepest = graph.find(wanted);
    this.zoom = deepest >= 0 ? deepest : Math.max(0, graph.find(path));
    this.paint(graph);
    document.body.dataset.detail = String(graph.count);
    if (wanted.length > path.length && deepest >= 0 && graph.holdsCut(deepest)) {
      void this.loadDetail(wanted, parameters);
    }
  }
}
