// SPDX-License-Identifier: Apache-2.0
// Functions by how much they changed, the ones that chance explains in grey and last.

import type { DiffAnswer, DiffFunction } from "../../server/api";
import { el } from "../../widgets/dom";
import { collapseArguments, formatCount, formatPercent, formatValue } from "../../text/format";

const ROWS_AT_ONCE = 200;
const COLUMNS = ["name", "before", "after", "difference", "change"] as const;
type Column = (typeof COLUMNS)[number];

export interface DiffTableEvents {
  pick(name: string): void;
  point(name: string | null): void;
}

// A value as norm has it. per_second of nanoseconds is CPUs or threads.
export function normText(answer: DiffAnswer, value: number): string {
  if (answer.norm === "share") {
    return value === 0 ? "0 %" : formatPercent(value, 1);
  }
  if (answer.norm === "raw") {
    return formatValue(Math.round(value), answer.unit);
  }
  if (answer.unit !== "nanoseconds") {
    return `${formatValue(Math.round(value), answer.unit)}/s`;
  }
  const parallel = value / 1e9;
  if (parallel > 0 && parallel < 0.0005) {
    return "< 0.001";
  }
  return `${parallel === 0 ? "0" : parallel.toFixed(3)}${answer.type === "on-cpu" ? " CPUs" : ""}`;
}

export function changeText(change: number | null): string {
  if (change === null) {
    return "new";
  }
  if (change <= -1) {
    return "gone";
  }
  if (change >= 9) {
    return `× ${(change + 1).toFixed(change >= 99 ? 0 : 1)}`;
  }
  return `${change > 0 ? "+" : change < 0 ? "−" : ""}${(100 * Math.abs(change)).toFixed(1)} %`;
}

export class DiffTable {
  readonly element = el("section", { class: "diff-table", "aria-label": "Functions by change" });
  private readonly filter = el("input", {
    type: "text",
    placeholder: "Filter functions and modules",
    "aria-label": "Filter functions and modules",
    spellcheck: "false",
    autocomplete: "off",
  });
  private readonly note = el("span", { class: "quiet", role: "status" });
  private readonly heads = new Map<Column, HTMLElement>();
  private readonly body = el("tbody");
  private readonly more = el("button", { type: "button", hidden: "" }, "Show more");
  private answer: DiffAnswer | null = null;
  private column: Column = "difference";
  private upwards = false;
  private limit = ROWS_AT_ONCE;

  constructor(private readonly events: DiffTableEvents) {
    const row = el("tr");
    for (const column of COLUMNS) {
      const button = el("button", { type: "button" }, column === "name" ? "function" : column);
      button.addEventListener("click", () => this.sortBy(column));
      const head = el("th", { scope: "col", class: column === "name" ? "name" : "" }, button);
      this.heads.set(column, head);
      row.append(head);
    }
    this.filter.addEventListener("input", () => this.fill());
    this.more.addEventListener("click", () => {
      this.limit += 5 * ROWS_AT_ONCE;
      this.fill();
    });
    this.body.addEventListener("mouseleave", () => this.events.point(null));
    const table = el("table", {}, el("thead", {}, row), this.body);
    this.element.append(
      el("div", { class: "tools" }, this.filter, this.note),
      el("div", { class: "scroller" }, table, this.more),
    );
  }

  show(answer: DiffAnswer | null): void {
    this.answer = answer;
    this.limit = ROWS_AT_ONCE;
    this.fill();
  }

  focusFilter(): void {
    this.filter.focus();
  }

  private sortBy(column: Column): void {
    this.upwards = column === this.column ? !this.upwards : column === "name";
    this.column = column;
    this.fill();
  }

  private keyOf(f: DiffFunction): number {
    switch (this.column) {
      case "before":
        return f.before;
      case "after":
        return f.after;
      case "change":
        return f.change ?? Infinity;
      case "difference":
      case "name":
        return Math.abs(f.after - f.before);
    }
  }

  private wanted(functions: DiffFunction[]): DiffFunction[] {
    const text = this.filter.value.trim().toLowerCase();
    const kept = functions.filter(
      (f) => f.name.toLowerCase().includes(text) || f.module.toLowerCase().includes(text),
    );
    const sign = this.upwards ? 1 : -1;
    if (this.column === "name") {
      return kept.sort((a, b) => sign * (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
    }
    return kept.sort(
      (a, b) =>
        (this.column === "difference" ? Number(b.significant) - Number(a.significant) : 0) ||
        sign * (this.keyOf(a) - this.keyOf(b)),
    );
  }

  private fill(): void {
    for (const [column, head] of this.heads) {
      const order = column !== this.column ? "none" : this.upwards ? "ascending" : "descending";
      head.setAttribute("aria-sort", order);
    }
    const { answer } = this;
    const functions = answer === null ? [] : this.wanted(answer.functions);
    const shown = functions.slice(0, this.limit);
    this.body.replaceChildren(...shown.map((f) => this.row(answer as DiffAnswer, f)));
    this.more.hidden = functions.length <= shown.length;
    this.note.textContent = answer === null ? "" : this.noteOf(answer, functions.length);
  }

  private noteOf(answer: DiffAnswer, count: number): string {
    const significant = answer.noise.significant;
    const left = answer.functions_left_out;
    return (
      `${formatCount(significant)} of ${formatCount(count)} changed by more than chance` +
      (left > 0 ? `; ${formatCount(left)} not shown` : "")
    );
  }

  private row(answer: DiffAnswer, f: DiffFunction): HTMLElement {
    const title = [f.name, f.module, f.build_id].filter((text) => text !== "").join("\n");
    const button = el("button", { type: "button", class: "link", title }, el("bdi", {}, collapseArguments(f.name)));
    button.addEventListener("click", () => this.events.pick(f.name));
    const difference = f.after - f.before;
    const sign = difference > 0 ? "+" : difference < 0 ? "−" : "";
    const why = f.significant
      ? `Chance alone: q = ${(f.q ?? 0).toPrecision(2)}, ${formatCount(f.base_samples)} → ${formatCount(f.samples)} samples`
      : `Within noise: ${formatCount(f.base_samples)} → ${formatCount(f.samples)} samples`;
    const number = (text: string) => el("td", { class: "number" }, text);
    const row = el(
      "tr",
      { class: f.significant ? (difference > 0 ? "more" : "less") : "noise", title: why },
      el(
        "td",
        { class: "name" },
        el("div", { class: "line" }, button, el("span", { class: "quiet" }, f.module)),
      ),
      number(normText(answer, f.before)),
      number(normText(answer, f.after)),
      number(`${sign}${normText(answer, Math.abs(difference))}`),
      number(f.significant ? changeText(f.change) : `${changeText(f.change)} ~`),
    );
    row.addEventListener("mouseenter", () => this.events.point(f.name));
    return row;
  }
}
