// SPDX-License-Identifier: Apache-2.0
// What samples are made of, by value of their frames' own: of everything, drawn or not. Pure.

import type { TopAnswer } from "../../server/api";

export interface Part {
  name: string;
  value: number;
}

function heaviest(pairs: Iterable<[string, number]>): Part[] {
  const sums = new Map<string, number>();
  for (const [name, value] of pairs) {
    sums.set(name, (sums.get(name) ?? 0) + value);
  }
  return [...sums].map(([name, value]) => ({ name, value })).sort((a, b) => b.value - a.value);
}

export function kindsBySelf({ own }: TopAnswer): Part[] {
  return heaviest(Object.entries(own.kinds));
}

// Those of one name are one part.
export function modulesBySelf({ own }: TopAnswer): Part[] {
  return heaviest(own.modules.filter(({ name }) => name !== "").map(({ name, value }) => [name, value]));
}

export function buildsBySelf({ own }: TopAnswer, by: (build_id: string) => string): Part[] {
  return heaviest(own.modules.map(({ build_id, value }) => [by(build_id), value]));
}

// rest: the name of what lies in functions that are not listed.
export function functionsBySelf(top: TopAnswer, by: (f: TopAnswer["functions"][number]) => string, rest: string): Part[] {
  const listed = top.functions.reduce((sum, { self }) => sum + self, 0);
  const inNone = ["root", "group", "incomplete"].reduce((sum, kind) => sum + (top.own.kinds[kind] ?? 0), 0);
  const left = top.accounting.value - listed - inNone;
  const parts = top.functions.map((f): [string, number] => [by(f), f.self]).filter(([name, value]) => name !== "" && value > 0);
  return heaviest(left > 0 ? [...parts, [rest, left]] : parts);
}
