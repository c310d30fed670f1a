// SPDX-License-Identifier: Apache-2.0
// The colours of graph and sandwich, and the legend under them.

import type { FlameAnswer } from "../../server/api";
import type { Colouring } from "../../graph/flamegraph";
import { showLegend } from "./legend";
import type { Menu } from "../../widgets/menu";
import type { Shell } from "../../shell/view";
import type { State } from "../../shell/state";
import { languageColouring, languageIn, legendOf, type ColourBy, type LegendEntry } from "./frame_colours";
import { legendMenu } from "./legend_menu";

interface Coloured {
  colour(byModule: boolean, colouring: Colouring | null): void;
}

export class FlameLegend {
  private answer: FlameAnswer | null = null;
  private by: ColourBy = "kind";
  private dark = false;

  // highlight: names that stand out for a moment; null: no longer.
  constructor(
    private readonly shell: Shell,
    private readonly menu: Menu,
    private readonly coloured: readonly Coloured[],
    private readonly highlight: (names: Uint8Array | null) => void,
  ) {}

  setTheme(dark: boolean): void {
    this.dark = dark;
    this.apply();
  }

  adjust(state: State): void {
    const by = state.colour === "module" || state.colour === "language" ? state.colour : "kind";
    if (by !== this.by) {
      this.by = by;
      this.apply();
    }
  }

  show(answer: FlameAnswer): void {
    this.answer = answer;
    this.draw();
  }

  private apply(): void {
    const colouring = this.by === "language" ? languageColouring(this.dark) : null;
    this.coloured.forEach((one) => one.colour(this.by === "module", colouring));
    this.draw();
  }

  private draw(): void {
    const { answer, by } = this;
    if (answer !== null) {
      showLegend(legendOf(answer, by, this.dark), by, answer.accounting.value, {
        open: (entry, item) => this.open(entry, item),
        point: (entry) => this.highlight(entry === null ? null : this.namesOf(answer, entry)),
      });
    }
  }

  private open(entry: LegendEntry, item: HTMLElement): void {
    const items = legendMenu(entry.name, this.by, this.shell.state, (changed) => this.shell.change(changed));
    const { left, top } = item.getBoundingClientRect();
    this.menu.open(left, top, entry.name, items);
  }

  private namesOf(answer: FlameAnswer, entry: LegendEntry): Uint8Array {
    const { name, kind, module } = answer.nodes;
    const out = new Uint8Array(answer.names.length);
    const isOf = {
      kind: (row: number) => answer.kinds[kind[row]] === entry.name,
      module: (row: number) => answer.modules[module[row]]?.name === entry.name,
      language: (row: number) => languageIn(answer, row) === entry.name,
    }[this.by];
    for (let row = 0; row < name.length; row++) {
      if (isOf(row)) {
        out[name[row]] = 1;
      }
    }
    return out;
  }
}
