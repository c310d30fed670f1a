// SPDX-License-Identifier: Apache-2.0
// Processes and functions by how much they changed, each with how sure that is.

import type { DiffAnswer, DiffFunction, DiffRow } from "../../server/api";
import { el, filterInput } from "../../widgets/dom";
import { withMenu } from "../../widgets/row_menu";
import { collapseArguments, formatCount } from "../../text/format";
import { ownerOf } from "../flame/function_rows";
import { changeText, confidenceText, differenceText, hostsText, intervalText, sampledSides, sidesText, summaryText } from "./diff_words";

const ROWS_AT_ONCE = 200;
const PROCESSES_AT_ONCE = 5;
const COLUMNS = {
  name: ["name", ""],
  difference: ["difference", "After minus before; below it, before and after"],
  change: ["change", "By before; below it, the interval that has the true change in 95 of 100 comparisons"],
  confidence: ["confidence", "What sampling alone says; below it, what the variation of the minutes says"],
} as const;
type Column = keyof typeof COLUMNS;

export interface DiffTableEvents {
  pick(name: string): void;
  point(name: string | null): void;
  menu(f: DiffFunction, x: number, y: number): void;
  linkToProcess(name: string): HTMLAnchorElement;
}

function confidenceOf({ recorded, sustained }: DiffRow): number {
  return (recorded ? 2 : 0) + { yes: 1.5, "too short": 0.5, no: 0 }[sustained];
}

// Two lines, the second one quiet.
function cell(column: Column, first: Node | string, second: string): HTMLElement {
  return el("td", { class: column }, el("div", {}, first), el("div", { class: "quiet" }, second));
}

export class DiffTable {
  readonly element = el("section", { class: "diff-table", "aria-label": "Processes and functions by change" });
  private readonly filter = filterInput("Filter functions and modules", "Filter functions and modules");
  private readonly note = el("span", { class: "quiet", role: "status" });
  private readonly summary = el("p", { class: "summary", role: "status" });
  private readonly heads = new Map<Column, HTMLElement>();
  private readonly processes = el("tbody", { class: "processes" });
  private readonly functions = el("tbody", { class: "functions" });
  private readonly more = el("button", { type: "button", hidden: "" }, "Show more");
  private answer: DiffAnswer | null = null;
  private column: Column = "difference";
  private upwards = false;
  private limit = ROWS_AT_ONCE;
  private allProcesses = false;

  constructor(private readonly events: DiffTableEvents) {
    const row = el("tr");
    for (const column of Object.keys(COLUMNS) as Column[]) {
      const [text, title] = COLUMNS[column];
      const button = el("button", { type: "button", ...(title === "" ? {} : { title }) }, text);
      button.addEventListener("click", () => this.sortBy(column));
      const head = el("th", { scope: "col", class: column }, button);
      this.heads.set(column, head);
      row.append(head);
    }
    this.filter.addEventListener("input", () => this.fill());
    this.more.addEventListener("click", () => {
      this.limit += 5 * ROWS_AT_ONCE;
      this.fill();
    });
    this.functions.addEventListener("mouseleave", () => this.events.point(null));
    const table = el("table", {}, el("thead", {}, row), this.processes, this.functions);
    this.element.append(
      this.summary,
      el("div", { class: "tools" }, this.filter, this.note),
      el("div", { class: "scroller" }, table, this.more),
    );
  }

  show(answer: DiffAnswer | null): void {
    this.answer = answer;
    this.limit = ROWS_AT_ONCE;
    this.allProcesses = false;
    this.summary.textContent = answer === null ? "" : [summaryText(answer), hostsText(answer)].join(" ").trim();
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

  // The server's order is that of the difference.
  private ordered<Row extends DiffRow>(rows: Row[]): Row[] {
    const sign = this.upwards ? 1 : -1;
    const size = (row: DiffRow) => Math.abs(row.after - row.before);
    const by: Record<Column, (a: Row, b: Row) => number> = {
      name: (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0),
      difference: (a, b) => size(a) - size(b),
      change: (a, b) => (a.change ?? Infinity) - (b.change ?? Infinity) || size(a) - size(b),
      confidence: (a, b) => confidenceOf(a) - confidenceOf(b) || size(a) - size(b),
    };
    return rows.sort((a, b) => sign * by[this.column](a, b));
  }

  private fill(): void {
    for (const [column, head] of this.heads) {
      const order = column !== this.column ? "none" : this.upwards ? "ascending" : "descending";
      head.setAttribute("aria-sort", order);
    }
    const { answer } = this;
    if (answer === null) {
      this.processes.replaceChildren();
      this.functions.replaceChildren();
      this.more.hidden = true;
      this.note.textContent = "";
      return;
    }
    this.fillProcesses(answer);
    this.fillFunctions(answer);
  }

  private fillProcesses(answer: DiffAnswer): void {
    const all = this.ordered(answer.processes.slice());
    const shown = all.slice(0, this.allProcesses ? undefined : PROCESSES_AT_ONCE);
    const rows = shown.map((row) => this.row(answer, row, this.events.linkToProcess(row.name), ""));
    this.processes.replaceChildren(...(all.length > 0 ? [this.title("processes", answer.processes_left_out), ...rows] : []));
    if (shown.length < all.length) {
      const button = el("button", { type: "button", class: "link" }, `${formatCount(all.length - shown.length)} more processes`);
      button.addEventListener("click", () => {
        this.allProcesses = true;
        this.fill();
        this.processes.querySelectorAll<HTMLElement>("a")[shown.length]?.focus();
      });
      this.processes.append(el("tr", {}, el("td", { colspan: "4" }, button)));
    }
  }

  private fillFunctions(answer: DiffAnswer): void {
    const text = this.filter.value.trim().toLowerCase();
    const has = ({ name, module }: DiffFunction) => name.toLowerCase().includes(text) || module.toLowerCase().includes(text);
    const wanted = this.ordered(answer.functions.filter(has));
    const rows = wanted.slice(0, this.limit).map((f) => this.functionRow(answer, f));
    this.functions.replaceChildren(this.title("functions", answer.functions_left_out), ...rows);
    this.more.hidden = wanted.length <= rows.length;
    this.note.textContent = `${formatCount(wanted.length)} ${wanted.length === 1 ? "function" : "functions"}`;
  }

  // Of a group of rows.
  private title(what: string, leftOut: number): HTMLElement {
    const left = leftOut > 0 ? el("span", { class: "quiet" }, `the ${formatCount(leftOut)} with the smallest changes are not listed`) : "";
    return el("tr", { class: "title" }, el("th", { scope: "rowgroup", colspan: "4" }, what, " ", left));
  }

  private functionRow(answer: DiffAnswer, f: DiffFunction): HTMLElement {
    const title = [f.signature ?? f.name, f.module, f.build_id].filter((text) => text !== "").join("\n");
    const button = el("button", { type: "button", class: "link", title }, el("bdi", {}, collapseArguments(f.name)));
    button.addEventListener("click", () => this.events.pick(f.name));
    const row = this.row(answer, f, button, ownerOf(f));
    row.addEventListener("mouseenter", () => this.events.point(f.name));
    return withMenu(row, (x, y) => this.events.menu(f, x, y));
  }

  private row(answer: DiffAnswer, row: DiffRow, name: HTMLElement, below: string): HTMLElement {
    const way = !row.recorded ? "noise" : row.after > row.before ? "more" : "less";
    const change = changeText(row.change);
    const isMark = row.state === "new" || row.state === "gone";
    const [first, second = ""] = confidenceText(row);
    return el(
      "tr",
      { class: way, title: sampledSides(answer, row) },
      cell("name", name, below),
      cell("difference", differenceText(answer, row), sidesText(answer, row)),
      cell("change", isMark ? el("strong", { class: "mark" }, change) : change, intervalText(row)),
      cell("confidence", first, second),
    );
  }
}
