// SPDX-License-Identifier: Apache-2.0
// Two selections or times compared: a flame graph of both, and the functions by how much they
// changed.

import { ask, type DiffAnswer, type ModulesAnswer } from "../../server/api";
import { HoverCard } from "../../graph/details";
import { el } from "../../widgets/dom";
import { FlameGraph } from "../../graph/flamegraph";
import { formatCount, formatPercent, formatValue } from "../../text/format";
import type { Graph } from "../../graph/graph";
import { joinPath, splitPath } from "../../graph/path";
import { compilePattern, findFrames, matchNames } from "../../graph/search";
import { explainEmpty } from "../../shell/empty";
import type { KeyBinding, Shell, View } from "../../shell/view";
import { exactly, FILTERS, moduleParameters, searchChange, type State } from "../../shell/state";
import { showAccounting } from "../../shell/status_line";
import { changeColour, Changes, diffGraph, type Change, type Width } from "./diff_graph";
import { diffParameters } from "./diff_parameters";
import { DiffSides } from "./diff_sides";
import { DiffTimes } from "./diff_times";
import { changeText, DiffTable } from "./diff_table";
import { FlameSteps } from "../flame/flame_steps";
import { showFilters } from "../flame/trail";

const TYPING_PAUSE_MS = 150;

export class DiffView implements View {
  readonly element = el("div", { class: "diff", hidden: "" });
  readonly asked = [
    ...(["type", "from", "until", "process", "service", "host", "match", "group_by", "value"] as const),
    ...([...FILTERS, "max_nodes", "base", "base_match", "base_build_id", "norm"] as const),
  ];
  private answer: DiffAnswer | null = null;
  private changes: Changes | null = null;
  private graph: Graph | null = null;
  private zoom = 0;
  private selected = -1;
  private dark = false;
  private typing = 0;

  private readonly sides: DiffSides;
  private readonly times: DiffTimes;
  private readonly warning = el("p", { class: "warning", role: "note", hidden: "" });
  private readonly trail = el("span", { class: "here" });
  private readonly filters = el("div", { class: "filters" });
  private readonly search = el("input", {
    type: "text",
    placeholder: "Search: regular expression  ( / )",
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
  private readonly table: DiffTable;
  private readonly steps: FlameSteps;
  readonly keys: KeyBinding[];

  constructor(private readonly shell: Shell) {
    this.sides = new DiffSides(shell);
    this.times = new DiffTimes(shell);
    this.flame = new FlameGraph(
      this.host,
      {
        hover: (node, x, y) => this.hover(node, x, y),
        zoom: (node) => this.zoomTo(node),
        select: (node) => this.select(node),
        menu: (node) => this.select(node),
      },
      "diff",
    );
    this.table = new DiffTable({
      pick: (name) => shell.change({ search: shell.state.search === exactly(name) ? "" : exactly(name) }),
      point: (name) => this.highlight(name === null ? shell.state.search : exactly(name)),
    });
    this.steps = new FlameSteps(this.flame, (node) => this.select(node));
    this.search.addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = window.setTimeout(() => shell.change(searchChange(this.search.value), false), TYPING_PAUSE_MS);
    });
    const tools = el("div", { class: "tools" }, this.trail, this.filters, this.search, this.found);
    const graph = el("section", { class: "diff-graph", "aria-label": "Flame graph of the change" }, tools, this.host, this.strip, this.legend);
    this.element.append(this.sides.element, this.times.element, this.warning, el("div", { class: "columns" }, graph, this.table.element));
    this.keys = this.bindings();
  }

  private bindings(): KeyBinding[] {
    const step = (way: "parent" | "child" | "left" | "right") => () =>
      this.steps.move(this.graph, way, this.selected, this.zoom);
    return [
      { keys: ["a"], does: "A's time: arrows, Shift and Enter choose it", run: () => this.times.focus("A") },
      { keys: ["b"], does: "B's time, in the same way", run: () => this.times.focus("B") },
      { keys: ["x"], does: "swap A and B", run: () => this.sides.swap() },
      { keys: ["ArrowUp"], does: "caller", yields: true, run: step("parent") },
      { keys: ["ArrowDown"], does: "widest callee", yields: true, run: step("child") },
      { keys: ["ArrowLeft"], does: "left neighbour", yields: true, run: step("left") },
      { keys: ["ArrowRight"], does: "right neighbour", yields: true, run: step("right") },
      { keys: ["Enter"], does: "zoom into the selected frame", yields: true, run: () => this.zoomTo(this.selected) },
      { keys: ["Escape"], does: "zoom out one step", run: () => this.zoomTo(this.graph?.parent[this.zoom] ?? -1) },
      { keys: ["Home", "0"], does: "all of it", run: () => this.zoomTo(0) },
      { keys: ["/"], does: "search", run: () => this.search.focus() },
      { keys: ["f"], does: "filter the functions", run: () => this.table.focusFilter() },
    ];
  }

  setTheme(dark: boolean): void {
    this.dark = dark;
    this.flame.setTheme(dark);
    this.times.setTheme(dark);
    this.showLegend();
  }

  leave(): void {
    this.card.hide();
  }

  adjust(state: State, before: State | null): void {
    this.sides.adjust(state);
    showFilters(state, (changed) => this.shell.change({ ...changed, zoom: "" }), this.filters);
    if (this.search.value !== state.search && document.activeElement !== this.search) {
      this.search.value = state.search;
    }
    if (before === null || this.answer === null) {
      return;
    }
    if (before.width !== state.width) {
      this.draw();
    } else if (before.zoom !== state.zoom) {
      this.showZoom();
    }
    if (before.search !== state.search) {
      this.highlight(state.search);
    }
  }

  async load(state: State, signal: AbortSignal): Promise<void> {
    const answer = await ask<DiffAnswer>("diff", diffParameters(state, Date.now()), signal);
    if (signal.aborted) {
      return;
    }
    this.answer = answer;
    showAccounting(this.shell.status, answer, () => this.shell.change({ page: "modules" }));
    this.sides.showRanges(answer.base, answer);
    this.showWarnings(answer);
    this.table.show(answer);
    void this.times.load(state, answer.base, answer, signal);
    void this.askBuilds(state, signal);
    if (answer.accounting.samples === 0 && answer.base.accounting.samples === 0) {
      this.graph = null;
      this.flame.clear();
      await explainEmpty(this.shell, answer.accounting.lost, signal);
      return;
    }
    this.draw();
  }

  private async askBuilds(state: State, signal: AbortSignal): Promise<void> {
    const answer = await ask<ModulesAnswer>("modules", moduleParameters(state), signal).catch(() => null);
    if (answer !== null && !signal.aborted) {
      this.sides.offerBuilds(answer.modules); // without it those chosen are all that is offered
    }
  }

  private draw(): void {
    const answer = this.answer as DiffAnswer;
    const changes = new Changes(answer);
    const graph = diffGraph(answer, this.shell.state.width as Width);
    this.changes = changes;
    this.graph = graph;
    this.selected = -1;
    this.flame.colourBy((of, node) => changeColour(changes.of(of.rowOf(node)), this.dark));
    this.showZoom();
    this.highlight(this.shell.state.search);
    document.body.dataset.nodes = String(graph.count);
  }

  private showZoom(): void {
    const graph = this.graph as Graph;
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

  private changeOf(node: number): Change | null {
    return this.graph === null || this.changes === null ? null : this.changes.of(this.graph.rowOf(node));
  }

  // Before, after and how much of the difference chance explains.
  private words(node: number): [string, string][] {
    const { answer, graph } = this;
    const change = this.changeOf(node);
    if (answer === null || graph === null || change === null) {
      return [];
    }
    const sums = { before: answer.base.accounting.value * answer.scale, after: answer.accounting.value };
    const side = (value: number, sum: number) =>
      `${formatValue(Math.round(value), answer.unit)} · ${formatPercent(value, sum)} of its side`;
    const relative = change.before > 0 ? change.after / change.before - 1 : null;
    return [
      ["A before", side(change.before, sums.before)],
      ["B after", side(change.after, sums.after)],
      ["change", changeText(relative) + (change.isNoise ? " — within sampling noise" : "")],
    ];
  }

  private hover(node: number, x: number, y: number): void {
    if (this.graph === null || node < 0) {
      this.card.hide();
    } else {
      this.card.show(this.graph, node, x, y, this.words(node));
    }
  }

  private showStrip(node: number): void {
    const rows = this.words(node).flatMap(([term, text]) => [el("span", { class: "quiet" }, term), el("span", {}, text)]);
    this.strip.replaceChildren(el("bdi", { class: "frame-name" }, this.graph?.nameOf(node) ?? ""), ...rows);
  }

  private showWarnings(answer: DiffAnswer): void {
    const lines = answer.warnings.slice();
    if (answer.noise.from === "none") {
      lines.push("Noise is that of independent samples: the ranges are too short to see how functions vary by themselves.");
    }
    this.warning.textContent = lines.join(" ");
    this.warning.hidden = lines.length === 0;
  }

  private showLegend(): void {
    const entry = (ratio: number, text: string) => {
      const swatch = el("span", { class: "swatch" });
      swatch.style.background = changeColour({ before: 0, after: 0, ratio, isNoise: ratio === 0 }, this.dark);
      return el("li", {}, swatch, text);
    };
    this.legend.replaceChildren(
      entry(-1, "gone in B"),
      entry(-0.3, "less in B"),
      entry(0, "the same, or within sampling noise"),
      entry(0.3, "more in B"),
      entry(1, "new in B"),
    );
  }
}
