// SPDX-License-Identifier: Apache-2.0
// When: values over time by group, the functions that were hot, the moments in which a process did something
// else, and, where samples have times of their own, activity within each second.

import { ask, type Hotspots, type ModuleState, type TimelineAnswer } from "../../server/api";
import { el } from "../../widgets/dom";
import { GroupMenu } from "../../widgets/group_menu";
import { collapseArguments, formatOwnShare } from "../../text/format";
import { explainEmpty } from "../../shell/empty";
import type { KeyBinding, Shell, View } from "../../shell/view";
import { isOfHosts, moduleParameters, STACK_FILTERS, timelineParameters, type State } from "../../shell/state";
import { showAccounting } from "../../shell/status_line";
import { stepParameter, timeOf } from "../../text/time";
import { HeatMap, type HeatData } from "../../widgets/heat_map";
import { SERIES_COLOURS } from "../../widgets/series_colours";
import { TimeChart, type TimeMark } from "../../widgets/time_chart";
import { newBuilds } from "../builds";
import { chartOf, type ChartData } from "../chart_data";
import { changes, noChange, OverviewList } from "../overview/overview_lists";
import { rateOf } from "../rates";
import { showFilters } from "../flame/trail";
import { buildMarks, buildRows } from "./time_builds";
import { TimeFunctions } from "./time_functions";

const HEIGHT = 220;
const GROUPS = "100";
const CHANGES = "50";
const GROUPINGS = ["host,process", ""];

export class TimeView implements View {
  readonly element = el("div", { class: "time-page", hidden: "" });
  readonly asked = [
    ...(["type", "from", "until", "process", "service", "host", "match", "value", "group_by", ...STACK_FILTERS] as const),
  ];
  private readonly filters = el("span", { class: "filters" });
  private readonly grouping: GroupMenu;
  private readonly chart: TimeChart;
  private readonly functions: TimeFunctions;
  private readonly heat: HeatMap;
  private readonly heatNote = el("p", { class: "quiet", role: "status" });
  private readonly moments = new OverviewList("What changed");
  private readonly builds = new OverviewList("New builds");
  private data: ChartData | null = null;
  private marks: TimeMark[] = [];

  readonly keys: KeyBinding[] = [
    { keys: ["u"], does: "twice as much time", run: () => this.widen(1) },
    { keys: ["i"], does: "half as much time", run: () => this.widen(-0.25) },
    { keys: ["["], does: "half the range earlier", run: () => this.shift(-0.5) },
    { keys: ["]"], does: "half the range later", run: () => this.shift(0.5) },
    { keys: ["f"], does: "filter the functions", run: () => this.functions.focusFilter() },
  ];

  constructor(private readonly shell: Shell) {
    this.chart = new TimeChart({ brush: (from, until) => this.range(from, until) }, HEIGHT);
    this.functions = new TimeFunctions(shell);
    this.heat = new HeatMap({
      take: (from, until) =>
        shell.change({ page: "graph", from: String(from), until: String(until), exact: "true" }),
    });
    this.grouping = new GroupMenu(el("select", { "aria-label": "Group by" }), GROUPINGS, (group_by) => shell.change({ group_by }));
    const button = (text: string, title: string, run: () => void) => {
      const made = el("button", { type: "button", title }, text);
      made.addEventListener("click", run);
      return made;
    };
    const tools = el(
      "div",
      { class: "tools" },
      el("label", { class: "pick" }, "group by ", this.grouping.box),
      el(
        "span",
        { class: "joined", role: "group", "aria-label": "Range" },
        button("‹", "Earlier ( [ )", () => this.shift(-0.5)),
        button("Wider", "Twice as much time (u)", () => this.widen(1)),
        button("›", "Later ( ] )", () => this.shift(0.5)),
      ),
      this.filters,
      el("span", { class: "quiet" }, "Drag over the chart to choose a time."),
    );
    const heat = el(
      "section",
      { class: "heat", "aria-label": "Within each second" },
      el("h2", {}, "Within each second"),
      this.heatNote,
      this.heat.element,
    );
    const lists = el("div", { class: "lists" }, this.moments.element, this.builds.element);
    this.element.append(tools, this.chart.element, this.functions.element, el("div", { class: "columns" }, heat, lists));
  }

  setTheme(dark: boolean): void {
    this.chart.setTheme(dark);
    this.functions.setTheme(dark);
    this.heat.setTheme(dark);
  }

  leave(): void {
    this.functions.leave();
  }

  adjust(state: State, before: State | null): void {
    this.grouping.show(state.group_by);
    showFilters(state, (changed) => this.shell.change(changed), this.filters, STACK_FILTERS);
    const isAskedAgain = before === null || this.asked.some((key) => before[key] !== state[key]);
    this.functions.adjust(state, isAskedAgain ? null : before);
  }

  isHeld(): boolean {
    return this.chart.isBrushed();
  }

  async load(state: State, signal: AbortSignal): Promise<void> {
    const selection = moduleParameters(state);
    const step = stepParameter(state.from, state.until, Date.now());
    const parameters = { ...timelineParameters(state), value: state.value, group_by: state.group_by, limit: GROUPS, errors: "1", ...step };
    const answer = await ask<TimelineAnswer>("timeline", parameters, signal);
    if (signal.aborted) {
      return;
    }
    showAccounting(this.shell.status, answer);
    if (answer.accounting.samples === 0) {
      this.functions.show(state, null);
      await explainEmpty(this.shell, answer.accounting, signal);
      return;
    }
    const rate = rateOf(answer.type, answer.unit, state.value);
    const name = (labels: Record<string, string>) => Object.values(labels).join(" · ");
    this.data = chartOf(answer, rate, state.value === "samples", SERIES_COLOURS, name, isOfHosts(state));
    this.chart.show(this.data);
    this.marks = [];
    this.functions.show(state, answer);
    void this.showBuilds(selection, answer, signal);
    void this.showMoments(state, signal);
    void this.showHeat(selection, STACK_FILTERS.some((key) => state[key] !== ""), signal);
  }

  private async showMoments(state: State, signal: AbortSignal): Promise<void> {
    try {
      const parameters = { ...timelineParameters(state), group_by: state.group_by, limit: CHANGES, processes: "0" };
      const answer = await ask<Hotspots>("hotspots", parameters, signal);
      if (signal.aborted) {
        return;
      }
      if (answer.changes.length === 0) {
        this.moments.say(noChange(answer, state.group_by.replace(",", " and ") || "function"));
        return;
      }
      this.moments.show(changes(this.shell, answer));
      this.addMarks(answer.changes.map((change) => this.mark(change)));
    } catch (failure) {
      if (!signal.aborted) {
        this.moments.say((failure as Error).message);
      }
    }
  }

  private async showBuilds(
    selection: Record<string, string>,
    { from, until }: TimelineAnswer,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      const { modules } = await ask<{ modules: ModuleState[] }>("modules", selection, signal);
      if (signal.aborted) {
        return;
      }
      const builds = newBuilds(modules, from, until);
      if (builds.length === 0) {
        this.builds.say("No module was seen with a new build-id.");
        return;
      }
      this.builds.show(buildRows(this.shell, builds, from, until));
      this.addMarks(buildMarks(this.shell, builds, from, until));
    } catch (failure) {
      if (!signal.aborted) {
        this.builds.say((failure as Error).message);
      }
    }
  }

  private addMarks(marks: TimeMark[]): void {
    this.marks.push(...marks);
    this.chart.show({ ...(this.data as ChartData), marks: this.marks });
  }

  private mark(change: Hotspots["changes"][number]): TimeMark {
    const moved = [...change.rose, ...change.fell][0];
    const who = Object.values(change.labels).join(" · ");
    const what = moved === undefined ? "" : `: ${collapseArguments(moved.name)} ${formatOwnShare(moved.before, moved.before_error)} → ${formatOwnShare(moved.after, moved.after_error)}`;
    return {
      time: change.from,
      kind: "hot",
      text: who + what,
      run: () => this.range(change.from, change.until, "graph"),
    };
  }

  // isNarrowed: the time line is, to some functions; cells are of samples, whatever their stacks.
  private async showHeat(selection: Record<string, string>, isNarrowed: boolean, signal: AbortSignal): Promise<void> {
    this.heatNote.textContent = "Loading…";
    try {
      const data = await ask<HeatData>("heatmap", selection, signal);
      if (signal.aborted) {
        return;
      }
      this.heat.element.hidden = data.samples === 0;
      if (data.samples === 0) {
        this.heatNote.textContent =
          "No sample of this selection has a time of its own: agents that run with --timestamps give them one.";
        return;
      }
      this.heat.show(data);
      this.heatNote.textContent =
        `A column is ${data.column_ms / 1000} s, read downwards; darker is more samples. ` +
        "Drag from one cell to another for the flame graph of exactly that time." +
        (isNarrowed ? " It has the samples of all functions." : "");
    } catch (failure) {
      if (!signal.aborted) {
        this.heat.element.hidden = true;
        this.heatNote.textContent = (failure as Error).message;
      }
    }
  }

  private range(from: number, until: number, page = "time"): void {
    this.shell.change({ page, from: String(Math.round(from)), until: String(Math.round(until)), refresh: "0" });
  }

  private times(): [number, number] {
    const now = Date.now();
    return [timeOf(this.shell.state.from, now), timeOf(this.shell.state.until, now)];
  }

  // By this part of the range on either side, halved.
  private widen(part: number): void {
    const [from, until] = this.times();
    const more = ((until - from) * part) / (part > 0 ? 2 : 1);
    this.range(from - more, Math.min(Date.now(), until + more));
  }

  private shift(part: number): void {
    const [from, until] = this.times();
    const by = Math.min((until - from) * part, Math.max(0, Date.now() - until));
    this.range(from + (part < 0 ? (until - from) * part : by), until + (part < 0 ? (until - from) * part : by));
  }
}
