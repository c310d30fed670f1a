// SPDX-License-Identifier: Apache-2.0
// The page: state in the address → two questions to the server → flame graph, table, accounting.

import { ask, type FlameAnswer, type TopAnswer } from "./api";
import { Controls } from "./controls";
import { describe, HoverCard, showStrip } from "./details";
import { byId, copyText } from "./dom";
import { FlameGraph } from "./flamegraph";
import { frameMenu } from "./frame_menu";
import { graft } from "./graft";
import { Graph } from "./graph";
import { listenToKeys } from "./keyboard";
import { showLegend } from "./legend";
import { Menu } from "./menu";
import { Messages } from "./messages";
import { showModules } from "./modules_dialog";
import { joinPath, splitPath } from "./path";
import { PendingNames } from "./pending_names";
import { SearchBox } from "./search_box";
import {
  exactly,
  flameParameters,
  moduleParameters,
  readState,
  topParameters,
  writeState,
  type State,
} from "./state";
import { showStatus } from "./status_line";
import { watchTheme } from "./theme";
import { TopTable } from "./top_table";
import { showFilters, showTrail } from "./trail";

// Changing these asks the server again; the others only change what is drawn.
const ASKED: (keyof State)[] = [
  ...(["type", "from", "until", "process", "service", "host", "match"] as const),
  ...(["group_by", "value", "focus", "ignore", "hide", "max_nodes"] as const),
];
const MAX_NODES = 1_000_000; // what the API takes
const NOTICE_MS = 2500;

class Page {
  private state = readState(location.hash);
  private base: Graph | null = null; // the answer about everything
  private graph: Graph | null = null; // what is drawn: base, or base with a finer subtree
  private detailDepth = 0; // of the finer subtree's root, when graph is not base
  private zoom = 0;
  private selected = -1;
  private shownSince = 0; // when the shown answer came; 0: none
  private asking = new AbortController();
  private askingDetail = new AbortController();
  private refreshTimer = 0;
  private noticeTimer = 0;
  private busy = false;

  private readonly pendingNames = new PendingNames(() => {
    if (!this.menu.isOpen && !this.busy) {
      this.load();
    }
  });
  private readonly hoverCard = new HoverCard();
  private readonly menu = new Menu();
  private readonly flame = new FlameGraph({
    hover: (node, x, y) => this.hover(node, x, y),
    zoom: (node) => this.zoomTo(node),
    select: (node) => this.select(node),
    menu: (node, x, y) => this.openMenu(node, x, y),
  });
  private readonly search = new SearchBox(
    (text) => this.change({ search: text }, false),
    (names) => this.flame.highlight(names),
    (node) => this.goTo(node),
  );
  private readonly table = new TopTable({
    pick: (name) =>
      this.change({ search: this.state.search === exactly(name) ? "" : exactly(name) }),
    point: (name) => this.search.point(name),
    sort: (column) => this.change({ sort: column }, false),
  });
  private readonly controls = new Controls(
    (changed) => this.change(changed),
    () => this.load(),
  );
  private readonly messages = new Messages({
    retry: () => this.load(),
    clearFilters: () =>
      this.change({
        process: "",
        service: "",
        host: "",
        match: "",
        focus: "",
        ignore: "",
        hide: "",
      }),
    lastDay: () => this.change({ from: "now-24h", until: "now" }),
  });

  start(): void {
    watchTheme((dark) => {
      this.flame.setTheme(dark);
      showLegend(dark);
    });
    listenToKeys({
      move: (direction) => this.move(direction),
      zoomSelected: () => this.zoomTo(this.selected),
      zoomOut: () => this.zoomOut(),
      zoomAll: () => this.zoomTo(0),
      openMenu: () => this.openMenuAtSelection(),
      copyName: () => this.copyName(),
      focusSearch: () => this.search.focus(),
      nextMatch: (step) => this.search.step(step),
      refresh: () => this.load(),
      cycleView: () => this.cycleView(),
      help: () => byId<HTMLDialogElement>("help-dialog").showModal(),
    });
    byId("help-open").addEventListener("click", () =>
      byId<HTMLDialogElement>("help-dialog").showModal(),
    );
    window.addEventListener("popstate", () => this.adopt(readState(location.hash), false));
    showStrip(null, -1);
    this.adopt(this.state, true);
  }

  // A choice of the user: into the address, then on the screen. remember: Back undoes it.
  private change(changed: Partial<State>, remember = true): void {
    const next = { ...this.state, ...changed };
    const address = location.pathname + location.search + writeState(next);
    if (remember) {
      history.pushState(null, "", address);
    } else {
      history.replaceState(null, "", address);
    }
    this.adopt(next, false);
  }

  private adopt(next: State, always: boolean): void {
    const before = this.state;
    this.state = next;
    this.controls.show(next);
    document.title = titleOf(next);
    showFilters(next, (changed) => this.change(changed));
    this.flame.colourByModule(next.colour === "module");
    this.search.set(next.search);
    this.table.sortBy(next.sort);
    this.scheduleRefresh();
    const asks = ASKED.some((key) => before[key] !== next[key]);
    if (asks || always) {
      this.pendingNames.reset();
      this.load();
      return;
    }
    if (before.zoom !== next.zoom) {
      this.showZoom();
    }
    if (before.sort !== next.sort && next.sort !== "name" && this.table.isPartial) {
      const { signal } = this.asking;
      void this.showTop(ask("top", topParameters(next), signal), signal);
    }
  }

  private scheduleRefresh(): void {
    clearInterval(this.refreshTimer);
    const seconds = Number(this.state.refresh);
    if (seconds >= 1) {
      this.refreshTimer = window.setInterval(() => {
        if (!document.hidden && !this.busy && !this.menu.isOpen) {
          this.load();
        }
      }, seconds * 1000);
    }
  }

  private load(): void {
    this.asking.abort();
    this.askingDetail.abort();
    this.asking = new AbortController();
    const signal = this.asking.signal;
    this.messages.loading(this.graph !== null);
    this.busy = true;
    void this.controls.refreshChoices(signal);
    void this.loadPicture(signal).finally(() => {
      this.busy = signal.aborted ? this.busy : false;
    });
  }

  private async loadPicture(signal: AbortSignal): Promise<void> {
    try {
      const top = ask<TopAnswer>("top", topParameters(this.state), signal);
      top.catch(() => undefined); // said below, unless the graph fails too
      this.showAnswer(await ask("flamegraph", flameParameters(this.state), signal), signal);
      await this.showTop(top, signal);
    } catch (failure) {
      if (!signal.aborted) {
        this.messages.error((failure as Error).message, this.shownSince);
      }
    }
  }

  private async showTop(coming: Promise<TopAnswer>, signal: AbortSignal): Promise<void> {
    try {
      this.table.show(await coming);
    } catch (failure) {
      if (!signal.aborted) {
        this.table.show(null);
        this.notice(`The table did not come: ${(failure as Error).message}`);
      }
    }
  }

  private showAnswer(answer: FlameAnswer, signal: AbortSignal): void {
    const begin = performance.now();
    const base = new Graph(answer);
    showStatus(answer, {
      unsymbolized: () => void showModules(moduleParameters(this.state)),
      moreNodes: () =>
        this.change({ max_nodes: String(Math.min(MAX_NODES, Number(this.state.max_nodes) * 10)) }),
    });
    this.base = base;
    this.shownSince = Date.now();
    if (answer.accounting.samples === 0) {
      this.clear();
      void this.messages.empty(answer, this.state, signal);
      return;
    }
    this.messages.hide();
    void this.pendingNames.look(answer.accounting, moduleParameters(this.state), signal);
    const selectedPath =
      this.graph !== null && this.selected > 0 ? this.graph.pathOf(this.selected) : null;
    this.setGraph(base, selectedPath);
    this.showZoom();
    document.body.dataset.paintMs = (performance.now() - begin).toFixed(1);
    document.body.dataset.nodes = String(base.count);
    document.body.dataset.shown = String(Number(document.body.dataset.shown ?? 0) + 1);
  }

  private clear(): void {
    this.graph = null;
    this.selected = -1;
    this.zoom = 0;
    this.flame.clear();
    this.search.attach(null, 0);
    this.hoverCard.hide();
    byId("trail").replaceChildren();
    showStrip(null, -1);
  }

  // Another graph under the same eyes: the selection stays at its path.
  private setGraph(graph: Graph, selectedPath: string[] | null): void {
    this.graph = graph;
    this.selected = selectedPath === null ? -1 : graph.find(selectedPath);
    this.hoverCard.hide();
  }

  // Shows the zoom of the state; a path that is gone is followed as far as it goes.
  private showZoom(): void {
    const base = this.base;
    const graph = this.graph;
    if (base === null || graph === null) {
      return;
    }
    const begin = performance.now();
    this.askingDetail.abort();
    const path = splitPath(this.state.zoom);
    let node = graph.find(path);
    if (node < 0 || (graph !== base && !this.isWholeAt(graph, path))) {
      const selectedPath = this.selected > 0 ? graph.pathOf(this.selected) : null;
      this.setGraph(base, selectedPath);
      node = base.find(path);
      while (node < 0) {
        path.pop();
        node = base.find(path);
      }
    }
    this.zoom = node;
    this.paint();
    document.body.dataset.zoomMs = (performance.now() - begin).toFixed(1);
    if (node > 0 && this.graph !== null && this.graph.holdsCut(node)) {
      void this.loadDetail(this.graph.pathOf(node));
    }
  }

  // A graph with a finer subtree is complete only inside it: there the way down has one child each.
  private isWholeAt(graph: Graph, path: string[]): boolean {
    return path.length >= this.detailDepth && graph.find(path) >= 0;
  }

  private async loadDetail(path: string[]): Promise<void> {
    const base = this.base as Graph;
    this.askingDetail = new AbortController();
    const signal = this.askingDetail.signal;
    const { from, until } = base.answer;
    document.body.classList.add("loading");
    try {
      const answer = await ask<FlameAnswer>(
        "flamegraph",
        {
          ...flameParameters(this.state),
          from: String(from),
          until: String(until),
          root: joinPath(path),
        },
        signal,
      );
      const node = base.find(path);
      const joined = node < 0 ? null : graft(base, node, answer);
      if (joined !== null && !signal.aborted) {
        const old = this.graph as Graph;
        this.detailDepth = path.length;
        this.setGraph(new Graph(joined), this.selected > 0 ? old.pathOf(this.selected) : null);
        this.showDetail(path);
      }
    } catch (failure) {
      if (!signal.aborted) {
        this.notice(`The finer picture did not come: ${(failure as Error).message}`);
      }
    } finally {
      if (!signal.aborted) {
        document.body.classList.remove("loading");
      }
    }
  }

  // The finer subtree has come. The address may lead further down, to where only it reaches.
  private showDetail(path: string[]): void {
    const graph = this.graph as Graph;
    const wanted = splitPath(this.state.zoom);
    const deepest = graph.find(wanted);
    this.zoom = deepest >= 0 ? deepest : Math.max(0, graph.find(path));
    this.paint();
    document.body.dataset.detail = String(graph.count);
    if (wanted.length > path.length && deepest >= 0 && graph.holdsCut(deepest)) {
      void this.loadDetail(wanted);
    }
  }

  private paint(): void {
    const graph = this.graph as Graph;
    this.flame.show(graph, this.zoom, this.selected);
    this.search.attach(graph, this.zoom);
    showTrail(graph, this.zoom, (node) => this.zoomTo(node));
    showStrip(graph, this.selected);
    document.body.dataset.zoom = graph.pathOf(this.zoom).join(";");
  }

  private zoomTo(node: number): void {
    const graph = this.graph;
    if (graph === null || node < 0) {
      return;
    }
    this.hoverCard.hide();
    this.select(node === 0 ? -1 : node);
    const zoom = joinPath(graph.pathOf(node));
    if (zoom !== this.state.zoom) {
      this.change({ zoom });
    }
  }

  // To the nearest wider caller, and on while that shows the same: up to the first of equal width.
  private zoomOut(): void {
    const graph = this.graph;
    if (graph === null || this.zoom === 0) {
      return;
    }
    let node = graph.parent[this.zoom];
    while (node > 0 && graph.total[node] <= graph.total[this.zoom]) {
      node = graph.parent[node];
    }
    while (node > 0 && graph.total[graph.parent[node]] <= graph.total[node]) {
      node = graph.parent[node];
    }
    this.zoomTo(node);
  }

  private select(node: number): void {
    this.selected = node;
    this.flame.select(node);
    this.flame.reveal(node);
    showStrip(this.graph, node);
    if (this.graph !== null && node >= 0) {
      byId("spoken").textContent = describe(this.graph, node);
      document.body.dataset.selected = this.graph.nameOf(node);
    }
  }

  private move(direction: "parent" | "child" | "left" | "right"): void {
    const graph = this.graph;
    if (graph === null) {
      return;
    }
    const at = this.selected < 0 ? this.zoom : this.selected;
    let to = at;
    if (this.selected < 0) {
      to = this.zoom;
    } else if (direction === "parent") {
      to = Math.max(0, graph.parent[at]);
    } else if (direction === "child") {
      to = widestChild(graph, at);
    } else {
      to = at + (direction === "left" ? -1 : 1);
      const isBeside =
        to > 0 &&
        to < graph.count &&
        graph.depth[to] === graph.depth[at] &&
        (graph.isInside(to, this.zoom) || graph.depth[at] <= graph.depth[this.zoom]);
      to = isBeside && this.flame.widthOf(to) >= 1 ? to : at;
    }
    this.select(to);
  }

  // To a match of the search: zoomed so that it has a few pixels.
  private goTo(node: number): void {
    const graph = this.graph as Graph;
    const visible = graph.isInside(node, this.zoom) || graph.isInside(this.zoom, node);
    if (!visible || this.flame.widthOf(node) < 4) {
      let zoom = node;
      while (zoom > 0 && this.flame.widthOf(node, graph.parent[zoom]) >= 4) {
        zoom = graph.parent[zoom];
      }
      this.change({ zoom: joinPath(graph.pathOf(zoom)) }, false);
    }
    this.select(node);
  }

  private hover(node: number, x: number, y: number): void {
    if (this.graph === null || node < 0 || this.menu.isOpen) {
      this.hoverCard.hide();
    } else {
      this.hoverCard.show(this.graph, node, x, y);
    }
  }

  private openMenu(node: number, x: number, y: number): void {
    this.hoverCard.hide();
    const graph = this.graph as Graph;
    this.menu.open(
      x,
      y,
      graph.nameOf(node),
      frameMenu(graph, node, this.state, {
        zoom: () => this.zoomTo(node),
        change: (changed) => this.change(changed),
        copy: (text) => void this.copy(text),
      }),
    );
  }

  private openMenuAtSelection(): void {
    if (this.graph !== null && this.selected >= 0) {
      const { left, top } = this.flame.place(this.selected);
      this.openMenu(this.selected, left + 12, top + 20);
    }
  }

  private copyName(): void {
    if (this.graph !== null && this.selected >= 0) {
      void this.copy(this.graph.nameOf(this.selected));
    }
  }

  private async copy(text: string): Promise<void> {
    this.notice((await copyText(text)) ? "Copied." : "This browser does not let the page copy.");
  }

  private cycleView(): void {
    const views = ["both", "graph", "table"];
    this.change({ view: views[(views.indexOf(this.state.view) + 1) % views.length] });
  }

  private notice(text: string): void {
    const box = byId("notice");
    box.textContent = text;
    box.hidden = false;
    clearTimeout(this.noticeTimer);
    this.noticeTimer = window.setTimeout(() => (box.hidden = true), NOTICE_MS);
  }
}

function titleOf(state: State): string {
  const chosen = [state.process, state.service, state.host].filter((text) => text !== "");
  return [...chosen, state.type, "farflame"].join(" · ");
}

function widestChild(graph: Graph, node: number): number {
  const first = graph.firstChild[node];
  let widest = node;
  for (let child = first; child < first + graph.childCount[node]; child++) {
    if (widest === node || graph.total[child] > graph.total[widest]) {
      widest = child;
    }
  }
  return widest;
}

new Page().start();
