// SPDX-License-Identifier: Apache-2.0
// The first page: what runs where, of which type there is how much, and what to look at next.

import { ask, type AgentsAnswer, type Hotspots, type Parameters, type TimelineAnswer, type TopAnswer, type TypesAnswer } from "../../server/api";
import { el } from "../../widgets/dom";
import { formatCount, formatSampled } from "../../text/format";
import { explainEmpty } from "../../shell/empty";
import type { KeyBinding, Shell, View } from "../../shell/view";
import { isOfHosts, moduleParameters, narrowTo, sampleParameters, type State } from "../../shell/state";
import { showAccounting } from "../../shell/status_line";
import { SERIES_COLOURS } from "../../widgets/series_colours";
import { TimeChart } from "../../widgets/time_chart";
import { chartOf } from "../chart_data";
import { LATE_MS } from "../agents/agents_rows";
import { linkTo } from "../links";
import { changes, noChange, OverviewList, topFunctions } from "./overview_lists";
import { GROUPINGS, OverviewTable } from "./overview_table";
import { isMostlyNamed } from "./overview_sums";
import { rateOf } from "../rates";
import { reportedMs } from "../reported";
import { stepParameter } from "../../text/time";

const GROUPS = 1000; // rows asked for; the server sums up the rest
const EMPTY_AGAIN_MS = 3000;
const FUNCTIONS = 10;
const CHANGES = 6;
const CHANGE_STEPS = 12;

export class OverviewView implements View {
  readonly element = el("div", { class: "overview", hidden: "" });
  readonly asked = [
    ...(["type", "from", "until", "process", "service", "host", "match", "value", "by"] as const),
  ];
  private readonly types = el("div", { class: "types", role: "group", "aria-label": "Profile types" });
  private readonly facts = el("p", { class: "facts" });
  private readonly chart = new TimeChart({
    brush: (from, until) => this.shell.change({ from: String(from), until: String(until), refresh: "0" }),
    pick: (name) => this.shell.change(narrowTo(this.shell.state, { [this.table.groupingOf(this.shell.state)]: name })),
  });
  private readonly table: OverviewTable;
  private readonly functions = new OverviewList("Hottest functions");
  private readonly changes = new OverviewList("What changed");
  private again = 0;

  readonly keys: KeyBinding[] = [
    { keys: ["b"], does: "rows: services, hosts or processes", run: () => this.nextGrouping() },
    { keys: ["/"], does: "filter the rows", run: () => this.table.focusFilter() },
  ];

  constructor(private readonly shell: Shell) {
    this.table = new OverviewTable(shell);
    const lists = el("div", { class: "lists" }, this.functions.element, this.changes.element);
    this.element.append(
      el("div", { class: "top" }, this.types, this.facts, this.chart.element),
      el("div", { class: "columns" }, this.table.element, lists),
    );
  }

  setTheme(dark: boolean): void {
    this.chart.setTheme(dark);
  }

  leave(): void {
    clearTimeout(this.again);
  }

  adjust(state: State, before: State | null): void {
    this.table.adjust(state, before);
  }

  isHeld(): boolean {
    return this.chart.isBrushed();
  }

  async load(state: State, signal: AbortSignal): Promise<void> {
    clearTimeout(this.again);
    const selection = moduleParameters(state);
    const { from, until, match } = selection;
    const range: Parameters = { from, until, ...(match === undefined ? {} : { match }) };
    const coming = this.askChart(state, signal);
    coming.catch(() => undefined); // thrown below
    const { types } = await ask<TypesAnswer>("types", range, signal);
    if (signal.aborted) {
      return;
    }
    if (types.length === 0) {
      const { accounting } = await coming;
      if (signal.aborted) {
        return;
      }
      await explainEmpty(this.shell, { ...accounting, lost: 0 }, signal);
      this.again = window.setTimeout(() => void this.awaitFirst(range, signal), EMPTY_AGAIN_MS);
      return;
    }
    const answer = await this.decide(state, await coming, signal);
    if (signal.aborted) {
      return;
    }
    this.showTypes(types, [answer]);
    if (answer.accounting.nothing !== undefined) {
      await explainEmpty(this.shell, { ...answer.accounting, lost: 0 }, signal);
      return;
    }
    this.showChart(answer, this.table.groupingOf(state));
    this.table.show([answer]);
    showAccounting(this.shell.status, answer);
    void this.showOthers(state, types, answer, signal);
    void this.showFunctions(state, signal);
    void this.showChanges(state, answer.until - answer.from, signal);
    void this.showFacts(range, signal);
  }

  // What is on the screen stays until then: it may be in somebody's hand.
  private async awaitFirst(range: Parameters, signal: AbortSignal): Promise<void> {
    const answer = await ask<TypesAnswer>("types", range, signal).catch(() => null);
    if (signal.aborted) {
      return;
    }
    if (answer !== null && answer.types.length > 0) {
      this.shell.reload();
    } else {
      this.again = window.setTimeout(() => void this.awaitFirst(range, signal), EMPTY_AGAIN_MS);
    }
  }

  // Rows are services where most is of one, else processes: decided once, that rows do not become others meanwhile.
  private async decide(state: State, answer: TimelineAnswer, signal: AbortSignal): Promise<TimelineAnswer> {
    if (signal.aborted || state.by !== "" || this.table.usual !== "" || answer.series.length === 0) {
      return answer;
    }
    this.table.usual = isMostlyNamed(answer, GROUPINGS[0]) ? GROUPINGS[0] : "process";
    this.table.adjust(state, null);
    return this.table.usual === GROUPINGS[0] ? answer : this.askChart(state, signal);
  }

  private askChart(state: State, signal: AbortSignal): Promise<TimelineAnswer> {
    return this.askTimeline(state, state.type, stepParameter(state.from, state.until, Date.now()), signal);
  }

  private askTimeline(
    state: State,
    type: string,
    more: Record<string, string>,
    signal: AbortSignal,
  ): Promise<TimelineAnswer> {
    const selection = { ...moduleParameters(state), type, value: state.value };
    return ask<TimelineAnswer>(
      "timeline",
      { ...selection, group_by: this.table.groupingOf(state), limit: String(GROUPS), errors: "1", ...more },
      signal,
    );
  }

  // What an answer says of its type goes before the list: its rows and its chart are of that.
  private showTypes(types: TypesAnswer["types"], answers: TimelineAnswer[]): void {
    const { state } = this.shell;
    const tiles = types.map((type) => {
      const rate = rateOf(type.name, type.unit, state.value);
      const sum = answers.find((answer) => answer.type === type.name)?.accounting ?? type;
      const value = state.value === "samples" ? sum.samples : sum.value;
      const { cpus } = answers[0].accounting;
      const all = type.name === "on-cpu" && cpus !== undefined && state.value !== "samples" ? ` of ${formatCount(cpus)}` : "";
      const tile = el(
        "button",
        { type: "button", class: "tile", "aria-pressed": String(type.name === state.type), title: formatSampled(value, "error" in sum ? sum.error : undefined, state.value === "samples" ? "samples" : type.unit) },
        el("span", { class: "quiet" }, type.name),
        el("strong", {}, rate.format(rate.of(value, reportedMs(answers[0]))).replace(/(?= CPUs$)/, all)),
      );
      tile.addEventListener("click", () => this.shell.change({ type: type.name }));
      return tile;
    });
    this.types.replaceChildren(...tiles);
  }

  private showChart(answer: TimelineAnswer, label: string): void {
    const { value } = this.shell.state;
    const rate = rateOf(answer.type, answer.unit, value);
    const name = (labels: Record<string, string>) => labels[label] ?? "";
    this.chart.show(chartOf(answer, rate, value === "samples", SERIES_COLOURS, name, isOfHosts(this.shell.state)));
  }

  // The other types' columns come when the first is on the screen.
  private async showOthers(
    state: State,
    types: TypesAnswer["types"],
    first: TimelineAnswer,
    signal: AbortSignal,
  ): Promise<void> {
    const minutes = Math.max(1, Math.ceil((first.until - first.from) / 60_000));
    const others = types.filter(({ name }) => name !== state.type);
    const coming = others.map(({ name }) =>
      this.askTimeline(state, name, { step: `${minutes}m` }, signal).catch(() => null),
    );
    const answers = await Promise.all(coming);
    if (!signal.aborted) {
      const known = [first, ...answers.flatMap((answer) => (answer === null ? [] : [answer]))];
      this.table.show(known);
      this.showTypes(types, known);
      const missing = others.filter((_, i) => answers[i] === null).map(({ name }) => name);
      if (missing.length > 0) {
        this.shell.notice(`These columns did not come: ${missing.join(", ")}`);
      }
    }
  }

  private async showFunctions(state: State, signal: AbortSignal): Promise<void> {
    try {
      const parameters = { ...sampleParameters(state), sort: "self", limit: String(FUNCTIONS) };
      const answer = await ask<TopAnswer>("top", parameters, signal);
      if (!signal.aborted) {
        this.functions.show(topFunctions(this.shell, answer));
        showAccounting(this.shell.status, answer, () => this.shell.change({ page: "modules" }));
      }
    } catch (failure) {
      if (!signal.aborted) {
        this.functions.say((failure as Error).message);
      }
    }
  }

  // Of the rows, in few steps: a look at each process by the minute costs the server thirteen times as
  // much; the page of times does that.
  private async showChanges(state: State, range_ms: number, signal: AbortSignal): Promise<void> {
    const label = this.table.groupingOf(state);
    const step = `${Math.max(1, Math.ceil(range_ms / 60_000 / CHANGE_STEPS))}m`;
    const few = { group_by: label, step, limit: String(CHANGES), processes: "0" };
    const selection = moduleParameters(state);
    try {
      const answer = await ask<Hotspots>("hotspots", { ...selection, ...few }, signal);
      if (signal.aborted) {
        return;
      }
      if (answer.changes.length === 0) {
        this.changes.say(noChange(answer, label));
      } else {
        this.changes.show(changes(this.shell, answer));
      }
    } catch (failure) {
      if (!signal.aborted) {
        this.changes.say((failure as Error).message);
      }
    }
  }

  // How many of what, and which agents are late.
  private async showFacts(range: Record<string, string>, signal: AbortSignal): Promise<void> {
    const [labels, agents] = await Promise.all([
      ask<{ labels: { name: string; values: number }[] }>("labels", range, signal).catch(() => null),
      ask<AgentsAnswer>("agents", {}, signal).catch(() => null),
    ]);
    if (signal.aborted) {
      return;
    }
    const parts: Node[] = [];
    const fact = (changed: Partial<State>, text: string) =>
      parts.push(linkTo(this.shell, changed, { class: "fact" }, text));
    for (const label of GROUPINGS) {
      const count = labels?.labels.find(({ name }) => name === label)?.values ?? 0;
      const plural = label === "process" ? "processes" : `${label}s`;
      fact({ by: label }, `${formatCount(count)} ${count === 1 ? label : plural}`);
    }
    if (agents !== null) {
      const late = agents.agents.filter(({ last_seen }) => agents.now - last_seen > LATE_MS).length;
      const count = agents.agents.length;
      const words = late === 0 ? "none late" : `! ${formatCount(late)} late`;
      fact({ page: "agents" }, `${formatCount(count)} ${count === 1 ? "agent" : "agents"}, ${words}`);
    }
    this.facts.replaceChildren(...parts);
  }

  private nextGrouping(): void {
    const at = GROUPINGS.indexOf(this.table.groupingOf(this.shell.state));
    this.shell.change({ by: GROUPINGS[(at + 1) % GROUPINGS.length] });
  }
}
