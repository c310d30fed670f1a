// SPDX-License-Identifier: Apache-2.0
// The functions by self or total value, as the server summed them before any cut. Any number of
// rows: only those on the screen are made. A row unfolds to the function's callers.

import type { TopAnswer, TopFunction } from "../../server/api";
import { byId, el } from "../../widgets/dom";
import { collapseArguments, formatCount, formatPercent, formatValue, shareError } from "../../text/format";
import { TOP_LIMIT } from "../../shell/state";
import { rowWindow, scrollTo } from "../../widgets/virtual_window";
import { COLUMNS, keyOf, ownerOf, rowsOf, wanted, wholeName, type Column, type TableRow } from "./function_rows";
import { onLongPress } from "../../widgets/long_press";
import type { MenuFunction } from "./frame_menu";
import type { Neighbour } from "./sandwich_trees";

const ROW_HEIGHT = 25; // pixels, as the style has it
const SPARE = 12;

export interface TableEvents {
  pick(name: string): void; // clicked: search it in the graph
  point(name: string | null): void; // pointed at: show where it is
  sort(column: Column): void;
  filter(text: string): void;
  sandwich(name: string): void;
  menu(f: MenuFunction, x: number, y: number): void;
  // Who calls it, the heaviest first.
  callers(f: TopFunction, signal: AbortSignal): Promise<Neighbour[]>;
}

export class FunctionTable {
  private readonly scroller = byId("top-scroller");
  private readonly table = byId("top-table");
  private readonly body = byId("top-body");
  private readonly above = byId("top-above");
  private readonly below = byId("top-below");
  private readonly filter = byId<HTMLInputElement>("top-filter");
  private readonly note = byId("top-note");
  private answer: TopAnswer | null = null;
  private of = ""; // whose shares they are, where that is to be said
  private column: Column = "self";
  private upwards = false;
  private functions: TopFunction[] = []; // those that the filter keeps, sorted
  private readonly unfolded = new Map<string, Neighbour[] | string>(); // by keyOf(); a text instead of callers
  private rows: TableRow[] = [];
  private at = 0; // the row that Tab leads to
  private asking = new AbortController();

  constructor(private readonly events: TableEvents) {
    this.filter.addEventListener("input", () => {
      this.arrange(true);
      this.events.filter(this.filter.value);
    });
    this.filter.addEventListener("keydown", (e) => {
      if (e.key === "ArrowDown" || e.key === "Enter") {
        e.preventDefault();
        this.focusRow(0);
      }
    });
    for (const column of COLUMNS) {
      byId(`top-by-${column}`).addEventListener("click", () => this.clicked(column));
    }
    this.scroller.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.scroller);
    this.body.addEventListener("mouseleave", () => this.events.point(null));
    this.body.addEventListener("keydown", (e) => this.key(e));
    this.body.addEventListener("click", (e) => this.click(e));
    this.body.addEventListener("mouseover", (e) => this.pointed(e));
    this.body.addEventListener("contextmenu", (e) => {
      // By the menu key nothing is pointed at.
      if (this.menuOf(this.rowOf(e.target), e.button === 2 ? e : null)) {
        e.preventDefault();
      }
    });
    onLongPress(this.body, (x, y, target) => this.menuOf(this.rowOf(target), { clientX: x, clientY: y }));
  }

  // of: the zoomed frame's name; "": they are of everything.
  show(answer: TopAnswer | null, of: string, isZoomed: boolean): void {
    this.answer = answer;
    this.of = of !== "" ? ` in ${of}` : isZoomed ? " of everything" : "";
    this.asking.abort();
    this.asking = new AbortController();
    this.unfolded.clear();
    this.arrange(false);
  }

  sortBy(text: string): void {
    const column = COLUMNS.find((known) => known === text) ?? "self";
    if (column !== this.column) {
      this.column = column;
      this.upwards = column === "name";
      this.arrange(true);
    }
  }

  filterBy(text: string): void {
    if (text !== this.filter.value) {
      this.filter.value = text;
      this.arrange(true);
    }
  }

  focusFilter(): void {
    this.filter.focus();
    this.filter.select();
  }

  // Whether the server has more functions than it was asked for: then another order is another
  // list.
  get isPartial(): boolean {
    return this.answer !== null && this.answer.functions.length >= TOP_LIMIT;
  }

  private clicked(column: Column): void {
    if (column === this.column) {
      this.upwards = !this.upwards;
      this.arrange(true);
    } else {
      this.events.sort(column);
    }
  }

  private arrange(toTop: boolean): void {
    for (const column of COLUMNS) {
      const order = column !== this.column ? "none" : this.upwards ? "ascending" : "descending";
      byId(`top-by-${column}`).closest("th")?.setAttribute("aria-sort", order);
    }
    const { answer } = this;
    this.functions = answer === null ? [] : wanted(answer.functions, this.filter.value, this.column, this.upwards);
    if (toTop) {
      this.scroller.scrollTop = 0;
      this.at = 0;
    }
    const count = formatCount(this.functions.length);
    const known = this.isPartial ? "the hottest " : "";
    const one = this.functions.length === 1 ? "1 function" : `${known}${count} functions`;
    this.note.textContent = answer === null ? "" : this.functions.length === 0 ? "No function matches." : one + this.of;
    this.unfold();
  }

  private unfold(): void {
    this.rows = rowsOf(this.functions, this.unfolded);
    this.table.setAttribute("aria-rowcount", String(this.rows.length + 1));
    this.at = Math.min(this.at, Math.max(0, this.rows.length - 1));
    this.draw();
  }

  private draw(): void {
    const focused = this.body.contains(document.activeElement);
    const { scrollTop, clientHeight } = this.scroller;
    const { first, end } = rowWindow(scrollTop, clientHeight, ROW_HEIGHT, this.rows.length, SPARE);
    this.above.style.height = `${first * ROW_HEIGHT}px`;
    this.below.style.height = `${(this.rows.length - end) * ROW_HEIGHT}px`;
    this.body.replaceChildren(...this.rows.slice(first, end).map((row, i) => this.made(row, first + i)));
    if (focused) {
      this.elementOf(this.at)?.focus({ preventScroll: true });
    }
  }

  private elementOf(row: number): HTMLElement | null {
    return this.body.querySelector<HTMLElement>(`[data-row="${row}"]`);
  }

  private made(row: TableRow, at: number): HTMLTableRowElement {
    const made = row.kind === "function" ? this.functionRow(row.function) : this.callerRow(row);
    made.dataset.row = String(at);
    made.setAttribute("aria-rowindex", String(at + 2));
    made.tabIndex = at === this.at ? 0 : -1;
    made.classList.toggle("odd", at % 2 === 1);
    return made;
  }

  private amount(value: number, whole: number, error?: number): HTMLElement {
    const unit = this.answer?.unit ?? "";
    const text = unit === "samples" ? formatCount(value) : formatValue(value, unit);
    const off = shareError(value, whole, error, this.answer?.accounting.error);
    const share = formatPercent(value, whole);
    const title = [share, off, "·", text].filter((part) => part !== "").join(" ");
    return el("td", { class: "number", title }, share, el("span", { class: "off" }, off), el("span", { class: "quiet" }, text));
  }

  private functionRow(f: TopFunction): HTMLTableRowElement {
    const all = this.answer?.accounting.value ?? 0;
    const where = [f.module, f.file === "" ? "" : f.line > 0 ? `${f.file}:${f.line}` : f.file];
    const title = [wholeName(f), ...where, f.build_id].filter((text) => text !== "").join("\n");
    const isOpen = this.unfolded.has(keyOf(f));
    const unfold = el(
      "button",
      { type: "button", class: "unfold", tabindex: "-1", "aria-expanded": String(isOpen), "aria-label": `callers of ${f.name}`, title: "Who calls it (→)" },
      isOpen ? "▾" : "▸",
    );
    const name = el("button", { type: "button", class: "link", tabindex: "-1", title }, collapseArguments(f.name));
    const bar = el("div", { class: "bar" });
    const share = all > 0 ? f[this.column === "total" ? "total" : "self"] / all : 0;
    bar.style.width = `${Math.min(100, 100 * share)}%`;
    const line = el("div", { class: "line" }, unfold, name, el("span", { class: "quiet" }, ownerOf(f)), more(f.name));
    return el("tr", {}, el("td", { class: "name" }, bar, line), this.amount(f.self, all, f.self_error), this.amount(f.total, all, f.total_error));
  }

  // What a caller has of the function's total.
  private callerRow(row: Exclude<TableRow, { kind: "function" }>): HTMLTableRowElement {
    if (row.kind === "text") {
      const cell = el("td", { class: "name", colspan: "3" }, el("div", { class: "line from" }, row.text));
      return el("tr", { class: "caller quiet" }, cell);
    }
    const { caller, function: f } = row;
    const name = el("button", { type: "button", class: "link", tabindex: "-1", title: wholeName(caller) }, collapseArguments(caller.name));
    const line = el("div", { class: "line from" }, el("span", { class: "quiet" }, "from"), name, el("span", { class: "quiet" }, caller.module), more(caller.name));
    return el("tr", { class: "caller" }, el("td", { class: "name" }, line), el("td"), this.amount(caller.value, f.total));
  }

  private rowOf(target: EventTarget | null): number {
    const row = target instanceof Element ? target.closest<HTMLElement>("tr")?.dataset.row : undefined;
    return row === undefined ? -1 : Number(row);
  }

  private nameOf(at: number): string | null {
    return this.functionAt(at)?.name ?? null;
  }

  private functionAt(at: number): { name: string; signature?: string; module: string } | null {
    const row = this.rows[at];
    return row === undefined || row.kind === "text" ? null : row.kind === "function" ? row.function : row.caller;
  }

  // Its menu, where it was pointed at, else below the row; false: it has none.
  private menuOf(at: number, pointer: { clientX: number; clientY: number } | null): boolean {
    const row = this.rows[at];
    if (row === undefined || row.kind === "text") {
      return false;
    }
    this.at = at;
    const box = this.elementOf(at)?.getBoundingClientRect();
    const x = pointer?.clientX ?? (box?.left ?? 0) + 24;
    const y = pointer?.clientY ?? box?.bottom ?? 0;
    const { name, signature, module } = row.kind === "function" ? row.function : row.caller;
    const f = row.kind === "function" ? row.function : { build_id: "", file: "", line: 0 };
    const place = f.file === "" || f.line === 0 ? f.file : `${f.file}:${f.line}`;
    this.events.menu({ name, signature, module, build_id: f.build_id, place, stack: "", recurs: false }, x, y);
    return true;
  }

  private pointed(e: Event): void {
    this.events.point(this.nameOf(this.rowOf(e.target)));
  }

  private click(e: MouseEvent): void {
    const at = this.rowOf(e.target);
    const name = this.nameOf(at);
    if (name === null) {
      return;
    }
    this.at = at;
    if (e.target instanceof Element && e.target.closest(".unfold") !== null) {
      this.toggle(at);
    } else if (e.target instanceof Element && e.target.closest(".more") !== null) {
      const { left, bottom } = (e.target.closest(".more") as Element).getBoundingClientRect();
      this.menuOf(at, { clientX: left, clientY: bottom });
    } else {
      this.events.pick(name);
    }
  }

  private key(e: KeyboardEvent): void {
    const name = this.nameOf(this.at);
    if (e.ctrlKey || e.metaKey || e.altKey || this.rows.length === 0) {
      return;
    }
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW_HEIGHT) - 2);
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (e.key in steps) {
      this.focusRow(this.at + steps[e.key]);
    } else if (e.key === "Enter" && name !== null) {
      this.events.pick(name);
    } else if (e.key === "s" && name !== null) {
      this.events.sandwich(wholeName(this.functionAt(this.at) ?? { name }));
    } else if (e.key === "m" && name !== null) {
      this.menuOf(this.at, null);
    } else if (e.key === "ArrowRight" || e.key === "ArrowLeft") {
      const row = this.rows[this.at];
      if (row.kind === "function" && this.unfolded.has(keyOf(row.function)) === (e.key === "ArrowLeft")) {
        this.toggle(this.at);
      }
    } else {
      return;
    }
    e.preventDefault();
  }

  private focusRow(row: number): void {
    this.at = Math.max(0, Math.min(this.rows.length - 1, row));
    const { scrollTop, clientHeight } = this.scroller;
    const head = byId("top-by-name").offsetHeight;
    this.scroller.scrollTop = scrollTo(this.at, scrollTop, clientHeight, ROW_HEIGHT, head);
    this.draw();
    this.elementOf(this.at)?.focus({ preventScroll: true });
    this.events.point(this.nameOf(this.at));
  }

  private toggle(at: number): void {
    const row = this.rows[at];
    if (row?.kind !== "function") {
      return;
    }
    const key = keyOf(row.function);
    if (this.unfolded.delete(key)) {
      this.unfold();
      return;
    }
    this.unfolded.set(key, "Loading…");
    this.unfold();
    const { signal } = this.asking;
    this.events.callers(row.function, signal).then(
      (callers) => this.came(key, callers.length > 0 ? callers : "Nothing calls it: stacks begin here.", signal),
      (failure: unknown) => this.came(key, failure instanceof Error ? failure.message : String(failure), signal),
    );
  }

  private came(key: string, what: Neighbour[] | string, signal: AbortSignal): void {
    if (!signal.aborted && this.unfolded.has(key)) {
      this.unfolded.set(key, what);
      this.unfold();
    }
  }
}

function more(name: string): HTMLElement {
  const label = `menu of ${name}`;
  return el("button", { type: "button", class: "more", tabindex: "-1", "aria-label": label, "aria-haspopup": "menu", title: "Menu (m, or the right button)" }, "⋯");
}
