// SPDX-License-Identifier: Apache-2.0
// Agents: who reports, who is late, what is lost and why, which stacks are not whole. The list keeps itself
// up to date while it is shown.

import { ask, type AgentsAnswer, type TopAnswer } from "../../server/api";
import { el, filterInput } from "../../widgets/dom";
import { formatCount, formatPercent } from "../../text/format";
import { agentLines } from "../../shell/empty";
import { shown } from "../../text/shown";
import type { KeyBinding, Shell, View } from "../../shell/view";
import { noFilters, picksOf, sampleParameters, type State } from "../../shell/state";
import { listKeys } from "../../widgets/list_keys";
import { ListTable } from "../../widgets/list_table";
import { AGENT_COLUMNS } from "./agents_columns";
import { agentDetails, stopsOf } from "./agents_details";
import { listAgents, rowOf, tallyOf, type AgentRow } from "./agents_rows";

const AGAIN_MS = 5000;
const EMPTY_AGAIN_MS = 3000;

export class AgentsView implements View {
  readonly asked = [...(["from", "until"] as const)];
  private rows: AgentRow[] = [];
  private again = 0;
  private readonly filter = filterInput("Filter agents", "Filter hosts, versions, reasons  ( / )");
  private readonly note = el("span", { class: "quiet", role: "status" });
  private readonly nothing = el("p", { class: "nothing", hidden: "" }, "No agent has these words.");
  private readonly side = el("aside", { class: "list-details", "aria-label": "Details of the agent", hidden: "", tabindex: "0" });
  private readonly stops = el("div", { class: "stops" });
  private readonly list: ListTable<AgentRow>;
  private stopsFor = ""; // what the stops are of
  private asking = new AbortController();
  readonly element: HTMLElement;
  readonly keys: KeyBinding[];

  constructor(private readonly shell: Shell) {
    this.list = new ListTable("Agents", AGENT_COLUMNS, {
      idOf: ({ host }) => host,
      pick: (agent) => shell.change({ agent }, false),
      orderBy: (agent_order) => shell.change({ agent_order }, false),
    });
    this.filter.addEventListener("input", () => shell.change({ agent_find: this.filter.value }, false));
    this.element = el(
      "div",
      { class: "list-page agents-page", hidden: "" },
      el("div", { class: "tools" }, this.filter, this.note),
      el("div", { class: "list-columns" }, el("div", { class: "list-body" }, this.nothing, this.list.element), this.side),
    );
    this.keys = listKeys(this.list, this.filter, () => shell.change({ agent: "" }, false));
  }

  async load(_state: State, signal: AbortSignal): Promise<void> {
    clearTimeout(this.again);
    const answer = await ask<AgentsAnswer>("agents", {}, signal);
    if (signal.aborted) {
      return;
    }
    this.rows = answer.agents.map((agent) => rowOf(agent, answer.now));
    if (this.rows.length === 0) {
      this.shell.blank(el("h2", {}, "No agents yet"), ...agentLines([], 0));
      this.again = window.setTimeout(() => void this.awaitFirst(signal), EMPTY_AGAIN_MS);
      return;
    }
    this.draw(this.shell.state);
    this.again = window.setTimeout(() => void this.refresh(signal), AGAIN_MS);
  }

  adjust(state: State): void {
    if (document.activeElement !== this.filter) {
      this.filter.value = state.agent_find;
    }
    this.draw(state);
    this.list.reveal();
  }

  leave(): void {
    clearTimeout(this.again);
    this.asking.abort();
    this.stopsFor = "";
  }

  // What is on the screen stays until then: it may be in somebody's hand.
  private async awaitFirst(signal: AbortSignal): Promise<void> {
    const answer = await ask<AgentsAnswer>("agents", {}, signal).catch(() => null);
    if (signal.aborted) {
      return;
    }
    if (answer !== null && answer.agents.length > 0) {
      this.shell.reload();
    } else {
      this.again = window.setTimeout(() => void this.awaitFirst(signal), EMPTY_AGAIN_MS);
    }
  }

  private async refresh(signal: AbortSignal): Promise<void> {
    try {
      if (!document.hidden) {
        const answer = await ask<AgentsAnswer>("agents", {}, signal);
        this.rows = answer.agents.map((agent) => rowOf(agent, answer.now));
        this.draw(this.shell.state);
      }
    } catch (failure) {
      if (!signal.aborted) {
        this.note.textContent = shown(`${(failure as Error).message} The list is the one from before.`);
      }
    }
    if (!signal.aborted) {
      this.again = window.setTimeout(() => void this.refresh(signal), AGAIN_MS);
    }
  }

  private draw(state: State): void {
    const rows = listAgents(this.rows, picksOf(state, "host"), state.agent_find.trim());
    this.list.show(rows, state.agent_order, state.agent);
    this.nothing.hidden = rows.length > 0 || this.rows.length === 0;
    this.list.element.hidden = rows.length === 0;
    this.note.textContent = shown(sums(rows));
    this.drawDetails(state);
  }

  private drawDetails(state: State): void {
    const row = this.rows.find(({ host }) => host === state.agent);
    this.side.hidden = row === undefined || state.agent === "";
    if (this.side.hidden || row === undefined) {
      return;
    }
    const close = el("button", { type: "button", class: "close", "aria-label": "Close the details", title: "Esc" }, "×");
    close.addEventListener("click", () => this.shell.change({ agent: "" }, false));
    const { scrollTop } = this.side;
    this.side.replaceChildren(close, ...agentDetails(this.shell, row, this.stops));
    this.side.scrollTop = scrollTop;
    void this.askStops(state);
  }

  // Where walks stopped is only asked of the agent that is looked at.
  private async askStops(state: State): Promise<void> {
    const only = { ...state, ...noFilters(), value: "value", host: state.agent };
    const parameters = { ...sampleParameters(only), limit: "1" };
    const of = JSON.stringify(parameters);
    if (of === this.stopsFor) {
      return;
    }
    this.asking.abort();
    this.asking = new AbortController();
    this.stopsFor = of;
    const { signal } = this.asking;
    this.stops.replaceChildren(el("p", { class: "quiet" }, "Loading…"));
    try {
      const { accounting } = await ask<TopAnswer>("top", parameters, signal);
      if (!signal.aborted) {
        this.stops.replaceChildren(stopsOf(this.shell, accounting.incomplete_by, accounting.samples));
      }
    } catch (failure) {
      if (!signal.aborted) {
        this.stopsFor = "";
        this.stops.replaceChildren(el("p", {}, (failure as Error).message));
      }
    }
  }
}

function sums(rows: AgentRow[]): string {
  const { agents, late, taken, lost, versions } = tallyOf(rows);
  const parts = [
    `${formatCount(agents)} ${agents === 1 ? "agent" : "agents"}`,
    late === 0 ? "none late" : `! ${formatCount(late)} late or silent`,
    `${formatCount(taken)} samples since their start`,
    `lost ${lost === 0 ? "0" : formatPercent(lost, taken)}`,
  ];
  if (versions.length > 1) {
    parts.push(`versions ${versions.slice(0, 3).map(([version, count]) => `${version} (${formatCount(count)})`).join(", ")}`);
  }
  return parts.join(" · ");
}
