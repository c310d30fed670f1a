// SPDX-License-Identifier: Apache-2.0
// Values over time as stacked areas. A drag, or Shift and the arrows, selects a range; the arrows
// alone move a cursor whose values are shown and spoken. Text and shapes only: nothing of the data
// becomes markup.

import { el, svg } from "./dom";
import { formatTime } from "../text/format";
import { MINUTE } from "../text/time";
import { seriesColour } from "./series_colours";
import { roundUp, tickText, timeTicks } from "./time_scale";

export interface TimeSeries {
  name: string;
  values: ArrayLike<number>; // one for each step
  errors?: ArrayLike<number>; // ± of these
}

export interface TimeMark {
  time: number;
  kind: "hot" | "build";
  text: string;
  run?(): void;
}

export interface TimeRange {
  name: string; // short, and a class of its shape in small letters
  from: number;
  until: number;
}

export interface TimeData {
  from: number; // of the first step, unix milliseconds
  step: number; // milliseconds
  count: number; // steps
  unit: string; // for round axis values: "bytes" or another
  format: (value: number) => string;
  series: TimeSeries[]; // the lowest first; one named "" has the colour of others
  other?: TimeSeries;
  lost?: TimeSeries; // hatched, above all others
  marks?: TimeMark[];
  ranges?: TimeRange[]; // shown with their names, one above the other where they overlap
}

export interface TimeEvents {
  brush(from: number, until: number): void;
  pick?(name: string): void; // a click on the legend
}

const HEIGHT = 120;
const LEFT = 64; // for the axis' values, at least
const LETTER = 6.6; // pixels of one of them, at most
const RIGHT = 8;
const BOTTOM = 20;
const TOP = 10;
const LOST_WORDS =
  "Time whose samples were taken and never reached the store, on the selected hosts: as many as were lost, each worth as much as the others are on average.";
const BRUSH_MIN = 4; // pixels; less is a click

let charts = 0; // ids of their patterns

export class TimeChart {
  readonly element = el("div", { class: "time-chart" });
  private left = LEFT;
  private readonly plot = svg("svg", {
    class: "plot",
    tabindex: "0",
    role: "application",
    "aria-label":
      "Values over time. Arrow keys move the cursor, Shift and arrows select a range, Enter shows it.",
  });
  private readonly card = el("div", { class: "card time-card", hidden: "" });
  private readonly legend = el("ul", { class: "time-legend", "aria-label": "Series" });
  private readonly spoken = el("div", { class: "hidden-for-eyes", "aria-live": "polite" });
  private data: TimeData | null = null;
  private dark = false;
  private width = 0;
  private cursor = -1; // step
  private anchor = -1; // step at which a selection began
  private readonly height: number;
  private readonly hatch = `lost-hatch-${charts++}`;

  constructor(
    private readonly events: TimeEvents,
    height = HEIGHT,
  ) {
    this.height = height;
    this.plot.setAttribute("height", String(height));
    this.element.append(this.plot, this.legend, this.card, this.spoken);
    new ResizeObserver(() => this.resized()).observe(this.element);
    this.plot.addEventListener("pointermove", (e) => this.pointed(e));
    this.plot.addEventListener("pointerleave", () => this.setCursor(-1, false));
    this.plot.addEventListener("pointerdown", (e) => this.pressed(e));
    this.plot.addEventListener("pointerup", (e) => this.released(e));
    this.plot.addEventListener("keydown", (e) => this.key(e));
    this.plot.addEventListener("blur", () => this.setCursor(-1, false));
  }

  show(data: TimeData): void {
    this.data = data;
    this.cursor = this.anchor = -1;
    this.draw();
    this.showLegend(data);
  }

  // Somebody is choosing a range.
  isBrushed(): boolean {
    return this.anchor >= 0;
  }

  focus(): void {
    this.plot.focus();
  }

  setTheme(dark: boolean): void {
    this.dark = dark;
    if (this.data !== null) {
      this.draw();
      this.showLegend(this.data);
    }
  }

  private resized(): void {
    if (this.element.clientWidth !== this.width) {
      this.width = this.element.clientWidth;
      this.draw();
    }
  }

  // --- places ---

  private inner(): number {
    return Math.max(1, this.width - this.left - RIGHT);
  }

  private xOf(step: number): number {
    return this.left + (this.inner() * step) / Math.max(1, (this.data as TimeData).count);
  }

  private stepAt(e: PointerEvent): number {
    const { count } = this.data as TimeData;
    const x = e.clientX - this.plot.getBoundingClientRect().left - this.left;
    return Math.max(0, Math.min(count - 1, Math.floor((x / this.inner()) * count)));
  }

  private timeOf(step: number): number {
    const data = this.data as TimeData;
    return data.from + step * data.step;
  }

  // --- drawing ---

  private draw(): void {
    const data = this.data;
    if (data === null || this.width === 0) {
      return;
    }
    this.plot.setAttribute("width", String(this.width));
    const all = data.other === undefined ? data.series : [...data.series, data.other];
    const base = new Float64Array(data.count);
    const areas: { values: Float64Array; below: Float64Array; colour: string }[] = [];
    all.forEach((series, i) => {
      const below = base.slice();
      for (let step = 0; step < data.count; step++) {
        base[step] += series.values[step] ?? 0;
      }
      const colour = seriesColour(series === data.other ? -1 : i, this.dark);
      areas.push({ values: base.slice(), below, colour });
    });
    const used = base.slice();
    for (let step = 0; step < data.count; step++) {
      base[step] += data.lost?.values[step] ?? 0;
    }
    const most = roundUp(base.reduce((a, b) => Math.max(a, b), 0), data.unit);
    const y = (value: number) => TOP + (this.height - TOP - BOTTOM) * (1 - value / most);
    const letters = Math.max(...[0, most / 2, most].map((value) => data.format(value).length));
    this.left = Math.max(LEFT, 10 + LETTER * letters);
    const shapes: SVGElement[] = [...this.axis(data, most, y)];
    for (const { values, below, colour } of areas) {
      shapes.push(svg("path", { d: this.area(values, below, y), fill: colour }));
    }
    if (data.lost !== undefined) {
      shapes.push(this.strokes(), svg("path", { class: "lost", d: this.area(base, used, y), fill: `url(#${this.hatch})` }));
    }
    shapes.push(...this.ranges(data), ...this.marks(data), this.selection());
    this.plot.replaceChildren(...shapes);
  }

  private strokes(): SVGElement {
    const stroke = svg("path", { class: "lost-stroke", d: "M-1,1L1,-1M0,7L7,0M6,8L8,6" });
    return svg("pattern", { id: this.hatch, width: "7", height: "7", patternUnits: "userSpaceOnUse" }, stroke);
  }

  // Steps are as wide as the time they stand for: a staircase, no slopes that nobody measured.
  private area(values: Float64Array, below: Float64Array, y: (value: number) => number): string {
    const parts: string[] = [];
    const count = values.length;
    for (let step = 0; step < count; step++) {
      const height = y(values[step]).toFixed(1);
      const x = this.xOf(step).toFixed(1);
      parts.push(`${step === 0 ? "M" : "L"}${x},${height}L${this.xOf(step + 1).toFixed(1)},${height}`);
    }
    for (let step = count - 1; step >= 0; step--) {
      const height = y(below[step]).toFixed(1);
      parts.push(`L${this.xOf(step + 1).toFixed(1)},${height}L${this.xOf(step).toFixed(1)},${height}`);
    }
    return parts.join("") + "Z";
  }

  private axis(data: TimeData, most: number, y: (value: number) => number): SVGElement[] {
    const out: SVGElement[] = [];
    for (const value of [0, most / 2, most]) {
      const at = y(value).toFixed(1);
      out.push(
        svg("line", { class: "grid", x1: `${this.left}`, x2: `${this.width - RIGHT}`, y1: at, y2: at }),
        svg("text", { class: "tick", x: `${this.left - 6}`, y: at, dy: ".35em", "text-anchor": "end" }, data.format(value)),
      );
    }
    const until = this.timeOf(data.count);
    for (const time of timeTicks(data.from, until, Math.max(2, this.inner() / 90))) {
      const x = this.left + (this.inner() * (time - data.from)) / (until - data.from);
      const at = x.toFixed(1);
      const bottom = this.height - BOTTOM;
      out.push(svg("line", { class: "grid", x1: at, x2: at, y1: `${bottom}`, y2: `${bottom + 4}` }));
      if (x > this.left + 14 && x < this.width - 24) {
        const text = tickText(time, data.from, until);
        out.push(svg("text", { class: "tick", x: at, y: `${this.height - 4}`, "text-anchor": "middle" }, text));
      }
    }
    return out;
  }

  private ranges(data: TimeData): SVGElement[] {
    const place = (time: number) => this.xOf(Math.max(0, Math.min(data.count, (time - data.from) / data.step)));
    return (data.ranges ?? []).map(({ name, from, until }, i) => {
      const x = place(from);
      const width = Math.max(2, place(until) - x);
      const box = { x: x.toFixed(1), y: "0", width: width.toFixed(1), height: `${this.height - BOTTOM}` };
      const text = { x: (x + width / 2).toFixed(1), y: `${11 + 12 * i}`, "text-anchor": "middle" };
      const title = svg("title", {}, `${name}: ${formatTime(from)} – ${formatTime(until)}`);
      return svg("g", { class: `range ${name.toLowerCase()}` }, title, svg("rect", box), svg("text", text, name));
    });
  }

  private marks(data: TimeData): SVGElement[] {
    return (data.marks ?? []).map((mark) => {
      const x = this.xOf((mark.time - data.from) / data.step);
      const shape = svg(
        "path",
        {
          class: `mark ${mark.kind}`,
          // A change points down, a new build is a square.
          d: `${mark.kind === "hot" ? `M${x - 5},0L${x + 5},0L${x},7Z` : `M${x - 4},0H${x + 4}V7H${x - 4}Z`} M${x},7V${this.height - BOTTOM}`,
        },
        svg("title", {}, `${formatTime(mark.time)}: ${mark.text}`),
      );
      shape.addEventListener("click", () => mark.run?.());
      return shape;
    });
  }

  private selection(): SVGElement {
    const [first, last] = this.selected();
    const x = this.xOf(first);
    return svg("rect", {
      class: this.anchor >= 0 ? "brush" : "cursor",
      x: x.toFixed(1),
      y: "0",
      width: this.cursor < 0 ? "0" : Math.max(1, this.xOf(last + 1) - x).toFixed(1),
      height: `${this.height - BOTTOM}`,
    });
  }

  private selected(): [number, number] {
    const anchor = this.anchor < 0 ? this.cursor : this.anchor;
    return [Math.min(anchor, this.cursor), Math.max(anchor, this.cursor)];
  }

  private showLegend(data: TimeData): void {
    const entry = (series: TimeSeries, i: number) => {
      const swatch = el("span", { class: "swatch" });
      swatch.style.background = seriesColour(i, this.dark);
      const text = el("bdi", {}, series.name === "" ? "(none)" : series.name);
      if (this.events.pick === undefined || i < 0) {
        return el("li", {}, swatch, text);
      }
      const button = el("button", { type: "button", class: "link", title: series.name }, swatch, text);
      button.addEventListener("click", () => this.events.pick?.(series.name));
      return el("li", {}, button);
    };
    this.legend.replaceChildren(
      ...data.series.map(entry),
      ...(data.other === undefined ? [] : [entry(data.other, -1)]),
      ...(data.lost === undefined ? [] : [el("li", { title: LOST_WORDS }, el("span", { class: "swatch lost" }), "lost")]),
    );
    this.legend.hidden = data.series.length < 2 && data.other === undefined && data.lost === undefined;
  }

  // --- cursor and selection ---

  private setCursor(step: number, speak: boolean): void {
    const data = this.data;
    if (data === null || step === this.cursor) {
      return;
    }
    this.cursor = step;
    if (step < 0) {
      this.anchor = -1;
    }
    this.plot.lastElementChild?.replaceWith(this.selection());
    this.showCard(data);
    if (speak && step >= 0) {
      this.spoken.textContent = this.card.innerText.replace(/\n/g, ", ");
    }
  }

  private showCard(data: TimeData): void {
    this.card.hidden = this.cursor < 0;
    if (this.cursor < 0) {
      return;
    }
    const [first, last] = this.selected();
    const all = data.other === undefined ? data.series : [...data.series, data.other];
    const mean = (series: TimeSeries) => {
      let sum = 0;
      for (let step = first; step <= last; step++) {
        sum += series.values[step] ?? 0;
      }
      return sum / (last - first + 1);
    };
    // Steps of seconds have parts of one report, which are off together.
    const off = ({ errors }: TimeSeries) => {
      const own = Array.from(errors ?? []).slice(first, last + 1);
      return (data.step < MINUTE ? own.reduce((sum, error) => sum + error, 0) : Math.hypot(...own)) / (last - first + 1);
    };
    const rows = all.map((series, i) => ({ series, i, value: mean(series) }));
    const sum = rows.reduce((total, row) => total + row.value, 0);
    const lost = data.lost === undefined ? 0 : mean(data.lost);
    const line = (name: string, value: number, colour: string, error = 0) => {
      const swatch = el("span", { class: "swatch" });
      swatch.style.background = colour;
      return el("tr", {}, el("td", {}, swatch, el("bdi", {}, name)), el("td", { class: "number" }, data.format(value) + (error > 0 ? ` ± ${data.format(error)}` : "")));
    };
    this.card.replaceChildren(
      el("p", {}, `${formatTime(this.timeOf(first))} – ${formatTime(this.timeOf(last + 1))}`),
      el(
        "table",
        {},
        ...rows
          .filter(({ value }) => value > 0)
          .reverse()
          .map(({ series, i, value }) =>
            line(series.name === "" ? "(none)" : series.name, value, seriesColour(series === data.other ? -1 : i, this.dark), off(series)),
          ),
        ...(rows.length > 1 ? [line("all", sum, "transparent")] : []),
        ...(lost > 0 ? [line("lost besides", lost, "transparent")] : []),
      ),
    );
    const x = this.xOf((first + last + 1) / 2);
    const place = this.plot.getBoundingClientRect();
    const wide = this.card.offsetWidth;
    const left = x + 14 + wide > this.width ? x - 14 - wide : x + 14;
    this.card.style.left = `${Math.max(4, place.left + left)}px`;
    this.card.style.top = `${place.top + TOP}px`;
  }

  private pointed(e: PointerEvent): void {
    if (this.data !== null) {
      this.setCursor(this.stepAt(e), false);
    }
  }

  private pressed(e: PointerEvent): void {
    if (this.data !== null && e.button === 0 && (e.target as Element).closest(".mark") === null) {
      this.plot.setPointerCapture(e.pointerId);
      this.anchor = this.cursor = this.stepAt(e);
    }
  }

  private released(e: PointerEvent): void {
    if (this.data === null || this.anchor < 0) {
      return;
    }
    const moved = Math.abs(this.xOf(this.stepAt(e)) - this.xOf(this.anchor));
    const [first, last] = this.selected();
    this.anchor = -1;
    if (moved >= BRUSH_MIN) {
      this.take(first, last);
    }
    this.setCursor(-1, false);
  }

  private take(first: number, last: number): void {
    this.events.brush(this.timeOf(first), this.timeOf(last + 1));
  }

  private key(e: KeyboardEvent): void {
    const data = this.data;
    if (data === null || e.ctrlKey || e.altKey || e.metaKey) {
      return;
    }
    const move = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[e.key];
    if (move !== undefined) {
      const from = this.cursor < 0 ? data.count - 1 - move : this.cursor;
      this.anchor = !e.shiftKey ? -1 : this.anchor < 0 ? Math.max(0, this.cursor) : this.anchor;
      this.setCursor(Math.max(0, Math.min(data.count - 1, from + move)), true);
    } else if (e.key === "Enter" && this.cursor >= 0) {
      const [first, last] = this.selected();
      this.setCursor(-1, false);
      this.take(first, last);
    } else if (e.key === "Escape" && this.cursor >= 0) {
      this.setCursor(-1, false);
    } else {
      return;
    }
    e.preventDefault();
    e.stopPropagation();
  }
}
