// SPDX-License-Identifier: Apache-2.0
// When both sides of a comparison were: one time line with two ranges, either of which a drag sets.

import { ask, type TimelineAnswer } from "../../server/api";
import { el } from "../../widgets/dom";
import { TimeChart } from "../../widgets/time_chart";
import type { Shell } from "../../shell/view";
import { moduleParameters, type State } from "../../shell/state";
import { baseRange, timeOf } from "../../text/time";
import { chartOf, type ChartData } from "../chart_data";
import { rateOf } from "../rates";

const HEIGHT = 74;
const MARGIN = 0.5; // of what both ranges take, shown on either side of them

interface Range {
  from: number;
  until: number;
}
type Side = "A" | "B";

// Both, with room around; the one before where that has room for them still. now: nothing is later.
export function windowOf(a: Range, b: Range, before: Range | null, now: number): Range {
  const from = Math.min(a.from, b.from);
  const until = Math.max(a.until, b.until);
  if (before !== null && from >= before.from && until <= before.until) {
    return before;
  }
  const more = (until - from) * MARGIN;
  return { from: from - more, until: Math.max(until, Math.min(now, until + more)) };
}

export class DiffTimes {
  readonly element = el("div", { class: "diff-times" });
  private readonly chart = new TimeChart({ brush: (from, until) => this.set(from, until) }, HEIGHT);
  private readonly buttons = (["A", "B"] as const).map((side) => this.button(side));
  private readonly note = el("span", { class: "quiet", role: "status" });
  private side: Side = "B"; // which a drag sets
  private shown: Range | null = null;
  private asked = ""; // what data is of
  private data: ChartData | null = null;

  constructor(private readonly shell: Shell) {
    const choice = el("span", { class: "joined", role: "group", "aria-label": "A drag sets" }, ...this.buttons);
    this.element.append(el("div", { class: "side" }, "drag sets", choice, this.note), this.chart.element);
    this.choose("B");
  }

  private button(side: Side): HTMLButtonElement {
    const made = el("button", { type: "button", title: `A drag over the time line sets ${side} (${side.toLowerCase()})` }, side);
    made.addEventListener("click", () => this.choose(side));
    return made;
  }

  choose(side: Side): void {
    this.side = side;
    this.buttons.forEach((made, i) => made.setAttribute("aria-pressed", String("AB"[i] === side)));
  }

  focus(side: Side): void {
    this.choose(side);
    this.chart.focus();
  }

  setTheme(dark: boolean): void {
    this.chart.setTheme(dark);
  }

  // The other side stays where it is, also if it was said relative to this one.
  private set(from: number, until: number): void {
    const { state } = this.shell;
    const chosen = { from: String(Math.round(from)), until: String(Math.round(until)) };
    if (this.side === "A") {
      this.shell.change({ base: `${chosen.from}..${chosen.until}`, zoom: "" });
      return;
    }
    const a = baseRange(state.base, state.from, state.until, Date.now());
    const base = a === null ? {} : { base: `${Math.round(a.from)}..${Math.round(a.until)}` };
    this.shell.change({ ...chosen, ...base, zoom: "" });
  }

  async load(state: State, a: Range, b: Range, signal: AbortSignal): Promise<void> {
    const now = Date.now();
    this.shown = windowOf(a, b, this.shown, Math.max(now, timeOf(state.until, now)));
    const { from, until } = this.shown;
    const range = { from: String(Math.round(from)), until: String(Math.round(until)) };
    const parameters = { ...moduleParameters(state), ...range, group_by: "", limit: "1" };
    const asked = JSON.stringify(parameters);
    if (asked !== this.asked) {
      this.data = null;
      this.asked = "";
      this.note.textContent = "";
      try {
        const answer = await ask<TimelineAnswer>("timeline", parameters, signal);
        if (signal.aborted) {
          return;
        }
        const data = chartOf(answer, rateOf(answer.type, answer.unit, state.value), false, 1, () => "all");
        this.data = data.count > 0 ? data : null; // nothing was ever stored of that time
        this.asked = asked;
      } catch (failure) {
        if (!signal.aborted) {
          this.note.textContent = (failure as Error).message;
        }
      }
    }
    this.show(a, b);
  }

  private show(a: Range, b: Range): void {
    this.chart.element.hidden = this.data === null;
    if (this.data !== null) {
      this.chart.show({ ...this.data, ranges: [{ name: "A", ...a }, { name: "B", ...b }] });
    }
  }
}
