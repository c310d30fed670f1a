// SPDX-License-Identifier: Apache-2.0
// The functions by self or total value, as the server summed them before any cut.

import type { TopAnswer, TopFunction } from "./api";
import { byId, el } from "./dom";
import { collapseArguments, formatCount, formatPercent, formatValue } from "./format";
import { TOP_LIMIT } from "./state";

const ROWS_AT_ONCE = 200;

type Column = "self" | "total" | "name";
const COLUMNS: readonly Column[] = ["name", "self", "total"];

export interface TopEvents {
  pick(name: string): void; // clicked: search it in the graph
  point(name: string | null): void; // pointed at: show where it is
  sort(column: Column): void;
}

export class TopTable {
  private readonly body = byId("top-body");
  private readonly filter = byId<HTMLInputElement>("top-filter");
  private readonly note = byId("top-note");
  private readonly more = byId<HTMLButtonElement>("top-more");
  private answer: TopAnswer | null = null;
  private column: Column = "self";
  private upwards = false;
  private limit = ROWS_AT_ONCE;

  constructor(private readonly events: TopEvents) {
    this.filter.addEventListener("input", () => this.fill());
    this.more.addEventListener("click", () => {
      this.limit += 5 * ROWS_AT_ONCE;
      this.fill();
    });
    for (const column of COLUMNS) {
      byId(`top-by-${column}`).addEventListener("click", () => this.clicked(column));
    }
    this.body.addEventListener("mouseleave", () => this.events.point(null));
  }

  show(answer: TopAnswer | null): void {
    this.answer = answer;
    this.limit = ROWS_AT_ONCE;
    this.fill();
  }

  private clicked(column: Column): void {
    if (column === this.column) {
      this.upwards = !this.upwards;
      this.fill();
    } else {
      this.events.sort(column);
    }
  }

  sortBy(text: string): void {
    const column = COLUMNS.find((known) => known === text) ?? "self";
    if (column !== this.column) {
      this.column = column;
      this.upwards = column === "name";
      this.limit = ROWS_AT_ONCE;
      this.fill();
    }
  }

  // Whether the server has more functions than it was asked for: then another order is another
  // list.
  get isPartial(): boolean {
    return this.answer !== null && this.answer.functions.length >= TOP_LIMIT;
  }

  private wanted(functions: TopFunction[]): TopFunction[] {
    const text = this.filter.value.trim().toLowerCase();
    const kept =
      text === ""
        ? functions.slice()
        : functions.filter(
            (f) => f.name.toLowerCase().includes(text) || f.module.toLowerCase().includes(text),
          );
    const sign = this.upwards ? 1 : -1;
    const column = this.column;
    return kept.sort((a, b) =>
      column === "name"
        ? sign * (a.name < b.name ? -1 : a.name > b.name ? 1 : 0)
        : sign * (a[column] - b[column]),
    );
  }

  private fill(): void {
    for (const column of COLUMNS) {
      const order = column !== this.column ? "none" : this.upwards ? "ascending" : "descending";
      byId(`top-by-${column}`).closest("th")?.setAttribute("aria-sort", order);
    }
    const answer = this.answer;
    const functions = answer === null ? [] : this.wanted(answer.functions);
    const shown = functions.slice(0, this.limit);
    this.body.replaceChildren(...shown.map((f) => this.row(f)));
    const known = this.isPartial ? "the hottest " : "";
    this.more.hidden = functions.length <= shown.length;
    this.note.textContent =
      answer === null
        ? ""
        : functions.length === 0
          ? "No function matches."
          : `${shown.length} of ${known}${formatCount(functions.length)}`;
  }

  private row(f: TopFunction): HTMLTableRowElement {
    const answer = this.answer as TopAnswer;
    const all = answer.accounting.value;
    const amount = (value: number) =>
      el(
        "td",
        { class: "number" },
        formatPercent(value, all),
        el("span", { class: "quiet" }, formatValue(value, answer.unit)),
      );
    const where = [f.module, f.file === "" ? "" : f.line > 0 ? `${f.file}:${f.line}` : f.file];
    const title = [f.name, ...where, f.build_id].filter((text) => text !== "").join("\n");
    const button = el(
      "button",
      { type: "button", class: "link", title },
      collapseArguments(f.name),
    );
    const bar = el("div", { class: "bar" });
    const share = all > 0 ? f[this.column === "total" ? "total" : "self"] / all : 0;
    bar.style.width = `${Math.min(100, 100 * share)}%`;
    const line = el("div", { class: "line" }, button, el("span", { class: "quiet" }, f.module));
    const name = el("td", { class: "name" }, bar, line);
    const row = el("tr", {}, name, amount(f.self), amount(f.total));
    row.addEventListener("click", () => this.events.pick(f.name));
    row.addEventListener("mouseenter", () => this.events.point(f.name));
    return row;
  }
}
