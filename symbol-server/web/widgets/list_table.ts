// SPDX-License-Identifier: Apache-2.0
// A list of any length as a table: only the rows in sight are elements. One row may be chosen; heads
// order. What the rows are and where choices go is the caller's.

import { el, type Child } from "./dom";
import { nextOrder, orderOf, sorted, type Ordered } from "./list_order";

export interface Column<T> extends Ordered<T> {
  head: string;
  title: string;
  kind: "name" | "text" | "number";
  cell(row: T): Child[];
}

export interface ListEvents<T> {
  idOf(row: T): string;
  pick(id: string): void;
  orderBy(order: string): void;
}

const ROW_PX = 28; // as style/list.css has it
const BEYOND = 12; // rows made above and below what is in sight

export class ListTable<T> {
  readonly element: HTMLElement;
  private readonly heads: HTMLTableCellElement[];
  private readonly table: HTMLTableElement;
  private readonly body = el("tbody");
  private readonly above = el("tbody", { "aria-hidden": "true" });
  private readonly below = el("tbody", { "aria-hidden": "true" });
  private readonly made = new Map<string, HTMLTableRowElement>();
  private rows: T[] = [];
  private chosen = "";
  private order = "";

  constructor(
    label: string,
    private readonly columns: readonly Column<T>[],
    private readonly events: ListEvents<T>,
  ) {
    this.heads = columns.map((column) => this.head(column));
    const head = el("thead", {}, el("tr", { "aria-rowindex": "1" }, ...this.heads));
    this.table = el("table", { "aria-label": label }, head, this.above, this.body, this.below);
    this.element = el("div", { class: "list-scroller", tabindex: "0", role: "region", "aria-label": label }, this.table);
    this.element.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  show(rows: readonly T[], order: string, chosen: string): void {
    this.rows = sorted(rows, this.columns, order);
    this.order = order;
    this.chosen = chosen;
    const { column, isReversed } = orderOf(this.columns, order);
    this.columns.forEach(({ key, kind }, i) => {
      if (key === column.key) {
        const isRising = (kind !== "number") !== isReversed;
        this.heads[i].setAttribute("aria-sort", isRising ? "ascending" : "descending");
      } else {
        this.heads[i].removeAttribute("aria-sort");
      }
    });
    this.table.setAttribute("aria-rowcount", String(this.rows.length + 1));
    const focused = this.focusedId();
    this.made.clear();
    this.draw();
    if (focused !== null) {
      this.made.get(focused)?.querySelector("button")?.focus({ preventScroll: true });
    }
  }

  // To the row after (1) or before (-1) the chosen one, and so on.
  move(by: number): void {
    const at = this.rows.findIndex((row) => this.events.idOf(row) === this.chosen);
    const to = Math.max(0, Math.min(this.rows.length - 1, at + by)); // none is before the first
    if (this.rows.length > 0) {
      this.events.pick(this.events.idOf(this.rows[to]));
    }
  }

  get length(): number {
    return this.rows.length;
  }

  // The chosen row into sight.
  reveal(): void {
    const at = this.rows.findIndex((row) => this.events.idOf(row) === this.chosen);
    if (at < 0) {
      return;
    }
    const { scrollTop, clientHeight } = this.element;
    const top = at * ROW_PX;
    const room = clientHeight - 2 * ROW_PX; // below the heads
    if (top < scrollTop || top > scrollTop + room) {
      this.element.scrollTop = Math.max(0, top < scrollTop ? top : top - room);
    }
  }

  private head(column: Column<T>): HTMLTableCellElement {
    const button = el("button", { type: "button", title: column.title }, column.head);
    button.addEventListener("click", () => this.events.orderBy(nextOrder(this.order, column.key)));
    return el("th", { scope: "col", class: `${column.kind} col-${column.key}` }, button);
  }

  private focusedId(): string | null {
    for (const [id, row] of this.made) {
      if (row.contains(document.activeElement)) {
        return id;
      }
    }
    return null;
  }

  private draw(): void {
    const { scrollTop, clientHeight } = this.element;
    const from = Math.max(0, Math.floor(scrollTop / ROW_PX) - BEYOND);
    const until = Math.min(this.rows.length, Math.ceil((scrollTop + clientHeight) / ROW_PX) + BEYOND);
    const wanted = this.rows.slice(from, until).map((row, i) => this.rowOf(row, from + i));
    const kept = new Set(wanted);
    for (const [id, row] of this.made) {
      if (!kept.has(row)) {
        row.remove();
        this.made.delete(id);
      }
    }
    // Rows that stay are not moved: the focus would be lost.
    wanted.forEach((row, i) => {
      if (this.body.children[i] !== row) {
        this.body.insertBefore(row, this.body.children[i] ?? null);
      }
    });
    while (this.body.children.length > wanted.length) {
      this.body.lastElementChild?.remove();
    }
    space(this.above, from);
    space(this.below, this.rows.length - until);
  }

  private rowOf(row: T, at: number): HTMLTableRowElement {
    const id = this.events.idOf(row);
    const known = this.made.get(id);
    if (known !== undefined) {
      return known;
    }
    const cells = this.columns.map((column) =>
      el("td", { class: `${column.kind} col-${column.key}` }, ...column.cell(row)),
    );
    const made = el("tr", { "aria-rowindex": String(at + 2), "data-id": id, class: at % 2 === 1 ? "odd" : "" }, ...cells);
    if (id === this.chosen) {
      made.setAttribute("aria-current", "true");
    }
    made.addEventListener("click", (e) => {
      if (!(e.target as Element).closest("a")) {
        this.events.pick(id);
      }
    });
    this.made.set(id, made);
    return made;
  }
}

// So many rows that are not made take their room.
function space(body: HTMLElement, rows: number): void {
  if (rows === 0) {
    body.replaceChildren();
    return;
  }
  const row = (body.firstElementChild as HTMLElement | null) ?? el("tr", {}, el("td"));
  row.style.height = `${rows * ROW_PX}px`;
  if (!row.isConnected) {
    body.append(row);
  }
}
