// SPDX-License-Identifier: Apache-2.0
// The colours of graph and sandwich, and the legend under them.

import { ask, type FlameAnswer, type ModulesAnswer, type TopAnswer } from "../../server/api";
import type { Colouring } from "../../graph/flamegraph";
import { showLegend } from "./legend";
import type { Shell } from "../../shell/view";
import { moduleParameters, type State } from "../../shell/state";
import { ageColouring, ageNames, firstSeenOf, type FirstSeen } from "./frame_ages";
import { colourBy, languageColouring, languageIn, legendOf, type ColourBy, type LegendEntry } from "./frame_colours";
import { legendMenu } from "./legend_menu";
import { makePalette } from "../../graph/palette";

interface Coloured {
  colour(byModule: boolean, colouring: Colouring | null): void;
}

export class FlameLegend {
  private answer: FlameAnswer | null = null; // what is drawn
  private sums: TopAnswer | null = null; // of everything, drawn or not
  private by: ColourBy = "kind";
  private dark = false;
  private seen: FirstSeen = new Map(); // asked for when colours stand for ages
  private asking = new AbortController();

  // highlight: names that stand out for a moment; null: no longer.
  constructor(
    private readonly shell: Shell,
    private readonly coloured: readonly Coloured[],
    private readonly highlight: (names: Uint8Array | null) => void,
  ) {}

  setTheme(dark: boolean): void {
    this.dark = dark;
    this.apply();
  }

  adjust(state: State): void {
    const by = colourBy(state.colour);
    if (by !== this.by) {
      this.by = by;
      this.apply();
      this.askAges();
    }
  }

  show(answer: FlameAnswer): void {
    this.answer = answer;
    this.draw();
    this.askAges();
  }

  showSums(top: TopAnswer): void {
    this.sums = top;
    this.draw();
  }

  private askAges(): void {
    this.asking.abort();
    if (this.by === "age" && this.answer !== null) {
      this.asking = new AbortController();
      void this.showAges(this.asking.signal);
    }
  }

  private async showAges(signal: AbortSignal): Promise<void> {
    try {
      const { modules } = await ask<ModulesAnswer>("modules", moduleParameters(this.shell.pinned()), signal);
      if (!signal.aborted) {
        this.seen = firstSeenOf(modules);
        this.apply();
      }
    } catch (failure) {
      if (!signal.aborted) {
        this.shell.notice(`The ages did not come: ${(failure as Error).message}`);
      }
    }
  }

  private apply(): void {
    const colouring = this.colouring();
    this.coloured.forEach((one) => one.colour(this.by === "module", colouring));
    this.draw();
  }

  private colouring(): Colouring | null {
    if (this.by === "age") {
      return ageColouring(this.seen, this.dark);
    }
    return this.by === "language" ? languageColouring(this.dark) : null;
  }

  private draw(): void {
    const { answer, sums, by } = this;
    if (answer !== null && sums !== null) {
      showLegend(legendOf(sums, by, this.dark, this.seen), by, sums.accounting, makePalette(this.dark).haze, {
        open: (entry, item) => this.open(entry, item),
        point: (entry) => this.highlight(entry === null ? null : this.namesOf(answer, entry)),
      });
    }
  }

  private open(entry: LegendEntry, item: HTMLElement): void {
    const modules = this.answer === null || this.by === "kind" || this.by === "module" ? [] : this.modulesOf(this.answer, entry);
    const items = legendMenu(entry.name, this.by, this.shell.state, (changed) => this.shell.change(changed), modules);
    if (items.length === 0) {
      this.shell.notice("No filter chooses these frames.");
      return;
    }
    const { left, top } = item.getBoundingClientRect();
    this.shell.menu.open(left, top, entry.name, items);
  }

  // Those most of whose frames are the entry's.
  private modulesOf(answer: FlameAnswer, entry: LegendEntry): string[] {
    const { module } = answer.nodes;
    const balance = new Map<string, number>();
    const isOf = this.rowsOf(answer, entry);
    for (let row = 0; row < module.length; row++) {
      const name = answer.modules[module[row]]?.name ?? "";
      balance.set(name, (balance.get(name) ?? 0) + (isOf(row) ? 1 : -1));
    }
    return [...balance].filter(([name, more]) => name !== "" && more > 0).map(([name]) => name);
  }

  private namesOf(answer: FlameAnswer, entry: LegendEntry): Uint8Array {
    const { name } = answer.nodes;
    const out = new Uint8Array(answer.names.length);
    const isOf = this.rowsOf(answer, entry);
    for (let row = 0; row < name.length; row++) {
      if (isOf(row)) {
        out[name[row]] = 1;
      }
    }
    return out;
  }

  private rowsOf(answer: FlameAnswer, entry: LegendEntry): (row: number) => boolean {
    const { kind, module } = answer.nodes;
    const age = ageNames(answer, this.seen);
    return {
      kind: (row: number) => answer.kinds[kind[row]] === entry.name,
      module: (row: number) => answer.modules[module[row]]?.name === entry.name,
      language: (row: number) => languageIn(answer, row) === entry.name,
      age: (row: number) => age(row) === entry.name,
    }[this.by];
  }
}
