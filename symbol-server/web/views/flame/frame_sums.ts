// SPDX-License-Identifier: Apache-2.0
// What an answer's frames are made of, by value of their own. Pure.

import type { FlameAnswer } from "../../server/api";

export interface Part {
  name: string;
  value: number;
}

function heaviest(sums: Map<string, number>): Part[] {
  return [...sums].map(([name, value]) => ({ name, value })).sort((a, b) => b.value - a.value);
}

// by: of a row of the answer; "" is in no part.
export function partsBySelf(answer: FlameAnswer, by: (row: number) => string): Part[] {
  const { self } = answer.nodes;
  const sums = new Map<string, number>();
  for (let row = 0; row < self.length; row++) {
    const name = by(row);
    if (name !== "") {
      sums.set(name, (sums.get(name) ?? 0) + self[row]);
    }
  }
  return heaviest(sums);
}

// By an index into a table; those of one name are one part, −1 and "" are none.
function partsByIndex(self: ArrayLike<number>, column: ArrayLike<number>, names: readonly string[]): Part[] {
  const sums = new Float64Array(names.length);
  const isThere = new Uint8Array(names.length);
  for (let row = 0; row < self.length; row++) {
    const index = column[row];
    if (index >= 0) {
      sums[index] += self[row];
      isThere[index] = 1;
    }
  }
  const parts = new Map<string, number>();
  names.forEach((name, index) => {
    if (isThere[index] === 1 && name !== "") {
      parts.set(name, (parts.get(name) ?? 0) + sums[index]);
    }
  });
  return heaviest(parts);
}

export function modulesBySelf(answer: FlameAnswer): Part[] {
  const names = answer.modules.map(({ name }) => name);
  return partsByIndex(answer.nodes.self, answer.nodes.module, names);
}

export function kindsBySelf(answer: FlameAnswer): Part[] {
  return partsByIndex(answer.nodes.self, answer.nodes.kind, answer.kinds);
}
