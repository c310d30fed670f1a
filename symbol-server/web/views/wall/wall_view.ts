// SPDX-License-Identifier: Apache-2.0
// The wall clock: what the same threads did on the CPU and where they waited, in one graph and side
// by side; who woke whom, what is blocked now, and the longest requests.

import {
  ask,
  type FlameAnswer,
  type Parameters,
  type TimelineAnswer,
  type TracesAnswer,
  type TypesAnswer,
} from "../../server/api";
import { el } from "../../widgets/dom";
import { GroupMenu } from "../../widgets/group_menu";
import { formatCpus, formatPercent, formatSampled, formatValue } from "../../text/format";
import { Graph } from "../../graph/graph";
import { joinPath } from "../../graph/path";
import { explainEmpty } from "../../shell/empty";
import type { KeyBinding, Shell, View } from "../../shell/view";
import type { MenuItem } from "../../widgets/menu";
import { FILTERS, flameParameters, idleSwitch, moduleParameters, sampleParameters, type State } from "../../shell/state";
import { showStatus } from "../../shell/status_line";
import { countFound, nodeParameters, Screen } from "../flame/flame_questions";
import type { Counting } from "../flame/search_box";
import { showFilters } from "../flame/trail";
import { ColouredGraph } from "../coloured_graph";
import { reportedMs } from "../reported";
import { wallColour } from "./wall_colours";
import { graftJoined, joinTrees, partsOf, widthsOf, type Joined } from "./wall_join";
import { blocked, requests, wakes, WAKER_THREAD, WallList } from "./wall_lists";
import { joinTraces, lastMinute } from "./wall_rows";
import { WallTable } from "./wall_table";

const GROUPS = "200"; // rows asked for; the server sums up the rest
const WATCHING = "--profile on-cpu,off-cpu,still-blocked";
const SHORT = "30";
const TRACES = 20;
const TRACES_ASKED = "200"; // of each type, so that those with much of both are found
const COLUMNS = ["on-cpu", "off-cpu", "run-queue", "still-blocked"];
const MEMORY = ["mem-inuse", "mem-alloc", "page-fault", "hbm-inuse", "hbm-alloc"];
const GROUPINGS = ["process,thread", "process,wait", "host,process", ""];
// Most threads wait most of the time: then widths of the time on the CPU alone show that too.
const WIDTHS = [
  ["both", "both"],
  ["on", "on the CPU"],
  ["off", "waiting"],
];
const TREES = ["on-cpu", "off-cpu"];
const NO_WAITS =
  "Waits are not profiled here. Agents take them with --profile on-cpu,off-cpu,waker,run-queue,still-blocked.";

// Of which part frames are as wide; −1: of both.
function partOf(state: State): number {
  return WIDTHS.findIndex(([width]) => width === state.wall) - 1;
}

export class WallView implements View {
  readonly element = el("div", { class: "wall", hidden: "" });
  readonly asked = [
    ...(["from", "until", "process", "service", "host", "match", "trace_id", "group_by"] as const),
    ...([...FILTERS, "hide_runtime", "idle", "collapse", "max_nodes", "exact"] as const),
  ];
  private readonly grouping: GroupMenu;
  private readonly widths = el("select", { "aria-label": "Frames are as wide as" });
  private readonly filters = el("div", { class: "filters" });
  private readonly note = el("p", { class: "quiet note", role: "note", hidden: "" });
  private readonly graph: ColouredGraph;
  private readonly table: WallTable;
  private readonly wakes = new WallList("Who woke whom");
  private readonly blocked = new WallList("Blocked now");
  private readonly requests = new WallList("Longest requests");
  private joined: Joined | null = null;
  private finerParts: { path: string; joined: Joined } | null = null; // of that answer
  private readonly screen: Screen;
  readonly keys: KeyBinding[];

  constructor(private readonly shell: Shell) {
    this.graph = new ColouredGraph(shell, "On the CPU and waiting", "wall", {
      fill: (graph, node, dark) => wallColour(this.waitedPart(graph, node), dark),
      words: (graph, node) => this.words(graph, node),
      legend: (dark) => [
        [wallColour(0, dark), "on the CPU"],
        [wallColour(0.4, dark), "both, more on the CPU"],
        [wallColour(0.6, dark), "both, more waiting"],
        [wallColour(1, dark), "waiting"],
      ],
      menu: (graph, node) => [
        this.opening("Its time on the CPU as a flame graph", "on-cpu", graph, node),
        this.opening("Its waits as a flame graph", "off-cpu", graph, node),
      ],
      finer: (graph, path, signal) => this.finer(graph, path, signal),
      count: (expression, inZoom, signal) => this.count(expression, inZoom, signal),
      resized: (width) => this.screen.grew(width, this.joined === null ? null : shell.state),
    });
    this.screen = new Screen(() => shell.refine());
    this.table = new WallTable(shell);
    this.grouping = new GroupMenu(el("select", { "aria-label": "Group by" }), GROUPINGS, (group_by) => shell.change({ group_by, zoom: "" }));
    this.widths.append(...WIDTHS.map(([value, text]) => el("option", { value }, text)));
    this.widths.addEventListener("change", () => shell.change({ wall: this.widths.value }));
    this.graph.tools.prepend(
      el("label", { class: "pick" }, "group by ", this.grouping.box),
      el("label", { class: "pick" }, "widths ", this.widths),
      this.filters,
    );
    this.graph.element.prepend(this.note);
    const lists = el("div", { class: "lists" }, this.wakes.element, this.blocked.element, this.requests.element);
    this.element.append(this.graph.element, el("div", { class: "side" }, this.table.element, lists));
    this.keys = [
      ...this.graph.keys,
      { keys: ["f"], does: "filter the groups", run: () => this.table.focusFilter() },
      { keys: ["w"], does: "widths of both, of the time on the CPU, of waits", run: () => this.nextWidth() },
      { keys: ["b"], does: "group by process, thread, host …", run: () => this.nextGrouping() },
    ];
  }

  setTheme(dark: boolean): void {
    this.graph.setTheme(dark);
  }

  leave(): void {
    this.graph.hide();
  }

  adjust(state: State, before: State | null): void {
    this.grouping.show(state.group_by);
    this.widths.value = WIDTHS.some(([value]) => value === state.wall) ? state.wall : "both";
    showFilters(state, (changed) => this.shell.change(changed), this.filters);
    if (before !== null && before.wall !== state.wall) {
      this.draw(state);
    }
    this.graph.adjust(state, before);
    if (before !== null && before.type !== state.type) {
      this.table.adjust();
    }
  }

  async load(state: State, signal: AbortSignal): Promise<void> {
    const { from, until, match } = moduleParameters(state);
    const range: Parameters = { from, until, ...(match === undefined ? {} : { match }) };
    this.screen.ask(this.graph.wide);
    const [{ types }, on, off] = await Promise.all([
      ask<TypesAnswer>("types", range, signal),
      ...TREES.map((type) => ask<FlameAnswer>("flamegraph", this.treeParameters(state, type), signal)),
    ] as const);
    if (signal.aborted) {
      return;
    }
    this.finerParts = null;
    this.shell.pin(on.from, on.until);
    const there = types.map(({ name }) => name);
    this.note.textContent = there.includes("off-cpu") ? "" : NO_WAITS;
    this.note.hidden = there.includes("off-cpu");
    this.showSums(on, off);
    if (on.accounting.samples + off.accounting.samples === 0) {
      this.joined = null;
      this.graph.show(null);
      await explainEmpty(this.shell, on.accounting, signal);
      return;
    }
    this.joined = joinTrees([on, off]);
    this.draw(state);
    void this.showTable(state, there, signal);
    void this.showWakes(state, there, signal);
    void this.showBlocked(state, there, on, signal);
    void this.showRequests(state, there, signal);
  }

  private draw(state: State): void {
    if (this.joined !== null) {
      this.graph.show(new Graph(widthsOf(this.joined, partOf(state))));
    }
  }

  // What the screen can show of one type.
  private treeParameters(state: State, type: string): Parameters {
    return { ...flameParameters({ ...state, type, value: "value" }), ...nodeParameters(state, this.screen.width), format: "columns", errors: "1" };
  }

  // Both types below a frame. Other widths of the same frames ask nobody.
  private async finer(graph: Graph, path: string[], signal: AbortSignal): Promise<Graph | null> {
    const { from, until } = graph.answer;
    const root = joinPath(path);
    const state = { ...this.shell.state, from: String(from), until: String(until) };
    if (this.finerParts?.path !== root) {
      const answers = await Promise.all(
        TREES.map((type) => ask<FlameAnswer>("flamegraph", { ...this.treeParameters(state, type), root }, signal)),
      );
      this.finerParts = signal.aborted ? this.finerParts : { path: root, joined: joinTrees(answers) };
    }
    return this.finerParts === null ? null : graftJoined(graph, graph.find(path), this.finerParts.joined, partOf(state));
  }

  // Of what widths are of.
  private async count(expression: string, inZoom: boolean, signal: AbortSignal): ReturnType<Counting> {
    const state: State = { ...this.shell.pinned(), value: "value", invert: "", recursion: "" };
    const part = partOf(state);
    const types = part < 0 ? TREES : [TREES[part]];
    const found = await Promise.all(types.map((type) => countFound({ ...state, type }, expression, inZoom, signal)));
    const sum = (key: "value" | "whole") => found.reduce((all, one) => all + (one?.[key] ?? 0), 0);
    return found.includes(null) ? null : { value: sum("value"), whole: sum("whole") };
  }

  // What each of the two is made of, and lacks.
  private showSums(on: FlameAnswer, off: FlameAnswer): void {
    const events = {
      unsymbolized: () => this.shell.change({ page: "modules" }),
      moreNodes: this.shell.state.max_nodes === "" ? null : () => this.shell.change({ max_nodes: "" }),
    };
    const parts = [on, off].map((answer, i) => {
      const part = el("div", { class: "part", role: "group", "aria-label": answer.type });
      const idle = idleSwitch({ ...this.shell.state, type: answer.type }, (changed) => this.shell.change(changed));
      showStatus(part, answer, { ...events, idle }, i === 0 ? "stat" : "stat-off");
      if (i === 1) {
        part.querySelector("#stat-off-range")?.remove(); // the same
      }
      part.prepend(el("strong", {}, i === 0 ? "on CPU" : "waited"));
      return part;
    });
    this.shell.status.replaceChildren(...parts);
  }

  private askTimeline(
    state: State,
    type: string,
    more: Record<string, string>,
    signal: AbortSignal,
  ): Promise<TimelineAnswer> {
    const selection = { ...sampleParameters({ ...state, value: "value" }), type };
    return ask<TimelineAnswer>("timeline", { ...selection, group_by: state.group_by, limit: GROUPS, ...more }, signal);
  }

  private async showTable(state: State, there: string[], signal: AbortSignal): Promise<void> {
    const types = [...COLUMNS, ...MEMORY].filter((type) => there.includes(type));
    const coming = types.map((type) => this.askTimeline(state, type, {}, signal).catch(() => null));
    const answers = await Promise.all(coming);
    if (!signal.aborted) {
      const missing = types.filter((_, i) => answers[i] === null);
      this.table.show(answers.flatMap((answer) => (answer === null ? [] : [answer])), state.group_by);
      if (missing.length > 0) {
        this.shell.notice(`These columns did not come: ${missing.join(", ")}`);
      }
    }
  }

  private async showWakes(state: State, there: string[], signal: AbortSignal): Promise<void> {
    if (!there.includes("waker")) {
      this.wakes.say("Not profiled here: agents tell it with --profile off-cpu,waker.");
      return;
    }
    await this.fill(this.wakes, signal, async () => {
      const ask = (labels: string[]) => {
        const groups = new Set([...state.group_by.split(","), ...labels].filter((label) => label !== ""));
        return this.askTimeline(state, "off-cpu", { group_by: [...groups].join(","), limit: SHORT }, signal);
      };
      // A store in ClickHouse does not keep which thread it was.
      const answer = await ask(["wait", "waker", WAKER_THREAD]).catch(() => ask(["wait", "waker"]));
      return answer.series.length === 0 ? "Nobody waited." : wakes(this.shell, answer, state.group_by);
    });
  }

  private async showBlocked(
    state: State,
    there: string[],
    { from, until }: { from: number; until: number },
    signal: AbortSignal,
  ): Promise<void> {
    await this.fill(this.blocked, signal, async () => {
      if (!there.includes("still-blocked")) {
        const { nothing } = (await this.askTimeline(state, "still-blocked", { group_by: "", limit: "1" }, signal)).accounting;
        return nothing !== undefined
          ? `Not watched here: agents do with ${WATCHING}.`
          : `No thread was seen to wait for more than ten seconds without an end, by agents with ${WATCHING}.`;
      }
      const last = lastMinute(from, until, Date.now());
      const more = { from: String(last.from), until: String(last.until), limit: SHORT };
      const answer = await this.askTimeline(state, "still-blocked", more, signal);
      return answer.series.length === 0
        ? "No thread has waited for more than ten seconds."
        : blocked(this.shell, answer, state.group_by);
    });
  }

  private async showRequests(state: State, there: string[], signal: AbortSignal): Promise<void> {
    await this.fill(this.requests, signal, async () => {
      const types = ["on-cpu", "off-cpu"].filter((type) => there.includes(type));
      const { from, until, match } = sampleParameters(state);
      const selection: Parameters = { from, until, limit: TRACES_ASKED, ...(match === undefined ? {} : { match }) };
      const answers = await Promise.all(
        types.map((type) => ask<TracesAnswer>("traces", { ...selection, type }, signal)),
      );
      const found = joinTraces(answers);
      const left = answers.reduce((most, answer) => Math.max(most, answer.traces_left_out), 0);
      const more = Math.max(0, found.length - TRACES) + left;
      return found.length === 0
        ? "No sample here came with the id of a trace."
        : requests(this.shell, found.slice(0, TRACES), types, more);
    });
  }

  // A list that does not come says why; the others are shown all the same.
  private async fill(list: WallList, signal: AbortSignal, load: () => Promise<string | HTMLElement[]>): Promise<void> {
    try {
      const content = await load();
      if (signal.aborted) {
        return;
      }
      if (typeof content === "string") {
        list.say(content);
      } else {
        list.show(...content);
      }
    } catch (failure) {
      if (!signal.aborted) {
        list.say((failure as Error).message);
      }
    }
  }

  private opening(text: string, type: string, graph: Graph, node: number): MenuItem {
    const zoom = joinPath(graph.pathOf(node));
    return { text, hint: "", run: () => this.shell.change({ page: "graph", type, zoom }) };
  }

  private waitedPart(graph: Graph, node: number): number {
    const [on, off] = partsOf(graph, node);
    return off.total > 0 ? off.total / (on.total + off.total) : 0;
  }

  private words(graph: Graph, node: number): [string, string][] {
    const span = reportedMs(graph.answer);
    const [on, off] = partsOf(graph, node);
    // Too narrow to be asked for by itself: it comes when one zooms.
    const text = ({ total, most, error }: { total: number; most: number; error?: number }) =>
      total === 0 && most > 0
        ? `at most ${formatValue(most, "nanoseconds")}`
        : `${formatSampled(total, error, "nanoseconds")} · ${formatPercent(total, on.total + off.total)} of the frame's time`;
    const cpus = on.total === 0 && on.most > 0 ? "" : ` · ${formatCpus(on.total, span, graph.answer.accounting.cpus)}`;
    return [
      ["on CPU", text(on) + cpus],
      ["waited", text(off)],
    ];
  }

  private nextWidth(): void {
    const at = WIDTHS.findIndex(([width]) => width === this.shell.state.wall);
    this.shell.change({ wall: WIDTHS[(at + 1) % WIDTHS.length][0] });
  }

  private nextGrouping(): void {
    const usual = ["process", ...GROUPINGS];
    const at = usual.indexOf(this.shell.state.group_by);
    this.shell.change({ group_by: usual[(at + 1) % usual.length], zoom: "" });
  }
}
