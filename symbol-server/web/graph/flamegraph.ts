// SPDX-License-Identifier: Apache-2.0
// The flame graph on a canvas, root on top. The canvas is as large as the window's part, however
// deep the graph: a spacer gives the scroll bar its length. Per level only frames of a pixel or
// more are drawn; runs of narrower ones become one strip of haze and are skipped by binary search,
// so the work depends on the pixels, not on the nodes.

import { watchDensity } from "./density";
import { el } from "../widgets/dom";
import { onLongPress } from "../widgets/long_press";
import { formatValue } from "../text/format";
import { Graph, KINDS } from "./graph";
import { hatch } from "./hatch";
import { walkLevel } from "./level_walk";
import { hashText, labelOf, makePalette, Palette, SHADES } from "./palette";
import { ScrollPlace } from "./scroll_place";
import { shown } from "../text/shown";
import { TextFit } from "./text_fit";
import { WheelSteps } from "./wheel";

const ROW = 19; // pixels from one level to the next
const TEXT_LEFT = 4;
const TEXT_MIN = 26; // narrower frames carry no text
const SEEN = 4; // a match of the search is at least so wide
const FONT = '12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
const UNKNOWN = 255; // a name's shade, before it is drawn for the first time
const FADED = 0.55; // ancestors of the zoomed frame

const KERNEL = KINDS.indexOf("kernel");
const INLINE = KINDS.indexOf("inline");
const CUT = KINDS.indexOf("cut");
const HATCHED = new Set(["unresolved", "incomplete"].map((k) => KINDS.indexOf(k as never)));

export interface FlameEvents {
  hover(node: number, x: number, y: number): void; // −1: nothing under the pointer
  zoom(node: number): void;
  select(node: number): void; // selected by pointer, not zoomed
  menu(node: number, x: number, y: number): void;
  resized?(width: number): void; // pixels that the zoomed frame has
  wheel?(step: "in" | "out", node: number): void; // Ctrl and the wheel, or two fingers, over a frame
}

// Colours other than by kind or module; undefined leaves a frame as it is.
export type Colouring = (graph: Graph, node: number) => string | undefined;

export class FlameGraph {
  private readonly canvas = el("canvas", { class: "flame-canvas" });
  private readonly hoverBox = el("div", { class: "flame-hover", hidden: "" });
  private readonly selectBox = el("div", { class: "flame-select", hidden: "" });
  private readonly spacer = el("div", { class: "flame-spacer" });
  readonly scroller = el("div", {
    class: "flame-scroller",
    tabindex: "0",
    role: "application",
    "aria-label": "Flame graph. Arrow keys move, Enter zooms, Escape zooms out.",
  });
  private colouring: Colouring | null = null;
  private readonly context: CanvasRenderingContext2D;
  private readonly text: TextFit;
  private readonly scroll: ScrollPlace;
  private palette: Palette = makePalette(false);
  private graph: Graph | null = null;
  private shadeOfName = new Uint8Array(0);
  private slotOfModule = new Uint8Array(0);
  private rootText = ""; // what stands in the root's box
  private byModule = false;
  private found: Uint8Array | null = null;
  private zoomed = 0;
  private selected = -1;
  private hovered = -1;
  private width = 0;
  private height = 0;
  private frame = 0; // pending animation frame

  // Fills the host, which has a size of its own. prefix: of the elements' ids.
  constructor(
    host: HTMLElement,
    private readonly events: FlameEvents,
    prefix = "flame",
    private readonly upwards = false, // root at the bottom
  ) {
    this.canvas.id = `${prefix}-canvas`;
    this.scroller.id = `${prefix}-scroller`;
    this.spacer.append(this.canvas, this.selectBox, this.hoverBox);
    this.scroller.append(this.spacer);
    this.scroll = new ScrollPlace(this.scroller, this.spacer);
    host.prepend(this.scroller);
    const context = this.canvas.getContext("2d", { alpha: false });
    if (context === null) {
      throw new Error("This browser has no 2D canvas.");
    }
    this.context = context;
    context.font = FONT;
    this.text = new TextFit(context);
    this.listen();
  }

  private listen(): void {
    new ResizeObserver(() => this.resize()).observe(this.scroller);
    watchDensity(() => this.resize());
    this.scroller.addEventListener("scroll", () => {
      if (this.scroll.follow()) {
        this.redrawSoon();
      }
    });
    this.scroller.addEventListener("mousemove", (e) => {
      this.resize();
      this.setHover(this.nodeAt(e.clientX, e.clientY), e.clientX, e.clientY);
    });
    this.scroller.addEventListener("mouseleave", () => this.setHover(-1, 0, 0));
    this.scroller.addEventListener("click", (e) => {
      const node = this.nodeAt(e.clientX, e.clientY);
      if (node < 0) {
        return;
      }
      this.select(node);
      this.events.zoom(node);
    });
    if (this.events.wheel !== undefined) {
      new WheelSteps(this.scroller, (step, x, y) => this.events.wheel?.(step, this.nodeAt(x, y)));
    }
    this.scroller.addEventListener("contextmenu", (e) => {
      if (this.openMenu(e.clientX, e.clientY)) {
        e.preventDefault();
      }
    });
    onLongPress(this.scroller, (x, y) => this.openMenu(x, y));
  }

  private openMenu(x: number, y: number): boolean {
    const node = this.nodeAt(x, y);
    if (node >= 0) {
      this.select(node);
      this.events.select(node);
      this.events.menu(node, x, y);
    }
    return node >= 0;
  }

  // The zoom and the selection are the graph's numbers.
  show(graph: Graph, zoom: number, selected: number): void {
    const isNew = graph !== this.graph;
    if (isNew) {
      this.shadeOfName = new Uint8Array(graph.answer.names.length).fill(UNKNOWN);
      this.slotOfModule = Uint8Array.from(
        graph.answer.modules,
        (module) => hashText(module.name) % this.palette.moduleCount,
      );
    }
    this.rootText = `${graph.rootName} · ${formatValue(graph.total[0], graph.answer.unit)}`;
    this.graph = graph;
    this.zoomed = zoom;
    this.selected = selected;
    this.hovered = -1;
    const wasShort = this.scroll.bottom === 0;
    this.scroll.setTall(graph.levels * ROW, this.height);
    if (this.upwards && (isNew || wasShort)) {
      this.scroll.to(this.scroll.bottom);
    }
    this.draw();
  }

  clear(): void {
    this.graph = null;
    this.found = null;
    this.selected = this.hovered = -1;
    this.scroll.setTall(0, this.height);
    this.draw();
  }

  setTheme(dark: boolean): void {
    this.palette = makePalette(dark);
    this.redrawSoon();
  }

  colour(byModule: boolean, colouring: Colouring | null): void {
    this.byModule = byModule;
    this.colourBy(colouring);
  }

  colourBy(colouring: Colouring | null): void {
    this.colouring = colouring;
    this.redrawSoon();
  }

  // Per name 1 where frames stand out and the others step back; null: no search.
  highlight(names: Uint8Array | null): void {
    if (names !== this.found) {
      this.found = names;
      this.redrawSoon();
    }
  }

  select(node: number): void {
    this.selected = node;
    this.placeBoxes();
  }

  // Scrolls so that the frame's row is in view.
  reveal(node: number): void {
    if (this.graph === null || node < 0) {
      return;
    }
    const top = this.topOf(this.graph, this.graph.depth[node]);
    if (top < this.scroll.top) {
      this.scroll.to(top);
    } else if (top + ROW > this.scroll.top + this.height) {
      this.scroll.to(top + ROW - this.height);
    }
  }

  // Of a level, in the spacer. Few levels of a graph that grows upwards stand at the bottom.
  private topOf(graph: Graph, level: number): number {
    return this.upwards ? Math.max(graph.levels * ROW, this.height) - (level + 1) * ROW : level * ROW;
  }

  private levelAt(graph: Graph, y: number): number {
    return Math.floor((this.upwards ? Math.max(graph.levels * ROW, this.height) - y : y) / ROW);
  }

  // Where a frame is on the screen, for menus opened by keyboard and for tests.
  place(node: number): { left: number; top: number; width: number } {
    const graph = this.graph as Graph;
    const box = this.canvas.getBoundingClientRect();
    const scale = this.width / graph.total[this.zoomed];
    const left = (graph.x[node] - graph.x[this.zoomed]) * scale;
    const right = left + graph.total[node] * scale;
    return {
      left: box.left + Math.max(0, left),
      top: box.top + this.topOf(graph, graph.depth[node]) - this.scroll.top,
      width: Math.min(this.width, right) - Math.max(0, left),
    };
  }

  // Width in pixels that a frame has, or would have with another frame zoomed.
  widthOf(node: number, zoom = this.zoomed): number {
    const graph = this.graph as Graph;
    return (this.width * graph.total[node]) / graph.total[zoom];
  }

  // The zoom in which this node has a few pixels: the one there is, or that of its nearest caller.
  zoomToSee(graph: Graph, node: number, zoom: number): number {
    const isVisible = graph.isInside(node, zoom) || graph.isInside(zoom, node);
    if (isVisible && this.widthOf(node, zoom) >= SEEN) {
      return zoom;
    }
    let nearest = node;
    while (nearest > 0 && this.widthOf(node, graph.parent[nearest]) >= SEEN) {
      nearest = graph.parent[nearest];
    }
    return nearest;
  }

  private setHover(node: number, x: number, y: number): void {
    if (node !== this.hovered) {
      this.hovered = node;
      this.placeBoxes();
      this.scroller.style.cursor = node >= 0 ? "pointer" : "default";
    }
    this.events.hover(node, x, y);
  }

  nodeAt(clientX: number, clientY: number): number {
    const graph = this.graph;
    const box = this.canvas.getBoundingClientRect();
    const part = (clientX - box.left) / this.width;
    const level = graph === null ? -1 : this.levelAt(graph, clientY - box.top + this.scroll.top);
    if (graph === null || !(part >= 0 && part < 1) || level < 0 || level >= graph.levels) {
      return -1;
    }
    const x = graph.x[this.zoomed] + part * graph.total[this.zoomed];
    const node = graph.at(level, x);
    return x >= graph.x[node] && x < graph.x[node] + graph.total[node] ? node : -1;
  }

  private resize(): void {
    const width = this.scroller.clientWidth;
    const height = this.scroller.clientHeight;
    const ratio = window.devicePixelRatio || 1;
    const wide = Math.round(width * ratio);
    const high = Math.round(height * ratio);
    if (this.canvas.width === wide && this.canvas.height === high && this.width === width) {
      return;
    }
    this.width = width;
    this.height = height;
    this.canvas.width = wide;
    this.canvas.height = high;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.scroll.setHeight(height);
    this.draw();
    this.events.resized?.(width);
  }

  // Pixels that the zoomed frame has; 0: it is not shown.
  get wide(): number {
    return this.scroller.clientWidth;
  }

  private redrawSoon(): void {
    if (this.frame === 0) {
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.draw();
      });
    }
  }

  draw(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    const ratio = window.devicePixelRatio || 1;
    const context = this.context;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = this.palette.background;
    context.fillRect(0, 0, this.width, this.height);
    if (this.graph === null || this.width === 0 || this.graph.total[this.zoomed] <= 0) {
      this.placeBoxes();
      return;
    }
    const begin = performance.now();
    context.font = FONT;
    context.textBaseline = "middle";
    const scroll = this.scroll.top;
    const ends = [this.levelAt(this.graph, scroll), this.levelAt(this.graph, scroll + this.height)];
    const first = Math.max(0, Math.min(...ends));
    const last = Math.min(this.graph.levels - 1, Math.max(...ends));
    for (let level = first; level <= last; level++) {
      context.globalAlpha = level < this.graph.depth[this.zoomed] ? FADED : 1;
      this.drawLevel(this.graph, level, this.topOf(this.graph, level) - scroll, ratio);
    }
    context.globalAlpha = 1;
    this.placeBoxes();
    this.canvas.dataset.drawMs = (performance.now() - begin).toFixed(1);
  }

  private drawLevel(graph: Graph, level: number, y: number, ratio: number): void {
    walkLevel(graph, level, this.zoomed, this.width, {
      frame: (node, from, to) =>
        graph.kindIndex(node) === CUT ? this.drawHaze(from, to, y, ratio) : this.drawFrame(graph, node, from, to, y, ratio),
      haze: (from, to) => this.drawHaze(from, to, y, ratio),
    });
  }

  private drawHaze(from: number, to: number, y: number, ratio: number): void {
    this.context.fillStyle = this.found === null && this.colouring === null ? this.palette.haze : this.palette.dim;
    this.context.fillRect(from, y, to - from, ROW - 1 / ratio);
  }

  private drawFrame(
    graph: Graph,
    node: number,
    from: number,
    to: number,
    y: number,
    ratio: number,
  ): void {
    const context = this.context;
    const kind = graph.kindIndex(node);
    const name = graph.nameIndex(node);
    const x = Math.round(from * ratio) / ratio;
    const gap = to - from > 3 ? 1 / ratio : 0;
    const width = Math.max(1 / ratio, Math.round(to * ratio) / ratio - x - gap);
    const high = ROW - 1 / ratio;
    const found = this.found === null || this.found[name] === 1;
    context.fillStyle = this.colourOf(graph, node, kind, name);
    context.fillRect(x, y, width, high);
    if (width < 6) {
      return;
    }
    if (kind === INLINE && found) {
      context.fillStyle = this.palette.edge;
      context.fillRect(x, y, 2, high);
    } else if (HATCHED.has(kind)) {
      hatch(context, this.palette.hatch, { x, y, width, height: high });
    }
    if (width < TEXT_MIN) {
      return;
    }
    const own = shown(node === 0 ? this.rootText : graph.answer.names[name]);
    const label = this.text.fit(labelOf(own, KINDS[kind]), own, width - 2 * TEXT_LEFT);
    if (label !== "") {
      context.fillStyle = found ? this.palette.text : this.palette.dimText;
      context.fillText(label, x + TEXT_LEFT, y + ROW / 2);
    }
  }

  private colourOf(graph: Graph, node: number, kind: number, name: number): string {
    let shade = this.shadeOfName[name];
    if (shade === UNKNOWN) {
      shade = this.shadeOfName[name] = hashText(graph.answer.names[name]) % SHADES;
    }
    if (this.found !== null) {
      return this.found[name] === 1 ? this.palette.hit[shade] : this.palette.dim;
    }
    const own = this.colouring?.(graph, node);
    if (own !== undefined) {
      return own;
    }
    const module = graph.moduleIndex(node);
    if (this.byModule && module >= 0 && kind !== KERNEL && !HATCHED.has(kind)) {
      return this.palette.modules[this.slotOfModule[module] * SHADES + shade];
    }
    return this.palette.kinds[kind * SHADES + shade];
  }

  private placeBoxes(): void {
    this.placeBox(this.hoverBox, this.hovered);
    this.placeBox(this.selectBox, this.selected);
  }

  private placeBox(box: HTMLElement, node: number): void {
    const graph = this.graph;
    if (graph === null || node < 0 || node >= graph.count || this.width === 0) {
      box.hidden = true;
      return;
    }
    const scale = this.width / graph.total[this.zoomed];
    const from = (graph.x[node] - graph.x[this.zoomed]) * scale;
    const to = from + graph.total[node] * scale;
    box.hidden = to <= 0 || from >= this.width;
    if (!box.hidden) {
      box.style.left = `${Math.max(0, from)}px`;
      box.style.width = `${Math.max(2, Math.min(to, this.width) - Math.max(0, from))}px`;
      box.style.top = `${this.topOf(graph, graph.depth[node])}px`;
      box.style.height = `${ROW - 1}px`;
    }
  }
}
