// SPDX-License-Identifier: Apache-2.0
// When which function was hot: the heaviest of them over the time line's time.

import { ask, type FunctionHeat, type TimelineAnswer, type TopFunction } from "../../server/api";
import { copyAndSay } from "../../widgets/copy";
import { el, filterInput } from "../../widgets/dom";
import { RowHeat } from "../../widgets/row_heat";
import { formatPercent, formatValue } from "../../text/format";
import { escapePattern } from "../../shell/selector";
import { exactly, frameParameters, type State } from "../../shell/state";
import type { Shell } from "../../shell/view";
import { functionMenu } from "../flame/frame_menu";
import { showFilters } from "../flame/trail";
import { linkTo } from "../links";
import { rateOf, type Rate } from "../rates";
import { cellWords, columnParameter, heatRows, otherWords, restWords } from "./heat_rows";

const ROWS = "100";
const TYPED_MS = 250;
// What acts on functions, and not on the time line above.
export const FUNCTION_FILTERS = ["hide", "hide_kind", "hide_runtime", "hide_module", "only_module", "build_id", "trace_id", "exact", "collapse"] as const;
const ASKED = [...FUNCTION_FILTERS, "idle", "sort", "function_find"] as const;
type Range = Pick<TimelineAnswer, "from" | "until" | "step_ms" | "reported">;

function sortOf(state: State): "self" | "total" {
  return state.sort === "total" ? "total" : "self";
}

export class TimeFunctions {
  readonly element: HTMLElement;
  private readonly by = el(
    "select",
    { "aria-label": "What a function is measured by" },
    el("option", { value: "self" }, "self"),
    el("option", { value: "total" }, "total"),
  );
  private readonly filter = filterInput("Filter functions", "Filter functions");
  private readonly filters = el("span", { class: "filters" });
  private readonly note = el("p", { class: "quiet", role: "status" });
  private readonly heat: RowHeat;
  private answer: FunctionHeat | null = null;
  private rate: Rate | null = null;
  private range: Range | null = null;
  private asking = new AbortController();
  private timer = 0;

  constructor(private readonly shell: Shell) {
    this.heat = new RowHeat({
      take: (row, first, last) => this.take(row, first, last),
      menu: (row, x, y) => this.openMenu(row, x, y),
      words: (row, first, last) => (this.answer === null || this.rate === null ? "" : cellWords(this.answer, this.rate, row, first, last)),
    });
    this.heat.element.hidden = true;
    this.by.addEventListener("change", () => shell.change({ sort: this.by.value }, false));
    this.filter.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = window.setTimeout(() => shell.change({ function_find: this.filter.value.trim() }, false), TYPED_MS);
    });
    const tools = el("div", { class: "tools" }, el("h2", {}, "Functions"), el("label", { class: "pick" }, "by ", this.by), this.filter, this.filters);
    this.element = el("section", { class: "time-functions", "aria-label": "Functions over time" }, tools, this.note, this.heat.element);
  }

  setTheme(dark: boolean): void {
    this.heat.setTheme(dark);
  }

  adjust(state: State, before: State | null): void {
    this.by.value = sortOf(state);
    if (document.activeElement !== this.filter) {
      this.filter.value = state.function_find;
    }
    showFilters(state, (changed) => this.shell.change(changed), this.filters, FUNCTION_FILTERS);
    if (before !== null && this.range !== null && ASKED.some((key) => before[key] !== state[key])) {
      this.ask(state);
    }
  }

  // Of another time line, or of none.
  show(state: State, range: Range | null): void {
    this.range = range;
    this.ask(state);
  }

  focusFilter(): void {
    this.filter.focus();
    this.filter.select();
  }

  leave(): void {
    this.asking.abort();
  }

  private ask(state: State): void {
    this.asking.abort();
    this.asking = new AbortController();
    if (this.range !== null) {
      void this.load(state, this.range, this.asking.signal);
    }
  }

  private async load(state: State, range: Range, signal: AbortSignal): Promise<void> {
    this.note.textContent = "Loading…";
    const find = state.function_find.trim();
    try {
      const answer = await ask<FunctionHeat>(
        "heatmap",
        {
          ...frameParameters({ ...state, from: String(range.from), until: String(range.until) }),
          ...columnParameter(range),
          ...(find === "" ? {} : { search: `(?i)${escapePattern(find)}` }),
          by: "function",
          sort: sortOf(state),
          limit: ROWS,
        },
        signal,
      );
      if (!signal.aborted) {
        this.fill(answer, state);
      }
    } catch (failure) {
      if (!signal.aborted) {
        this.heat.element.hidden = true;
        this.note.textContent = (failure as Error).message;
      }
    }
  }

  private fill(answer: FunctionHeat, state: State): void {
    const rate = rateOf(answer.type, answer.unit, state.value);
    this.answer = answer;
    this.rate = rate;
    const { rows, most } = heatRows(answer, rate);
    this.heat.element.hidden = answer.functions.length === 0;
    this.note.textContent = this.words(answer);
    this.heat.show({
      ...answer,
      most,
      rows: rows.map(({ function: f, rates }) => ({
        name: f === null ? otherWords(answer) : (f.signature ?? f.name),
        name_link: f === null ? el("span", {}, otherWords(answer)) : this.nameLink(answer, f),
        isRest: f === null,
        values: rates,
      })),
    });
    document.body.dataset.functions = String(answer.functions.length);
  }

  private words(answer: FunctionHeat): string {
    if (answer.functions.length === 0) {
      return this.shell.state.function_find === "" ? "No sample here ended in a function." : "No function matches.";
    }
    return `The stronger, the more. A click on a cell, or a drag along a row, leads to the flame graph of that function and time.${restWords(answer)}`;
  }

  private nameLink({ unit, all, sort }: FunctionHeat, f: TopFunction): HTMLElement {
    const whole = all.reduce((sum, value) => sum + value, 0);
    const name = f.signature ?? f.name;
    const title = `${name}\n${formatValue(f[sort], unit)}, ${formatPercent(f[sort], whole)}${f.module === "" ? "" : `\n${f.module}`}`;
    return linkTo(this.shell, this.leadTo(f), { class: "line", title }, el("bdi", {}, name));
  }

  // The graph has one expression for stacks: where it is in use the function is searched instead.
  private leadTo(f: TopFunction): Partial<State> {
    const one = exactly(f.name);
    const { focus } = this.shell.state;
    return { page: "graph", zoom: "", sandwich: "", ...(focus === "" || focus === one ? { focus: one } : { search: one }) };
  }

  private take(row: number, first: number, last: number): void {
    const answer = this.answer as FunctionHeat;
    const time = (column: number) => answer.first + column * answer.column_ms;
    const from = Math.max(answer.from, time(first));
    const until = Math.min(answer.until, time(last + 1));
    const f = answer.functions[row] as TopFunction | undefined;
    this.shell.change({
      ...(f === undefined ? { page: "graph", zoom: "", sandwich: "" } : this.leadTo(f)),
      from: String(from),
      until: String(until),
      refresh: "0",
    });
  }

  private openMenu(row: number, x: number, y: number): boolean {
    const f = this.answer?.functions[row];
    if (f === undefined) {
      return false;
    }
    const { name, signature, module, build_id, file, line } = f;
    const place = file === "" ? "" : `${file}:${line}`;
    const items = functionMenu({ name, signature, module, build_id, place, stack: "", recurs: false }, this.shell.state, {
      change: (changed) => this.shell.change(changed),
      copy: (text) => void copyAndSay(text, this.shell),
    });
    this.shell.menu.open(x, y, name, items);
    return true;
  }
}
