// SPDX-License-Identifier: Apache-2.0
// Two selections or times compared: a flame graph of both, and processes and functions by how much
// they changed.

import { ask, type DiffAnswer, type DiffFunction, type ModulesAnswer } from "../../server/api";
import { copyAndSay } from "../../widgets/copy";
import { el } from "../../widgets/dom";
import { formatPercent, formatValue } from "../../text/format";
import type { Graph } from "../../graph/graph";
import { explainEmpty } from "../../shell/empty";
import type { KeyBinding, Shell, View } from "../../shell/view";
import { exactly, FILTERS, moduleParameters, narrowBase, narrowTo, type State } from "../../shell/state";
import { showAccounting } from "../../shell/status_line";
import { changeColour, Changes, diffGraph, type Width } from "./diff_graph";
import { diffParameters } from "./diff_parameters";
import { DiffSides } from "./diff_sides";
import { DiffTimes } from "./diff_times";
import { DiffTable } from "./diff_table";
import { changeText, recordedText } from "./diff_words";
import { ColouredGraph } from "../coloured_graph";
import { linkTo } from "../links";
import { functionMenu } from "../flame/frame_menu";
import { showFilters } from "../flame/trail";

const LEGEND: [ratio: number, text: string][] = [
  [-1, "gone in B"],
  [-0.3, "less in B"],
  [0, "less than 5 %, or within sampling noise"],
  [0.3, "more in B"],
  [1, "new in B"],
];

export class DiffView implements View {
  readonly element = el("div", { class: "diff", hidden: "" });
  readonly asked = [
    ...(["type", "from", "until", "process", "service", "host", "match", "group_by", "value"] as const),
    ...([...FILTERS, "hide_runtime", "collapse", "max_nodes", "base", "base_match", "base_build_id", "norm"] as const),
  ];
  private answer: DiffAnswer | null = null;
  private changes: Changes | null = null;
  private readonly sides: DiffSides;
  private readonly times: DiffTimes;
  private readonly filters = el("div", { class: "filters" });
  private readonly graph: ColouredGraph;
  private readonly table: DiffTable;
  readonly keys: KeyBinding[];

  constructor(private readonly shell: Shell) {
    this.sides = new DiffSides(shell);
    this.times = new DiffTimes(shell);
    this.graph = new ColouredGraph(shell, "Flame graph of the change", "diff", {
      fill: (graph, node, dark) =>
        this.changes === null ? undefined : changeColour(this.changes.of(graph.rowOf(node)), dark),
      words: (graph, node) => this.words(graph, node),
      legend: (dark) => LEGEND.map(([ratio, text]) => [changeColour({ before: 0, after: 0, ratio, recorded: ratio !== 0 }, dark), text]),
    });
    this.table = new DiffTable({
      pick: (name) => shell.change({ search: shell.state.search === exactly(name) ? "" : exactly(name) }),
      point: (name) => this.graph.point(name),
      menu: (f, x, y) => this.openMenu(f, x, y),
      linkToProcess: (name) => this.linkToProcess(name),
    });
    this.graph.tools.insertBefore(this.filters, this.graph.tools.lastChild);
    this.element.append(
      this.sides.element,
      this.times.element,
      el("div", { class: "columns" }, this.graph.element, this.table.element),
    );
    this.keys = [
      { keys: ["a"], does: "A's time: arrows, Shift and Enter choose it", run: () => this.times.focus("A") },
      { keys: ["b"], does: "B's time, in the same way", run: () => this.times.focus("B") },
      { keys: ["x"], does: "swap A and B", run: () => this.sides.swap() },
      ...this.graph.keys,
      { keys: ["f"], does: "filter the functions", run: () => this.table.focusFilter() },
    ];
  }

  setTheme(dark: boolean): void {
    this.graph.setTheme(dark);
    this.times.setTheme(dark);
  }

  leave(): void {
    this.graph.hide();
  }

  adjust(state: State, before: State | null): void {
    this.sides.adjust(state);
    showFilters(state, (changed) => this.shell.change({ ...changed, zoom: "" }), this.filters);
    if (before !== null && before.width !== state.width) {
      this.draw();
    }
    this.graph.adjust(state, before);
  }

  async load(state: State, signal: AbortSignal): Promise<void> {
    const answer = await ask<DiffAnswer>("diff", diffParameters(state, Date.now()), signal).catch((failure: Error) => {
      this.sides.refuse(signal.aborted ? "" : failure.message);
      throw failure;
    });
    if (signal.aborted) {
      return;
    }
    this.sides.refuse("");
    this.answer = answer;
    showAccounting(this.shell.status, answer, () => this.shell.change({ page: "modules" }));
    this.sides.showRanges(answer.base, answer);
    this.table.show(answer);
    void this.times.load(state, answer.base, answer, signal);
    void this.askBuilds(state, signal);
    if (answer.accounting.samples === 0 && answer.base.accounting.samples === 0) {
      this.answer = this.changes = null;
      this.graph.show(null);
      await explainEmpty(this.shell, answer.accounting, signal);
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
    if (this.answer !== null) {
      this.changes = new Changes(this.answer);
      this.graph.show(diffGraph(this.answer, this.shell.state.width as Width));
    }
  }

  // Both sides of it alone.
  // As on frames and on the function table's rows.
  private openMenu({ name, module, build_id, file, line }: DiffFunction, x: number, y: number): void {
    const { shell } = this;
    const place = file === "" || line === 0 ? file : `${file}:${line}`;
    const items = functionMenu({ name, module, build_id, place, stack: "", recurs: false }, shell.state, {
      change: (changed) => shell.change(changed),
      copy: (text) => void copyAndSay(text, shell),
    });
    shell.menu.open(x, y, name, items);
  }

  private linkToProcess(name: string): HTMLAnchorElement {
    const changed = { ...narrowBase(this.shell.state, { process: name }), ...narrowTo(this.shell.state, { process: name }), zoom: "" };
    return linkTo(this.shell, changed, { title: `Compare ${name} alone` }, el("bdi", {}, name === "" ? "(no process)" : name));
  }

  // Before, after, and whether sampling explains the difference.
  private words(graph: Graph, node: number): [string, string][] {
    const { answer, changes } = this;
    if (answer === null || changes === null) {
      return [];
    }
    const change = changes.of(graph.rowOf(node));
    const sums = { before: answer.base.accounting.value * answer.scale, after: answer.accounting.value };
    const side = (value: number, sum: number) =>
      `${formatValue(Math.round(value), answer.unit)} · ${formatPercent(value, sum)} of its side`;
    const relative = change.before > 0 ? change.after / change.before - 1 : null;
    return [
      ["A before", side(change.before, sums.before)],
      ["B after", side(change.after, sums.after)],
      ["change", changeText(relative) + (change.recorded ? "" : ` — ${recordedText(false, relative)}`)],
    ];
  }
}
