// SPDX-License-Identifier: Apache-2.0
// A comparison as a flame graph: what is as wide as what, and what of it chance explains. Pure.

import type { DiffAnswer, FlameAnswer } from "../../server/api";
import { Graph } from "../../graph/graph";

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
  isNoise: boolean; // chance alone makes such a difference in one of twenty, or more often
}

const SIGNIFICANT = 1.96;

// Changes of nodes. A node's samples count as Poisson's, times how much more than that functions
// vary by themselves, as the server found it (dispersion).
export class Changes {
  private readonly variance: number; // of a value of 1, after
  private readonly baseVariance: number;

  constructor(private readonly answer: DiffAnswer) {
    const dispersion = Math.max(1, answer.noise.dispersion ?? 1);
    const of = (a: { value: number; samples: number }) => (a.samples > 0 ? a.value / a.samples : 0);
    this.variance = dispersion * of(answer.accounting);
    this.baseVariance = dispersion * of(answer.base.accounting) * answer.scale;
  }

  // row: the node's number in the answer.
  of(row: number): Change {
    const after = this.answer.nodes.total[row];
    const before = this.answer.nodes.base_total[row] * this.answer.scale;
    const most = Math.max(after, before);
    const deviation = Math.sqrt(this.variance * after + this.baseVariance * before);
    return {
      before,
      after,
      ratio: most > 0 ? (after - before) / most : 0,
      isNoise: Math.abs(after - before) < SIGNIFICANT * deviation,
    };
  }
}

// Blue for less, orange for more (told apart with any colour blindness), grey for noise: five
// steps to each side.
const STEPS = 5;
const LESS = { hue: 207, light: [90, 83, 75, 66, 57], dark: [25, 30, 35, 41, 47] };
const MORE = { hue: 30, light: [90, 83, 75, 66, 57], dark: [25, 30, 35, 41, 47] };

export function changeColour(change: Change, dark: boolean): string {
  if (change.isNoise || change.ratio === 0) {
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
