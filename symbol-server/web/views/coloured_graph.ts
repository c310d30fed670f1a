// SPDX-License-Identifier: Apache-2.0
// A flame graph whose colours and words are its owner's: with search, the way to the zoomed frame,
// what is known of the selected one, its menu, and keys.

import { HoverCard } from "../graph/details";
import { AfterFrame } from "../widgets/after_frame";
import { copyAndSay } from "../widgets/copy";
import { el, type Child } from "../widgets/dom";
import { FlameGraph } from "../graph/flamegraph";
import type { Graph } from "../graph/graph";
import { joinPath } from "../graph/path";
import type { KeyBinding, Shell } from "../shell/view";
import type { MenuItem } from "../widgets/menu";
import { searchChange, traceIdOf, type State } from "../shell/state";
import { FlameSteps, inwards, outwards, solid, type Way } from "./flame/flame_steps";
import { FlameZoom, type Finer } from "./flame/flame_zoom";
import { frameMenu, isFunction, stackText } from "./flame/frame_menu";
import { FrameTree } from "./flame/frame_tree";
import { makeSearch, SearchBox, type Counting } from "./flame/search_box";

export interface Colours {
  fill(graph: Graph, node: number, dark: boolean): string | undefined;
  words(graph: Graph, node: number): [string, string][]; // of a frame, term and text
  legend(dark: boolean): [colour: string, text: string][];
  menu?(graph: Graph, node: number): MenuItem[]; // what else can be done with a frame
  // Where frames too narrow to be seen are left out:
  finer?: Finer;
  count?: Counting; // what a search finds of all
  resized?(width: number): void;
}

export class ColouredGraph {
  readonly element: HTMLElement;
  readonly tools = el("div", { class: "tools" });
  private readonly trail = el("span", { class: "here" });
  private readonly host = el("div", { class: "diff-flame" });
  private readonly strip = el("div", { class: "diff-strip", role: "status" });
  private readonly legend = el("ul", { class: "diff-legend", "aria-label": "Colours" });
  private readonly card = new HoverCard();
  private readonly flame: FlameGraph;
  private readonly tree: FrameTree;
  private readonly steps: FlameSteps;
  private readonly search: SearchBox;
  private readonly afterPicture = new AfterFrame(() => this.describe());
  private readonly at: FlameZoom;
  private dark = false;

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
        menu: (node, x, y) => this.openMenu(node, x, y),
        wheel: (step, node) => this.zoomBy(step, node),
        resized: (width) => colours.resized?.(width),
      },
      prefix,
    );
    this.at = new FlameZoom(shell, colours.finer, (graph) => this.paint(graph));
    this.flame.colourBy((graph, node) => this.colours.fill(graph, node, this.dark));
    this.tree = new FrameTree(this.flame.scroller, `${name}: arrow keys move, Enter zooms`, prefix, (graph, node) =>
      colours.words(graph, node),
    );
    this.steps = new FlameSteps(this.flame, (node) => this.select(node));
    const { element, parts } = makeSearch(() => this.flame.scroller.focus());
    this.search = new SearchBox(
      parts,
      (text) => shell.change(searchChange(text), traceIdOf(text) !== null),
      (names) => this.flame.highlight(names),
      (node) => this.goTo(node),
      colours.count,
    );
    this.tools.append(this.trail, element);
    this.element = el("section", { class: "diff-graph", "aria-label": name }, this.tools, this.host, this.strip, this.legend);
  }

  readonly keys: KeyBinding[] = [
    { keys: ["ArrowUp"], does: "caller", yields: true, run: () => this.move("parent") },
    { keys: ["ArrowDown"], does: "widest callee", yields: true, run: () => this.move("child") },
    { keys: ["ArrowLeft"], does: "left neighbour", yields: true, run: () => this.move("left") },
    { keys: ["ArrowRight"], does: "right neighbour", yields: true, run: () => this.move("right") },
    { keys: ["Enter"], does: "zoom into the selected frame", yields: true, run: () => this.zoomTo(this.at.selected) },
    { keys: ["Escape"], does: "zoom out one step", run: () => this.zoomBy("out", -1) },
    { keys: ["Home", "0"], does: "all of it", run: () => this.zoomTo(0) },
    {
      keys: ["+", "="],
      does: "zoom in one step, towards the selected frame (Ctrl and the wheel do it at the pointer)",
      run: () => this.zoomBy("in", this.at.selected),
    },
    { keys: ["-"], does: "zoom out one step", run: () => this.zoomBy("out", -1) },
    { keys: ["/"], does: "search; a trace's id leads to its stacks", run: () => this.search.focus() },
    { keys: ["n"], does: "next match", run: () => this.search.step(1) },
    { keys: ["N"], does: "previous match", run: () => this.search.step(-1) },
    { keys: ["m", "ContextMenu"], does: "menu of the frame: sandwich, copy, focus, ignore, hide", run: () => this.openMenuHere() },
    { keys: ["s"], does: "sandwich: callers and callees of the selected function", run: () => this.openSandwich() },
    { keys: ["c"], does: "copy the selected function's name", run: () => this.copy((graph, node) => graph.nameOf(node)) },
    { keys: ["C"], does: "copy its stack as text", run: () => this.copy(stackText) },
  ];

  setTheme(dark: boolean): void {
    this.dark = dark;
    this.flame.setTheme(dark);
    this.showLegend();
  }

  hide(): void {
    this.at.stop();
    this.card.hide();
  }

  // Pixels that the zoomed frame has.
  get wide(): number {
    return this.flame.wide;
  }

  // null: nothing to draw. In another answer the selection stays at its path.
  show(graph: Graph | null): void {
    this.card.hide();
    if (graph === null) {
      this.at.clear();
      this.flame.clear();
      this.search.attach(null, 0);
      this.tree.show(null, -1);
      this.trail.textContent = "";
      this.strip.replaceChildren();
      return;
    }
    this.at.show(graph);
    document.body.dataset.nodes = String(graph.count);
  }

  // What of the state is only drawn otherwise.
  adjust(state: State, before: State | null): void {
    this.search.set(state.search);
    if (before !== null && before.zoom !== state.zoom) {
      this.at.follow();
    }
  }

  // A function of this name stands out for a moment; null: no longer.
  point(name: string | null): void {
    this.search.point(name);
  }

  private paint(graph: Graph): void {
    this.card.hide();
    this.flame.show(graph, this.at.zoom, this.at.selected);
    this.search.attach(graph, this.at.zoom);
    this.afterPicture.soon();
  }

  // What is read of the picture, not seen in it.
  private describe(): void {
    const { graph, zoom, selected } = this.at;
    if (graph !== null) {
      this.trail.textContent = graph.nameOf(zoom);
      this.tell(selected < 0 ? zoom : selected);
      document.body.dataset.zoom = graph.pathOf(zoom).join(";");
    }
  }

  private zoomTo(node: number): void {
    const { graph } = this.at;
    if (graph === null || node < 0) {
      return;
    }
    this.card.hide();
    node = solid(graph, node);
    const zoom = joinPath(graph.pathOf(node));
    if (zoom === this.shell.state.zoom) {
      this.select(node === 0 ? -1 : node);
      return;
    }
    this.at.selected = node === 0 ? -1 : node;
    this.shell.change({ zoom });
    this.flame.reveal(this.at.selected);
    this.say();
  }

  // In towards a frame; the selection stays where it is.
  private zoomBy(step: "in" | "out", towards: number): void {
    const { graph, zoom } = this.at;
    const node = graph === null ? -1 : step === "out" ? outwards(graph, zoom) : inwards(graph, zoom, towards);
    if (graph !== null && node >= 0) {
      this.shell.change({ zoom: joinPath(graph.pathOf(solid(graph, node))) });
    }
  }

  // To a match of the search: zoomed so that it has a few pixels.
  private goTo(node: number): void {
    const graph = this.at.graph as Graph;
    const zoom = this.flame.zoomToSee(graph, node, this.at.zoom);
    if (zoom !== this.at.zoom) {
      this.shell.change({ zoom: joinPath(graph.pathOf(zoom)) }, false);
    }
    this.select(node);
  }

  private select(node: number): void {
    this.at.selected = node;
    this.flame.select(node);
    this.flame.reveal(node);
    this.tell(node < 0 ? this.at.zoom : node);
    this.say();
  }

  private say(): void {
    const { graph, selected } = this.at;
    if (graph !== null && selected >= 0) {
      const words = this.colours.words(graph, selected).map(([term, text]) => `${term} ${text}`);
      document.body.dataset.selected = graph.nameOf(selected);
      this.shell.speak([graph.nameOf(selected), ...words].join(", "));
    }
  }

  private move(way: Way): void {
    this.steps.move(this.at.graph, way, this.at.selected, this.at.zoom);
  }

  private hover(node: number, x: number, y: number): void {
    const { graph } = this.at;
    if (graph === null || node < 0 || this.shell.menu.isOpen) {
      this.card.hide();
    } else {
      this.card.show(graph, node, x, y, this.colours.words(graph, node));
    }
  }

  private openMenu(node: number, x: number, y: number): void {
    const { shell } = this;
    const { graph } = this.at;
    if (graph === null || node < 0) {
      return;
    }
    this.card.hide();
    this.select(node);
    const items = frameMenu(graph, node, shell.state, {
      zoom: () => this.zoomTo(node),
      change: (changed) => shell.change(changed),
      copy: (text) => void copyAndSay(text, shell),
    });
    items.splice(1, 0, ...(this.colours.menu?.(graph, node) ?? []));
    shell.menu.open(x, y, graph.nameOf(node), items);
  }

  private openMenuHere(): void {
    const { graph, selected } = this.at;
    if (graph === null || selected < 0) {
      this.shell.notice("Select a frame first.");
      return;
    }
    const { left, top } = this.flame.place(selected);
    this.openMenu(selected, left + 12, top + 20);
  }

  private openSandwich(): void {
    const { graph, selected } = this.at;
    if (graph !== null && selected >= 0 && isFunction(graph.kindOf(selected))) {
      this.shell.change({ page: "graph", sandwich: graph.wholeNameOf(selected) });
    } else {
      this.shell.notice("Select a function first.");
    }
  }

  private copy(what: (graph: Graph, node: number) => string): void {
    const { graph, selected } = this.at;
    if (graph !== null && selected >= 0) {
      void copyAndSay(what(graph, selected), this.shell);
    }
  }

  private tell(node: number): void {
    const { graph } = this.at;
    const rows: Child[] =
      graph === null
        ? []
        : this.colours
            .words(graph, node)
            .flatMap(([term, text]) => [el("span", { class: "quiet" }, term), el("span", {}, text)]);
    this.strip.replaceChildren(el("bdi", { class: "frame-name" }, graph?.nameOf(node) ?? ""), ...rows);
    this.tree.show(graph, node);
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
