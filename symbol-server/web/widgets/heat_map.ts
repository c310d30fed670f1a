// SPDX-License-Identifier: Apache-2.0
// Samples by the second and by parts of it: a column is a second read downwards, as a page is read.
// A drag, or Shift and the arrows, selects all from one cell to another; Enter takes it.

import { clearCanvas, onWidth } from "./cell_canvas";
import { el } from "./dom";
import { formatCount, formatTime } from "../text/format";

export interface HeatData {
  from: number; // start of the first column, unix milliseconds
  column_ms: number;
  row_ms: number;
  columns: number;
  rows: number;
  samples: number; // in the cells: those that have a time
  most_samples: number; // in one cell
  cells: { column: number[]; row: number[]; samples: number[]; value: number[] };
}

export interface HeatEvents {
  take(from: number, until: number): void;
}

const HEIGHT = 300; // pixels, at least one for each row
const SHADES = 12;
export const CLICK = 3; // pixels; a shorter way is no drag
const CARD_AWAY = 14; // pixels from what it is of

// Of one hue, lightness alone tells more from less: it reads without colour too.
export function shade(part: number, dark: boolean): string {
  const step = Math.ceil(part * SHADES) / SHADES;
  return dark
    ? `hsl(${(30 + 18 * step).toFixed(0)},85%,${(18 + 52 * step).toFixed(0)}%)`
    : `hsl(${(30 - 18 * step).toFixed(0)},85%,${(90 - 55 * step).toFixed(0)}%)`;
}

// Beside a place of the window, and inside of it.
export function placeCard(card: HTMLElement, x: number, y: number): void {
  card.hidden = false;
  card.style.left = `${Math.max(4, Math.min(x + CARD_AWAY, window.innerWidth - card.offsetWidth - 4))}px`;
  card.style.top = `${Math.max(4, Math.min(y + CARD_AWAY, window.innerHeight - card.offsetHeight - 4))}px`;
}

export class HeatMap {
  readonly element = el("div", { class: "heat-map" });
  private readonly canvas = el("canvas", {
    tabindex: "0",
    role: "application",
    "aria-label":
      "Samples by second and part of a second. Arrow keys move the cursor, Shift and arrows select, Enter shows the flame graph.",
  });
  private readonly card = el("div", { class: "card heat-card", hidden: "" });
  private readonly spoken = el("div", { class: "hidden-for-eyes", "aria-live": "polite" });
  private data: HeatData | null = null;
  private counts = new Float64Array(0); // by cell, in the order of time
  private cursor = -1; // cell
  private anchor = -1;
  private pressedAt: [number, number] | null = null;
  private dark = false;
  private width = 0;

  constructor(private readonly events: HeatEvents) {
    this.element.append(this.canvas, this.card, this.spoken);
    onWidth(this.element, (width) => {
      this.width = width;
      this.draw();
    });
    this.canvas.addEventListener("pointermove", (e) => this.moveTo(this.cellAt(e), false));
    this.canvas.addEventListener("pointerleave", () => this.forget());
    this.canvas.addEventListener("blur", () => this.forget());
    this.canvas.addEventListener("pointerdown", (e) => this.pressed(e));
    this.canvas.addEventListener("pointerup", (e) => this.released(e));
    this.canvas.addEventListener("keydown", (e) => this.key(e));
  }

  show(data: HeatData): void {
    this.data = data;
    this.counts = new Float64Array(data.columns * data.rows);
    data.cells.column.forEach((column, i) => {
      if (column >= 0 && column < data.columns && data.cells.row[i] >= 0 && data.cells.row[i] < data.rows) {
        this.counts[column * data.rows + data.cells.row[i]] = data.cells.samples[i];
      }
    });
    this.cursor = this.anchor = -1;
    this.draw();
  }

  setTheme(dark: boolean): void {
    this.dark = dark;
    this.draw();
  }

  private draw(): void {
    const { data, width, canvas } = this;
    const cleared = data === null ? null : clearCanvas(canvas, width, Math.max(HEIGHT, data.rows));
    if (data === null || cleared === null) {
      return;
    }
    const { context, style } = cleared;
    const wide = canvas.width / data.columns;
    const high = canvas.height / data.rows;
    const gap = wide > 4 && high > 4 ? 1 : 0;
    for (let cell = 0; cell < this.counts.length; cell++) {
      if (this.counts[cell] > 0) {
        const x = Math.floor(cell / data.rows) * wide;
        const y = (cell % data.rows) * high;
        context.fillStyle = shade(this.counts[cell] / Math.max(1, data.most_samples), this.dark);
        const right = Math.round(x + wide);
        const bottom = Math.round(y + high);
        context.fillRect(Math.round(x), Math.round(y), Math.max(1, right - Math.round(x) - gap), Math.max(1, bottom - Math.round(y) - gap));
      }
    }
    this.drawSelection(context, data, wide, high, style.getPropertyValue("--text"));
  }

  private drawSelection(context: CanvasRenderingContext2D, data: HeatData, wide: number, high: number, ink: string): void {
    if (this.cursor < 0) {
      return;
    }
    const [first, last] = this.selected();
    context.strokeStyle = ink;
    context.fillStyle = ink;
    context.lineWidth = 2;
    context.globalAlpha = 0.2;
    for (let column = Math.floor(first / data.rows); column <= Math.floor(last / data.rows); column++) {
      const top = column === Math.floor(first / data.rows) ? first % data.rows : 0;
      const bottom = column === Math.floor(last / data.rows) ? last % data.rows : data.rows - 1;
      context.fillRect(column * wide, top * high, wide, (bottom - top + 1) * high);
    }
    context.globalAlpha = 1;
    const x = Math.floor(this.cursor / data.rows) * wide;
    context.strokeRect(x, (this.cursor % data.rows) * high, Math.max(3, wide), Math.max(3, high));
  }

  private selected(): [number, number] {
    const anchor = this.anchor < 0 ? this.cursor : this.anchor;
    return [Math.min(anchor, this.cursor), Math.max(anchor, this.cursor)];
  }

  private cellAt(e: PointerEvent): number {
    const data = this.data as HeatData;
    const box = this.canvas.getBoundingClientRect();
    const part = (value: number, size: number, count: number) =>
      Math.max(0, Math.min(count - 1, Math.floor((value / size) * count)));
    return part(e.clientX - box.left, box.width, data.columns) * data.rows + part(e.clientY - box.top, box.height, data.rows);
  }

  private timeOf(cell: number): number {
    const { from, column_ms, row_ms, rows } = this.data as HeatData;
    return from + Math.floor(cell / rows) * column_ms + (cell % rows) * row_ms;
  }

  private moveTo(cell: number, speak: boolean): void {
    if (this.data === null || cell === this.cursor) {
      return;
    }
    this.cursor = cell;
    this.draw();
    this.showCard(this.data);
    if (speak) {
      this.spoken.textContent = this.card.innerText;
    }
  }

  private forget(): void {
    this.cursor = this.anchor = -1;
    this.card.hidden = true;
    this.draw();
  }

  private showCard(data: HeatData): void {
    const [first, last] = this.selected();
    let samples = 0;
    for (let cell = first; cell <= last; cell++) {
      samples += this.counts[cell];
    }
    const at = (cell: number) => {
      const time = this.timeOf(cell);
      return `${formatTime(time)}.${String(time % 1000).padStart(3, "0")}`;
    };
    const text =
      first === last
        ? `${at(first)}, ${data.row_ms} ms: ${formatCount(samples)} samples`
        : `${at(first)} – ${at(last + 1)}: ${formatCount(samples)} samples`;
    this.card.replaceChildren(text);
    const box = this.canvas.getBoundingClientRect();
    const x = box.left + (Math.floor(this.cursor / data.rows) * box.width) / data.columns;
    placeCard(this.card, x, box.top + ((this.cursor % data.rows) * box.height) / data.rows);
  }

  private pressed(e: PointerEvent): void {
    if (this.data !== null && e.button === 0) {
      this.canvas.setPointerCapture(e.pointerId);
      this.pressedAt = [e.clientX, e.clientY];
      this.anchor = this.cursor = this.cellAt(e);
    }
  }

  private released(e: PointerEvent): void {
    const from = this.pressedAt;
    this.pressedAt = null;
    if (this.data === null || from === null) {
      return;
    }
    const isDrag = Math.hypot(e.clientX - from[0], e.clientY - from[1]) > CLICK;
    const [first, last] = this.selected();
    this.anchor = -1;
    if (isDrag) {
      this.take(first, last);
    }
  }

  private take(first: number, last: number): void {
    const { row_ms } = this.data as HeatData;
    this.events.take(this.timeOf(first), this.timeOf(last) + row_ms);
  }

  private key(e: KeyboardEvent): void {
    const { data } = this;
    if (data === null || e.ctrlKey || e.altKey || e.metaKey) {
      return;
    }
    const moves: Record<string, number> = {
      ArrowUp: -1,
      ArrowDown: 1,
      ArrowLeft: -data.rows,
      ArrowRight: data.rows,
    };
    if (e.key in moves) {
      const at = this.cursor < 0 ? 0 : this.cursor + moves[e.key];
      this.anchor = !e.shiftKey ? -1 : this.anchor < 0 ? Math.max(0, this.cursor) : this.anchor;
      this.moveTo(Math.max(0, Math.min(this.counts.length - 1, at)), true);
    } else if (e.key === "Enter" && this.cursor >= 0) {
      this.take(...this.selected());
    } else if (e.key === "Escape" && this.cursor >= 0) {
      this.forget();
    } else {
      return;
    }
    e.preventDefault();
    e.stopPropagation();
  }
}
