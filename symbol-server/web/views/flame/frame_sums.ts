// SPDX-License-Identifier: Apache-2.0
// What samples are made of, by value of their frames' own: of everything, drawn or not. Pure.

import type { TopAnswer } from "../../server/api";

export interface Part {
  name: string;
  value: number;
  error?: number; // ± of it
}

function heaviest(parts: Iterable<Part>): Part[] {
  const sums = new Map<string, Part>();
  for (const { name, value, error } of parts) {
    const known = sums.get(name);
    const off = error === undefined ? {} : { error: Math.hypot(known?.error ?? 0, error) };
    sums.set(name, { name, value: (known?.value ?? 0) + value, ...off });
  }
  return [...sums.values()].sort((a, b) => b.value - a.value);
}

export function kindsBySelf({ own }: TopAnswer): Part[] {
  return heaviest(Object.entries(own.kinds).map(([name, value]) => ({ name, value, error: own.kind_errors?.[name] })));
}

// Those of one name are one part.
export function modulesBySelf({ own }: TopAnswer): Part[] {
  return heaviest(own.modules.filter(({ name }) => name !== ""));
}

export function buildsBySelf({ own }: TopAnswer, by: (build_id: string) => string): Part[] {
  return heaviest(own.modules.map(({ build_id, value, error }) => ({ name: by(build_id), value, error })));
}

// rest: the name of what lies in functions that are not listed.
export function functionsBySelf(top: TopAnswer, by: (f: TopAnswer["functions"][number]) => string, rest: string): Part[] {
  const listed = top.functions.reduce((sum, { self }) => sum + self, 0);
  const inNone = ["root", "group", "incomplete"].reduce((sum, kind) => sum + (top.own.kinds[kind] ?? 0), 0);
  const left = top.accounting.value - listed - inNone;
  const parts = top.functions.map((f): Part => ({ name: by(f), value: f.self, error: f.self_error })).filter(({ name, value }) => name !== "" && value > 0);
  return heaviest(left > 0 ? [...parts, { name: rest, value: left }] : parts);
}
