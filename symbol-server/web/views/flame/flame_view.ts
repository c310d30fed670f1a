// SPDX-License-Identifier: Apache-2.0
// The flame graph and the table of functions beside it.

import { ask, type FlameAnswer, type SandwichAnswer } from "../../server/api";
import { describe, HoverCard } from "../../graph/details";
import { AfterFrame } from "../../widgets/after_frame";
import { copyAndSay } from "../../widgets/copy";
import { byId } from "../../widgets/dom";
import { FlameGraph } from "../../graph/flamegraph";
import { frameMenu, functionMenu, isFunction, stackText } from "./frame_menu";
import { Graph } from "../../graph/graph";
import { ModulesDialog } from "../modules/modules_dialog";
import { joinPath } from "../../graph/path";
import { PendingNames } from "../../server/pending_names";
import { pageSearch, SearchBox } from "./search_box";
import { explainEmpty } from "../../shell/empty";
import type { Shell, View } from "../../shell/view";
import { exactly, FILTERS, moduleParameters, searchChange, traceIdOf, type State, idleSwitch } from "../../shell/state";
import { showAccounting, showStatus } from "../../shell/status_line";
import { showFilters, showTrail } from "./trail";
import { flameKeys } from "./flame_keys";
import { FlameLegend } from "./flame_legend";
import { FlameOptions } from "./flame_options";
import { FlameSteps, inwards, outwards, solid, type Way } from "./flame_steps";
import { countFound, finerGraph, graphParameters, sandwichParameters, sandwichScope, Screen } from "./flame_questions";
import { FlameTop, type Top } from "./flame_top";
import { FlameZoom } from "./flame_zoom";
import { FrameDetails } from "./frame_details";
import { FrameTree } from "./frame_tree";
import { modulesBySelf } from "./frame_sums";
import { wholeName } from "./function_rows";
import { FunctionTable } from "./function_table";
import { SandwichPanel } from "./sandwich_panel";
import { neighbours, sandwichOf } from "./sandwich_trees";

const CALLER_NODES = "400"; // of the callers' tree, of which the table shows the nearest

export class FlameView implements View {
  readonly element = byId("graph-page");
  readonly asked = [
    ...(["type", "from", "until", "process", "service", "host", "match"] as const),
    ...(["group_by", "value", "max_nodes", "exact", "trace_id", "invert", "recursion", "sandwich", "idle", "collapse", "hide_runtime", ...FILTERS] as const),
  ];
  private answer: FlameAnswer | null = null;
  private readonly screen = new Screen(() => this.shell.refine());
  private chipsOf = ""; // the zoomed frame whose samples the status line counts
  private readonly at: FlameZoom;

  private readonly pendingNames = new PendingNames(() => {
    if (!this.shell.menu.isOpen && !this.shell.isBusy()) {
      this.shell.reload();
    }
  });
  private readonly modules: ModulesDialog;
  private readonly hoverCard = new HoverCard();
  private readonly flame = new FlameGraph(byId("flame"), {
    hover: (node, x, y) => this.hover(node, x, y),
    zoom: (node) => this.zoomTo(node),
    select: (node) => this.select(node),
    menu: (node, x, y) => this.openMenu(this.at.graph as Graph, node, x, y),
    wheel: (step, node) => this.zoomBy(step, node, false),
    resized: (width) => this.screen.grew(width, this.answer === null ? null : this.shell.state),
  });
  private readonly afterPicture = new AfterFrame(() => this.describe());
  private readonly options: FlameOptions;
  private readonly legend: FlameLegend;
  private readonly details: FrameDetails;
  private readonly tree = new FrameTree(this.flame.scroller, "Flame graph: arrow keys move, Enter zooms", "frame");
  private readonly steps = new FlameSteps(this.flame, (node) => this.select(node));
  private readonly search = new SearchBox(
    pageSearch(),
    (text) => this.shell.change(searchChange(text), traceIdOf(text) !== null),
    (names) => this.flame.highlight(names),
    (node) => this.goTo(node),
    (expression, inZoom, signal) => countFound(this.shell.pinned(), expression, inZoom, signal),
  );
  private readonly top = new FlameTop((top, failure) => this.showTop(top, failure));
  private readonly table = new FunctionTable({
    pick: (name) =>
      this.shell.change({ search: this.shell.state.search === exactly(name) ? "" : exactly(name) }),
    point: (name) => this.search.point(name),
    sort: (column) => this.shell.change({ sort: column }, false),
    filter: (text) => this.shell.change({ function_find: text }, false),
    sandwich: (name) => this.shell.change({ sandwich: name }),
    menu: (f, x, y) => {
      this.hoverCard.hide();
      this.shell.menu.open(x, y, f.name, functionMenu(f, this.shell.state, this.menuActions));
    },
    callers: async (f, signal) => {
      const state = { ...this.shell.pinned(), sandwich: wholeName(f), max_nodes: CALLER_NODES };
      const asked = { ...sandwichParameters(state, this.screen.width), module: f.module };
      return neighbours(sandwichOf(await ask<SandwichAnswer>("sandwich", asked, signal)).callers);
    },
  });

  private readonly menuActions = {
    change: (changed: Partial<State>) => this.shell.change(changed),
    copy: (text: string) => void copyAndSay(text, this.shell),
  };

  private readonly sandwich = new SandwichPanel({
    select: (graph, node) => this.tell(graph, node),
    menu: (graph, node, x, y) => this.openMenu(graph, node, x, y),
    leave: () => this.shell.change({ sandwich: "" }),
  });

  readonly keys = flameKeys({
    move: (way) => (this.sandwich.isShown ? this.sandwich.move(way) : this.move(way)),
    enter: () => (this.sandwich.isShown ? this.sandwich.zoomIn() : this.zoomTo(this.at.selected)),
    escape: () => this.escape(),
    all: () => (this.sandwich.isShown ? void this.sandwich.zoomOut() : this.zoomTo(0)),
    zoomBy: (step) => this.zoomKey(step),
    invert: () => this.shell.change({ invert: this.shell.state.invert === "" ? "1" : "", zoom: "" }),
    collapse: () => this.cycle("recursion", ["", "direct", "all"]),
    sandwich: () => this.openSandwich(),
    search: () => this.search.focus(),
    step: (step) => this.search.step(step),
    menu: () => this.openMenuAtSelection(),
    copyName: () => this.copySelected((graph, node) => graph.nameOf(node)),
    copyStack: () => this.copySelected(stackText),
    pin: () => this.details.pin() || this.shell.notice("Select a frame first."),
    filter: () => this.table.focusFilter(),
    cycleView: () => this.cycle("view", ["both", "graph", "table"]),
  });

  constructor(private readonly shell: Shell) {
    this.legend = new FlameLegend(shell, [this.flame, this.sandwich], (names) =>
      this.flame.highlight(names ?? this.search.marked),
    );
    this.options = new FlameOptions(shell.state, (changed) => shell.change(changed));
    this.at = new FlameZoom(
      shell,
      (graph, path, signal) => finerGraph(graph, path, shell.state, this.screen.width, signal),
      (graph) => this.paint(graph),
    );
    this.details = new FrameDetails(shell);
    this.modules = new ModulesDialog(shell, "graph");
    byId("frame-strip").before(this.sandwich.element);
  }

  setTheme(dark: boolean): void {
    this.flame.setTheme(dark);
    this.sandwich.setTheme(dark);
    this.legend.setTheme(dark);
  }

  leave(): void {
    this.at.stop();
    this.top.stop();
    this.hoverCard.hide();
    this.pendingNames.reset();
  }

  adjust(state: State, before: State | null): void {
    this.options.show(state);
    showFilters(state, (changed) => this.shell.change(changed));
    this.legend.adjust(state);
    this.search.set(state.search);
    this.table.sortBy(state.sort);
    this.table.filterBy(state.function_find);
    this.details.follow();
    if (before === null || this.asked.some((key) => before[key] !== state[key])) {
      this.pendingNames.reset();
      return; // load() follows
    }
    if (before.zoom !== state.zoom) {
      this.at.follow();
    }
    const isOtherList = before.sort !== state.sort && state.sort !== "name" && this.table.isPartial;
    if (before.zoom !== state.zoom || isOtherList) {
      this.top.soon(() => this.shell.pinned());
    }
  }

  // What is asked first says which time "now" was: all the rest is about that one.
  async load(state: State, signal: AbortSignal): Promise<void> {
    this.details.renew();
    this.at.stop();
    this.top.stop();
    this.screen.ask(this.flame.wide);
    if (state.sandwich === "") {
      const answer = await ask<FlameAnswer>("flamegraph", graphParameters(state, this.screen.width), signal);
      if (signal.aborted) {
        return;
      }
      this.shell.pin(answer.from, answer.until);
      this.showAnswer(answer, signal);
    } else {
      const answer = await ask<SandwichAnswer>("sandwich", sandwichParameters(state, this.screen.width), signal);
      if (signal.aborted) {
        return;
      }
      this.shell.pin(answer.from, answer.until);
      this.showSandwich(answer);
    }
    await this.top.wait(this.shell.pinned(), signal);
  }

  private showTop(top: Top | null, failure: string): void {
    this.table.show(top?.answer ?? null, top?.of ?? "", this.shell.state.zoom !== "");
    if (top === null) {
      this.shell.notice(`The table did not come: ${failure}`);
      return;
    }
    this.legend.showSums(top.answer);
    this.options.offerModules(modulesBySelf(top.answer).map(({ name }) => name));
    if (this.answer !== null && !this.sandwich.isShown && top.of !== this.chipsOf) {
      this.chipsOf = top.of;
      this.showChips(top.of === "" ? this.answer : { ...this.answer, accounting: { ...top.answer.accounting, cut: 0 } });
    }
  }

  private showChips(answer: FlameAnswer): void {
    const { max_nodes } = this.shell.state;
    showStatus(this.shell.status, answer, {
      unsymbolized: () => this.showNameless(),
      idle: idleSwitch(this.shell.state, (changed) => this.shell.change(changed)),
      moreNodes: max_nodes === "" ? null : () => this.shell.change({ max_nodes: "" }),
    });
  }

  private showAnswer(answer: FlameAnswer, signal: AbortSignal): void {
    const begin = performance.now();
    this.hideSandwich();
    this.showChips(answer);
    this.chipsOf = "";
    if (answer.accounting.samples === 0) {
      this.clear();
      void explainEmpty(this.shell, answer.accounting, signal);
      return;
    }
    void this.pendingNames.look(answer.accounting, moduleParameters(this.shell.pinned()), signal);
    this.answer = answer;
    this.legend.show(answer);
    this.at.show(new Graph(answer));
    document.body.dataset.paintMs = (performance.now() - begin).toFixed(1);
    document.body.dataset.nodes = String(answer.nodes.name.length);
    this.shell.pictured();
    document.body.dataset.shown = String(Number(document.body.dataset.shown ?? 0) + 1);
  }

  private showNameless(): void {
    void this.modules.show(moduleParameters(this.shell.pinned()));
  }

  private showSandwich(answer: SandwichAnswer): void {
    showAccounting(this.shell.status, answer, () => this.showNameless());
    this.hoverCard.hide();
    byId("graph-side").classList.add("in-sandwich");
    this.details.show(null, -1, 0);
    this.legend.show(this.sandwich.show(answer, sandwichScope(this.shell.state)).answer);
  }

  private hideSandwich(): void {
    byId("graph-side").classList.remove("in-sandwich");
    this.sandwich.hide();
  }

  private clear(): void {
    this.answer = null;
    this.at.clear();
    this.flame.clear();
    this.tree.show(null, -1);
    this.search.attach(null, 0);
    this.hoverCard.hide();
    byId("trail").replaceChildren();
    this.details.show(null, -1, 0);
  }

  private paint(graph: Graph): void {
    this.hoverCard.hide();
    this.flame.show(graph, this.at.zoom, this.at.selected);
    this.search.attach(graph, this.at.zoom);
    this.afterPicture.soon();
  }

  // What is read of the picture, not seen in it.
  private describe(): void {
    const { graph, zoom, selected } = this.at;
    if (graph === null || this.sandwich.isShown) {
      return;
    }
    showTrail(graph, zoom, (node) => this.zoomTo(node));
    this.details.show(graph, selected, zoom);
    this.tree.show(graph, selected < 0 ? zoom : selected);
    document.body.dataset.zoom = graph.pathOf(zoom).join(";");
  }

  // remember: Back undoes it.
  private zoomTo(node: number, remember = true): void {
    const { graph } = this.at;
    if (graph === null || node < 0) {
      return;
    }
    this.hoverCard.hide();
    node = solid(graph, node);
    const zoom = joinPath(graph.pathOf(node));
    if (zoom === this.shell.state.zoom) {
      this.select(node === 0 ? -1 : node);
      return;
    }
    this.at.selected = node === 0 ? -1 : node;
    this.shell.change({ zoom }, remember);
    this.flame.reveal(this.at.selected);
    this.say(graph, node === 0 ? -1 : node);
  }

  private zoomOut(): void {
    const { graph, zoom } = this.at;
    this.zoomTo(graph === null ? -1 : outwards(graph, zoom));
  }

  private zoomKey(step: "in" | "out"): void {
    if (!this.sandwich.isShown) {
      this.zoomBy(step, step === "in" ? this.at.selected : -1, true);
    } else if (step === "in") {
      this.sandwich.zoomIn();
    } else {
      this.sandwich.zoomOut();
    }
  }

  // In towards a frame; the selection stays where it is.
  private zoomBy(step: "in" | "out", towards: number, remember: boolean): void {
    const { graph, zoom, selected } = this.at;
    const node = graph === null ? -1 : step === "out" ? outwards(graph, zoom) : inwards(graph, zoom, towards);
    if (graph !== null && node >= 0) {
      this.shell.change({ zoom: joinPath(graph.pathOf(solid(graph, node))) }, remember);
      if (selected < 0 && node > 0) {
        this.select(this.at.zoom);
      }
    }
  }

  private select(node: number): void {
    this.at.selected = node;
    this.flame.select(node);
    this.flame.reveal(node);
    this.tree.show(this.at.graph, node < 0 ? this.at.zoom : node);
    this.tell(this.at.graph, node);
  }

  private tell(graph: Graph | null, node: number): void {
    this.details.show(graph, node, this.sandwich.isShown ? 0 : this.at.zoom);
    this.say(graph, node);
  }

  private say(graph: Graph | null, node: number): void {
    if (graph !== null && node >= 0) {
      this.shell.speak(describe(graph, node));
      document.body.dataset.selected = graph.nameOf(node);
    }
  }

  private move(way: Way): void {
    this.steps.move(this.at.graph, way, this.at.selected, this.at.zoom);
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

  private hover(node: number, x: number, y: number): void {
    if (this.at.graph === null || node < 0 || this.shell.menu.isOpen) {
      this.hoverCard.hide();
    } else {
      this.hoverCard.show(this.at.graph, node, x, y);
    }
  }

  // The selected frame of what is shown.
  private get selection(): { graph: Graph; node: number } | null {
    if (this.sandwich.isShown) {
      return this.sandwich.selection;
    }
    const { graph, selected } = this.at;
    return graph === null || selected < 0 ? null : { graph, node: selected };
  }

  private openMenu(graph: Graph, node: number, x: number, y: number): void {
    this.hoverCard.hide();
    const items = frameMenu(graph, node, this.shell.state, {
      zoom: () => (this.sandwich.isShown ? this.sandwich.zoomIn() : this.zoomTo(node)),
      ...this.menuActions,
    });
    this.shell.menu.open(x, y, graph.nameOf(node), items);
  }

  private openMenuAtSelection(): void {
    const { selection } = this;
    if (selection !== null) {
      const { left, top } = this.sandwich.isShown ? this.sandwich.place() : this.flame.place(selection.node);
      this.openMenu(selection.graph, selection.node, left + 12, top + 20);
    }
  }

  private openSandwich(): void {
    const { selection } = this;
    if (selection !== null && isFunction(selection.graph.kindOf(selection.node))) {
      this.shell.change({ sandwich: selection.graph.wholeNameOf(selection.node) });
    } else {
      this.shell.notice("Select a function first.");
    }
  }

  private escape(): void {
    if (this.details.letGo()) {
      this.selectionAgain();
    } else if (!this.sandwich.isShown) {
      this.zoomOut();
    } else if (!this.sandwich.zoomOut()) {
      this.shell.change({ sandwich: "" });
    }
  }

  private selectionAgain(): void {
    const { selection } = this;
    this.details.show(selection?.graph ?? null, selection?.node ?? -1, this.sandwich.isShown ? 0 : this.at.zoom);
  }

  private copySelected(what: (graph: Graph, node: number) => string): void {
    const { selection } = this;
    if (selection !== null) {
      void copyAndSay(what(selection.graph, selection.node), this.shell);
    }
  }

  private cycle(key: "view" | "recursion", values: string[]): void {
    this.shell.change({ [key]: values[(values.indexOf(this.shell.state[key]) + 1) % values.length] });
  }
}
