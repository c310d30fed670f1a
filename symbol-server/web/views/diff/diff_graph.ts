// SPDX-License-Identifier: Apache-2.0
// A comparison as a flame graph: what is as wide as what, and what of it sampling explains. Pure.

import type { DiffAnswer, FlameAnswer } from "../../server/api";
import { Graph } from "../../graph/graph";
import { differing } from "./sampling_noise";

export type Width = "larger" | "after" | "before";

// The answer with widths of both sides' larger value, so that what vanished can be seen too, or of
// one side. Callers are as wide as all they call.
export function widthsOf(answer: DiffAnswer, width: Width): FlameAnswer {
  if (width === "after") {
    return answer;
  }
  const { self, base_self, parent } = answer.nodes;
  const own = self.map((after, i) => {
    const before = base_self[i] * answer.scale;
    return width === "before" ? before : Math.max(before, after);
  });
  const total = own.slice();
  for (let i = total.length - 1; i > 0; i--) {
    total[parent[i]] += total[i];
  }
  return { ...answer, nodes: { ...answer.nodes, self: own, total } };
}

export interface Change {
  before: number; // in the type's unit, scaled to compare with after
  after: number;
  ratio: number; // −1 it vanished … 0 the same … 1 it is new
  recorded: boolean; // it differs by more than 5 %, sampling alone considered
}

// Changes of nodes. Their samples are what their value makes of the side's, as far as these count.
export class Changes {
  private readonly recorded: boolean[];

  constructor(private readonly answer: DiffAnswer) {
    const { total, base_total } = answer.nodes;
    const of = ({ value, samples }: { value: number; samples: number }) => (samples > 0 ? value / samples : 1);
    const [after, before] = [of(answer.accounting), of(answer.base.accounting)];
    const { effective } = answer.statistics;
    const pairs = total.map((value, i): [number, number] => [(effective * base_total[i]) / before, (effective * value) / after]);
    this.recorded = differing(pairs, (before * answer.scale) / after);
  }

  // row: the node's number in the answer.
  of(row: number): Change {
    const after = this.answer.nodes.total[row];
    const before = this.answer.nodes.base_total[row] * this.answer.scale;
    const most = Math.max(after, before);
    return { before, after, ratio: most > 0 ? (after - before) / most : 0, recorded: this.recorded[row] };
  }
}

// Blue for less, orange for more (told apart with any colour blindness), grey where nothing was recorded: five
// steps to each side.
const STEPS = 5;
const LESS = { hue: 207, light: [90, 83, 75, 66, 57], dark: [25, 30, 35, 41, 47] };
const MORE = { hue: 30, light: [90, 83, 75, 66, 57], dark: [25, 30, 35, 41, 47] };

export function changeColour(change: Change, dark: boolean): string {
  if (!change.recorded) {
    return dark ? "#33363c" : "#e4e6ea";
  }
  const side = change.ratio < 0 ? LESS : MORE;
  const step = Math.min(STEPS - 1, Math.floor(Math.abs(change.ratio) * STEPS));
  const lightness = (dark ? side.dark : side.light)[step];
  return `hsl(${side.hue},${dark ? 55 : 85}%,${lightness}%)`;
}

export function diffGraph(answer: DiffAnswer, width: Width): Graph {
  return new Graph(widthsOf(answer, width));
}
