// SPDX-License-Identifier: Apache-2.0
// Groups of threads side by side: on the CPU, waiting, in the run queue, blocked, and their memory.

import type { TimelineAnswer } from "../../server/api";
import { el, filterInput } from "../../widgets/dom";
import { formatCount, formatPercent, formatSampled, formatValue } from "../../text/format";
import type { Shell } from "../../shell/view";
import { narrowTo } from "../../shell/state";
import { withLabelsMenu } from "../labels_menu";
import { linkTo } from "../links";
import { rateOf } from "../rates";
import { reportedMs } from "../reported";
import { nameOf, wallRows, type WallRow } from "./wall_rows";

const ROWS_AT_ONCE = 100;

export const WORDS: Record<string, string> = {
  "on-cpu": "on CPU",
  "off-cpu": "waited",
  "run-queue": "run queue",
  "still-blocked": "still blocked",
};

export class WallTable {
  readonly element = el("section", { class: "wall-table", "aria-label": "Side by side" });
  private readonly filter = filterInput("Filter rows", "Filter");
  private readonly note = el("span", { class: "quiet", role: "status" });
  private readonly table = el("table");
  private readonly more = el("button", { type: "button", hidden: "" }, "Show all");
  private answers: TimelineAnswer[] = [];
  private groupBy = "";
  private isWhole = false;

  constructor(private readonly shell: Shell) {
    this.filter.addEventListener("input", () => this.fill());
    this.more.addEventListener("click", () => {
      this.isWhole = true;
      this.fill();
    });
    this.element.append(
      el("div", { class: "tools" }, el("h2", {}, "Side by side"), this.filter, this.note),
      el("div", { class: "scroller" }, this.table, this.more),
    );
  }

  // One answer for each type that there is, the columns in their order.
  show(answers: TimelineAnswer[], groupBy: string): void {
    this.answers = answers;
    this.groupBy = groupBy;
    this.fill();
  }

  adjust(): void {
    if (this.answers.length > 0) {
      this.fill();
    }
  }

  focusFilter(): void {
    this.filter.focus();
  }

  private sortedBy(): string {
    const { type } = this.shell.state;
    return this.answers.some((answer) => answer.type === type) ? type : "on-cpu";
  }

  private fill(): void {
    const rows = wallRows(this.answers, this.sortedBy());
    const text = this.filter.value.trim().toLowerCase();
    const wanted = rows.filter(({ labels }) => nameOf(labels, this.groupBy).toLowerCase().includes(text));
    const shown = this.isWhole ? wanted : wanted.slice(0, ROWS_AT_ONCE);
    const most = rows.reduce((a, row) => Math.max(a, this.valueOf(row, this.sortedBy())), 0);
    const group = this.groupBy === "" ? "all" : this.groupBy.replace(/,/g, ", ");
    const headings = el("tr", {}, el("th", { scope: "col", class: "name" }, group), ...this.heads());
    this.table.replaceChildren(
      el("thead", {}, headings),
      el("tbody", {}, ...shown.map((row) => this.row(row, most)), ...this.lastRow()),
    );
    this.more.hidden = shown.length === wanted.length;
    this.more.textContent = `Show all ${formatCount(wanted.length)}`;
    this.note.textContent = wanted.length === 0 && text !== "" ? "Nothing matches." : formatCount(wanted.length);
  }

  private heads(): HTMLElement[] {
    const sortedBy = this.sortedBy();
    return this.answers.map(({ type }) => {
      const link = linkTo(this.shell, { type }, { title: `Order by ${type}` }, WORDS[type] ?? type);
      return el("th", { scope: "col", ...(type === sortedBy ? { "aria-sort": "descending" } : {}) }, link);
    });
  }

  private wall(row: WallRow): number {
    return this.valueOf(row, "on-cpu") + this.valueOf(row, "off-cpu");
  }

  private valueOf(row: WallRow, type: string): number {
    return row.values.get(type)?.value ?? 0;
  }

  private row(row: WallRow, most: number): HTMLElement {
    const filter = narrowTo(this.shell.state, row.labels);
    const name = nameOf(row.labels, this.groupBy);
    const link = linkTo(this.shell, filter, { class: "line", title: `Only ${name}` }, el("bdi", {}, name));
    const cells = this.answers.map((answer) => this.cell(answer, row, filter));
    const made = el("tr", {}, el("td", { class: "name" }, link, this.bar(row, most)), ...cells);
    return withLabelsMenu(made, this.shell, name, row.labels, this.answers.map(({ type }) => type));
  }

  // What is sorted by, on one scale for all rows.
  private bar(row: WallRow, most: number): HTMLElement {
    const type = this.sortedBy();
    const bar = el("div", { class: `wall-bar ${type}`, "aria-hidden": "true" });
    bar.style.width = `${((100 * this.valueOf(row, type)) / Math.max(1, most)).toFixed(2)}%`;
    return bar;
  }

  private cell(answer: TimelineAnswer, row: WallRow, filter: ReturnType<typeof narrowTo>): HTMLElement {
    const found = row.values.get(answer.type);
    if (found === undefined) {
      return el("td", { class: "number quiet" }, "–");
    }
    const rate = rateOf(answer.type, answer.unit, "value");
    const wall = this.wall(row);
    const isPart = (answer.type === "on-cpu" || answer.type === "off-cpu") && wall > 0;
    const title = [
      `${answer.type}: ${rate.format(rate.of(found.value, reportedMs(answer)))}`,
      `${formatSampled(found.value, found.error, answer.unit)} in ${formatCount(found.samples)} samples`,
      ...(isPart ? [`${formatPercent(found.value, wall)} of on CPU and waited`] : []),
    ].join(", ");
    const link = linkTo(
      this.shell,
      { page: "graph", type: answer.type, ...filter, zoom: "" },
      { title },
      formatValue(found.value, answer.unit),
    );
    return el("td", { class: "number" }, link);
  }

  // What the answers had no room for is a row too.
  private lastRow(): HTMLElement[] {
    if (this.answers.every(({ other }) => other === undefined)) {
      return [];
    }
    const cells = this.answers.map(({ other, unit }) => {
      const text = other === undefined ? "" : `${formatValue(other.value, unit)} in ${formatCount(other.series)}`;
      return el("td", { class: "number quiet" }, text);
    });
    return [el("tr", {}, el("td", { class: "name quiet" }, "smaller ones"), ...cells)];
  }
}
