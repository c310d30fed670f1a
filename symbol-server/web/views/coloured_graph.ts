// SPDX-License-Identifier: Apache-2.0
// A flame graph whose colours and words are its owner's: with search, the way to the zoomed frame,
// what is known of the selected one, and keys.

import { HoverCard } from "../graph/details";
import { el, type Child } from "../widgets/dom";
import { FlameGraph } from "../graph/flamegraph";
import { formatCount, formatPercent } from "../text/format";
import type { Graph } from "../graph/graph";
import { joinPath, splitPath } from "../graph/path";
import { compilePattern, findFrames, matchNames } from "../graph/search";
import type { KeyBinding, Shell } from "../shell/view";
import { searchChange, traceIdOf, type State } from "../shell/state";
import { FlameSteps, type Way } from "./flame/flame_steps";

const TYPING_PAUSE_MS = 150;

export interface Colours {
  fill(graph: Graph, node: number, dark: boolean): string | undefined;
  words(graph: Graph, node: number): [string, string][]; // of a frame, term and text
  legend(dark: boolean): [colour: string, text: string][];
}

export class ColouredGraph {
  readonly element: HTMLElement;
  readonly tools = el("div", { class: "tools" });
  private readonly trail = el("span", { class: "here" });
  private readonly search = el("input", {
    type: "text",
    placeholder: "Search: regular expression, or a trace id  ( / )",
    "aria-label": "Search frames",
    spellcheck: "false",
    autocomplete: "off",
  });
  private readonly found = el("span", { class: "quiet", role: "status" });
  private readonly host = el("div", { class: "diff-flame" });
  private readonly strip = el("div", { class: "diff-strip", role: "status" });
  private readonly legend = el("ul", { class: "diff-legend", "aria-label": "Colours" });
  private readonly card = new HoverCard();
  private readonly flame: FlameGraph;
  private readonly steps: FlameSteps;
  private graph: Graph | null = null;
  private zoom = 0;
  private selected = -1;
  private dark = false;
  private typing = 0;

  // name: of this part of the page, in words; prefix: of ids.
  constructor(
    private readonly shell: Shell,
    name: string,
    prefix: string,
    private readonly colours: Colours,
  ) {
    this.flame = new FlameGraph(
      this.host,
      {
        hover: (node, x, y) => this.hover(node, x, y),
        zoom: (node) => this.zoomTo(node),
        select: (node) => this.select(node),
        menu: (node) => this.select(node),
      },
      prefix,
    );
    this.flame.colourBy((graph, node) => this.colours.fill(graph, node, this.dark));
    this.steps = new FlameSteps(this.flame, (node) => this.select(node));
    this.search.addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = window.setTimeout(() => this.searchTyped(), TYPING_PAUSE_MS);
    });
    this.tools.append(this.trail, this.search, this.found);
    this.element = el("section", { class: "diff-graph", "aria-label": name }, this.tools, this.host, this.strip, this.legend);
  }

  readonly keys: KeyBinding[] = [
    { keys: ["ArrowUp"], does: "caller", yields: true, run: () => this.move("parent") },
    { keys: ["ArrowDown"], does: "widest callee", yields: true, run: () => this.move("child") },
    { keys: ["ArrowLeft"], does: "left neighbour", yields: true, run: () => this.move("left") },
    { keys: ["ArrowRight"], does: "right neighbour", yields: true, run: () => this.move("right") },
    { keys: ["Enter"], does: "zoom into the selected frame", yields: true, run: () => this.zoomTo(this.selected) },
    { keys: ["Escape"], does: "zoom out one step", run: () => this.zoomTo(this.graph?.parent[this.zoom] ?? -1) },
    { keys: ["Home", "0"], does: "all of it", run: () => this.zoomTo(0) },
    { keys: ["/"], does: "search; a trace's id leads to its stacks", run: () => this.search.focus() },
  ];

  setTheme(dark: boolean): void {
    this.dark = dark;
    this.flame.setTheme(dark);
    this.showLegend();
  }

  hide(): void {
    this.card.hide();
    clearTimeout(this.typing);
  }

  // null: nothing to draw.
  show(graph: Graph | null): void {
    this.graph = graph;
    this.selected = -1;
    this.card.hide();
    if (graph === null) {
      this.flame.clear();
      this.trail.textContent = "";
      this.strip.replaceChildren();
      return;
    }
    this.showZoom(graph);
    this.highlight(this.shell.state.search);
    document.body.dataset.nodes = String(graph.count);
  }

  // What of the state is only drawn otherwise.
  adjust(state: State, before: State | null): void {
    if (this.search.value !== state.search && document.activeElement !== this.search) {
      this.search.value = state.search;
    }
    if (before === null || this.graph === null) {
      return;
    }
    if (before.zoom !== state.zoom) {
      this.showZoom(this.graph);
    }
    if (before.search !== state.search || before.zoom !== state.zoom) {
      this.highlight(state.search);
    }
  }

  private searchTyped(): void {
    const text = this.search.value;
    if (traceIdOf(text) !== null) {
      this.search.value = "";
    }
    this.shell.change(searchChange(text), traceIdOf(text) !== null);
  }

  private showZoom(graph: Graph): void {
    const path = splitPath(this.shell.state.zoom);
    let node = graph.find(path);
    while (node < 0) {
      path.pop();
      node = graph.find(path);
    }
    this.zoom = graph.total[node] > 0 ? node : 0;
    this.flame.show(graph, this.zoom, this.selected);
    this.trail.textContent = graph.nameOf(this.zoom);
    this.showStrip(this.selected < 0 ? this.zoom : this.selected);
    document.body.dataset.zoom = graph.pathOf(this.zoom).join(";");
  }

  private highlight(text: string): void {
    const pattern = compilePattern(text);
    const { graph } = this;
    if (pattern === null || graph === null) {
      this.flame.highlight(null);
      this.found.textContent = "";
      return;
    }
    const names = matchNames(graph, pattern.expression);
    const found = findFrames(graph, names, this.zoom);
    this.flame.highlight(names);
    this.found.textContent =
      found.count === 0
        ? "no match"
        : `${formatPercent(found.value, graph.total[this.zoom])} · ${formatCount(found.count)} frames`;
  }

  private zoomTo(node: number): void {
    if (this.graph === null || node < 0) {
      return;
    }
    this.card.hide();
    this.select(node === 0 ? -1 : node);
    this.shell.change({ zoom: joinPath(this.graph.pathOf(node)) });
  }

  private select(node: number): void {
    this.selected = node;
    this.flame.select(node);
    this.flame.reveal(node);
    this.showStrip(node < 0 ? this.zoom : node);
    if (this.graph !== null && node >= 0) {
      document.body.dataset.selected = this.graph.nameOf(node);
      this.shell.speak(this.strip.innerText);
    }
  }

  private move(way: Way): void {
    this.steps.move(this.graph, way, this.selected, this.zoom);
  }

  private hover(node: number, x: number, y: number): void {
    if (this.graph === null || node < 0) {
      this.card.hide();
    } else {
      this.card.show(this.graph, node, x, y, this.colours.words(this.graph, node));
    }
  }

  private showStrip(node: number): void {
    const { graph } = this;
    const rows: Child[] =
      graph === null
        ? []
        : this.colours
            .words(graph, node)
            .flatMap(([term, text]) => [el("span", { class: "quiet" }, term), el("span", {}, text)]);
    this.strip.replaceChildren(el("bdi", { class: "frame-name" }, graph?.nameOf(node) ?? ""), ...rows);
  }

  private showLegend(): void {
    const entries = this.colours.legend(this.dark).map(([colour, text]) => {
      const swatch = el("span", { class: "swatch" });
      swatch.style.background = colour;
      return el("li", {}, swatch, text);
    });
    this.legend.replaceChildren(...entries);
  }
}
