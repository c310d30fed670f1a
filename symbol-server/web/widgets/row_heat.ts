// SPDX-License-Identifier: Apache-2.0
// Values over time, a row for each of what has them: names on the left, cells on the right. A click takes a
// cell, a drag or Shift and the arrows several of a row, Enter takes them; the right button, 'm' or a finger
// held still opens the row's menu.

import { clearCanvas, onWidth } from "./cell_canvas";
import { el } from "./dom";
import { CLICK, placeCard, shade } from "./heat_map";
import { onLongPress } from "./long_press";
import { formatSpan, formatTime } from "../text/format";
import { tickText, timeTicks } from "./time_scale";

export interface RowHeatData {
  first: number; // start of the first column, unix milliseconds
  column_ms: number;
  columns: number;
  most: number; // has the darkest cells; so has what is above it
  rows: { name: string; name_link: HTMLElement; isRest: boolean; values: ArrayLike<number> }[];
}

export interface RowHeatEvents {
  take(row: number, first: number, last: number): void; // columns
  menu(row: number, x: number, y: number): boolean; // false: the row has none
  words(row: number, first: number, last: number): string;
}

const ROW = 20; // pixels, as style/time.css has it
const STEPS: Record<string, [down: number, right: number]> = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const TICK = 90; // pixels from one time to the next, at least

export class RowHeat {
  readonly element: HTMLElement;
  private readonly names = el("ol");
  private readonly axis = el("div", { class: "axis", "aria-hidden": "true" });
  private readonly canvas = el("canvas", {
    tabindex: "0",
    role: "application",
    "aria-label": "Functions over time. Arrow keys move the cursor, Shift and arrows select, Enter shows the flame graph, m opens the menu.",
  });
  private readonly plot = el("div", { class: "cells" }, this.canvas);
  private readonly card = el("div", { class: "card row-card", hidden: "" });
  private readonly spoken = el("div", { class: "hidden-for-eyes", "aria-live": "polite" });
  private data: RowHeatData | null = null;
  private at: { row: number; column: number; anchor: number } | null = null;
  private pressedAt: { x: number; y: number; row: number } | null = null;
  private dark = false;
  private width = 0;

  constructor(private readonly events: RowHeatEvents) {
    this.element = el("div", { class: "row-heat" }, el("div"), this.axis, this.names, this.plot, this.card, this.spoken);
    onWidth(this.plot, (width) => {
      this.width = width;
      this.draw();
    });
    this.canvas.addEventListener("pointermove", (e) => this.moved(e));
    this.canvas.addEventListener("pointerleave", () => this.forget());
    this.canvas.addEventListener("blur", () => this.forget());
    this.canvas.addEventListener("pointerdown", (e) => this.pressed(e));
    this.canvas.addEventListener("pointerup", (e) => this.released(e));
    this.canvas.addEventListener("keydown", (e) => this.key(e));
    this.element.addEventListener("contextmenu", (e) => {
      // By the menu key nothing is pointed at.
      const row = e.button === 2 ? this.rowAt(e.clientY) : -1;
      if (row >= 0 && this.menuOf(row, e.clientX, e.clientY)) {
        e.preventDefault();
      }
    });
    onLongPress(this.element, (x, y) => this.menuOf(this.rowAt(y), x, y));
  }

  show(data: RowHeatData): void {
    this.data = data;
    this.at = null;
    this.card.hidden = true;
    this.names.replaceChildren(...data.rows.map(({ name_link, isRest }) => el("li", isRest ? { class: "quiet" } : {}, name_link)));
    this.draw();
  }

  setTheme(dark: boolean): void {
    this.dark = dark;
    this.draw();
  }

  private draw(): void {
    const { data, width, canvas } = this;
    const cleared = data === null ? null : clearCanvas(canvas, width, ROW * data.rows.length);
    if (data === null || cleared === null) {
      return;
    }
    const { context, style, ratio } = cleared;
    const wide = canvas.width / data.columns;
    const gap = wide > 4 ? 1 : 0;
    const high = Math.round(ROW * ratio) - 1;
    data.rows.forEach(({ values, isRest }, row) => {
      const y = Math.round(row * ROW * ratio);
      for (let column = 0; column < data.columns; column++) {
        if (values[column] > 0) {
          const x = Math.round(column * wide);
          const part = Math.min(1, values[column] / Math.max(Number.MIN_VALUE, data.most));
          context.globalAlpha = isRest ? 0.15 + 0.6 * part : 1;
          context.fillStyle = isRest ? style.getPropertyValue("--quiet") : shade(part, this.dark);
          context.fillRect(x, y, Math.max(1, Math.round((column + 1) * wide) - x - gap), high);
        }
      }
    });
    context.globalAlpha = 1;
    this.drawCursor(context, wide, ratio, style.getPropertyValue("--text"));
    this.drawAxis(data);
  }

  private drawCursor(context: CanvasRenderingContext2D, wide: number, ratio: number, ink: string): void {
    if (this.at !== null) {
      const [first, last] = this.selected(this.at);
      context.strokeStyle = ink;
      context.lineWidth = 2;
      context.strokeRect(first * wide, this.at.row * ROW * ratio, Math.max(3, (last - first + 1) * wide), ROW * ratio - 1);
    }
  }

  private drawAxis({ first, column_ms, columns }: RowHeatData): void {
    const until = first + column_ms * columns;
    const marks = timeTicks(first, until, Math.max(1, Math.floor(this.width / TICK))).map((time) => {
      const mark = el("span", {}, tickText(time, first, until));
      mark.style.left = `${((100 * (time - first)) / (until - first)).toFixed(2)}%`;
      return mark;
    });
    this.axis.replaceChildren(...marks);
  }

  private selected({ column, anchor }: { column: number; anchor: number }): [number, number] {
    const from = anchor < 0 ? column : anchor;
    return [Math.min(from, column), Math.max(from, column)];
  }

  // −1: of none.
  private rowAt(y: number): number {
    const row = Math.floor((y - this.canvas.getBoundingClientRect().top) / ROW);
    return this.data !== null && row >= 0 && row < this.data.rows.length ? row : -1;
  }

  private columnAt(x: number): number {
    const { columns } = this.data as RowHeatData;
    const box = this.canvas.getBoundingClientRect();
    return Math.max(0, Math.min(columns - 1, Math.floor(((x - box.left) / box.width) * columns)));
  }

  private moved(e: PointerEvent): void {
    const row = this.pressedAt?.row ?? this.rowAt(e.clientY);
    if (row >= 0) {
      this.moveTo(row, this.columnAt(e.clientX), this.pressedAt === null ? -1 : (this.at?.anchor ?? -1), false);
    }
  }

  private moveTo(row: number, column: number, anchor: number, speak: boolean): void {
    const { at } = this;
    if (at !== null && at.row === row && at.column === column && at.anchor === anchor) {
      return;
    }
    this.at = { row, column, anchor };
    this.draw();
    this.showCard(this.data as RowHeatData, this.at);
    if (speak) {
      this.spoken.textContent = this.card.innerText;
    }
  }

  private forget(): void {
    if (this.pressedAt === null && this.at !== null) {
      this.at = null;
      this.card.hidden = true;
      this.draw();
    }
  }

  private showCard({ first, column_ms, columns, rows }: RowHeatData, at: { row: number; column: number; anchor: number }): void {
    const [from, to] = this.selected(at);
    const ms = (to - from + 1) * column_ms;
    this.card.replaceChildren(
      el("strong", {}, el("bdi", {}, rows[at.row].name)),
      el("div", {}, `${formatTime(first + from * column_ms)}, ${formatSpan(ms)}: ${this.events.words(at.row, from, to)}`),
    );
    const box = this.canvas.getBoundingClientRect();
    placeCard(this.card, box.left + (at.column * box.width) / columns, box.top + at.row * ROW);
  }

  private pressed(e: PointerEvent): void {
    const row = this.rowAt(e.clientY);
    if (row >= 0 && e.button === 0) {
      this.canvas.setPointerCapture(e.pointerId);
      this.pressedAt = { x: e.clientX, y: e.clientY, row };
      const column = this.columnAt(e.clientX);
      this.moveTo(row, column, column, false);
    }
  }

  private released(e: PointerEvent): void {
    const from = this.pressedAt;
    this.pressedAt = null;
    if (from === null || this.at === null) {
      return;
    }
    const isDrag = Math.abs(e.clientX - from.x) > CLICK;
    // A finger that moved up or down scrolls.
    if (isDrag || Math.abs(e.clientY - from.y) <= CLICK) {
      this.take();
    } else {
      this.forget();
    }
  }

  private take(): void {
    if (this.at !== null) {
      const [first, last] = this.selected(this.at);
      this.events.take(this.at.row, first, last);
    }
  }

  private menuOf(row: number, x: number, y: number): boolean {
    this.pressedAt = null;
    this.card.hidden = true;
    return row >= 0 && this.events.menu(row, x, y);
  }

  private key(e: KeyboardEvent): void {
    const { data, at } = this;
    if (data === null || e.ctrlKey || e.altKey || e.metaKey) {
      return;
    }
    if (e.key in STEPS) {
      this.step(data, STEPS[e.key], e.shiftKey);
    } else if (at === null) {
      return;
    } else if (e.key === "Enter") {
      this.take();
    } else if (e.key === "m" || e.key === "ContextMenu") {
      const box = this.canvas.getBoundingClientRect();
      this.menuOf(at.row, box.left + (at.column * box.width) / data.columns, box.top + (at.row + 1) * ROW);
    } else if (e.key === "Escape") {
      this.forget();
    } else {
      return;
    }
    e.preventDefault();
    e.stopPropagation();
  }

  // The first one only shows where the cursor is.
  private step({ rows, columns }: RowHeatData, [down, right]: [number, number], isLonger: boolean): void {
    const at = this.at ?? { row: -down, column: -right, anchor: -1 };
    const row = Math.max(0, Math.min(rows.length - 1, at.row + down));
    const column = Math.max(0, Math.min(columns - 1, at.column + right));
    const anchor = !isLonger || down !== 0 || this.at === null ? -1 : at.anchor < 0 ? at.column : at.anchor;
    this.reveal(row);
    this.moveTo(row, column, anchor, true);
  }

  private reveal(row: number): void {
    this.names.children[row]?.scrollIntoView({ block: "nearest" });
  }
}
