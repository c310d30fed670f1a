// SPDX-License-Identifier: Apache-2.0
// The table of functions as rows: filtered, sorted, some unfolded to their callers. Pure.

import type { TopFunction } from "../../server/api";
import type { Neighbour } from "./sandwich_trees";

export const COLUMNS = ["name", "self", "total"] as const;
export type Column = (typeof COLUMNS)[number];
const CALLERS_SHOWN = 10;

export type TableRow =
  | { kind: "function"; function: TopFunction }
  | { kind: "caller"; function: TopFunction; caller: Neighbour }
  | { kind: "text"; text: string };

export function wholeName(f: { name: string; signature?: string }): string {
  return f.signature ?? f.name;
}

// Whose it is, in short: its module, or of a language's functions, which have none, the file's last part.
export function ownerOf(f: { module: string; file?: string }): string {
  return f.module === "" ? (f.file ?? "").slice((f.file ?? "").lastIndexOf("/") + 1) : f.module;
}

export function keyOf(f: TopFunction): string {
  return `${wholeName(f)}\n${f.module}\n${f.build_id}\n${f.file}`;
}

export function wanted(functions: readonly TopFunction[], filter: string, column: Column, upwards: boolean): TopFunction[] {
  const text = filter.trim().toLowerCase();
  const kept =
    text === ""
      ? functions.slice()
      : functions.filter((f) => f.name.toLowerCase().includes(text) || ownerOf(f).toLowerCase().includes(text));
  const sign = upwards ? 1 : -1;
  return kept.sort((a, b) =>
    column === "name" ? sign * (a.name < b.name ? -1 : a.name > b.name ? 1 : 0) : sign * (a[column] - b[column]),
  );
}

export function rowsOf(functions: readonly TopFunction[], unfolded: ReadonlyMap<string, Neighbour[] | string>): TableRow[] {
  const out: TableRow[] = [];
  for (const f of functions) {
    out.push({ kind: "function", function: f });
    const below = unfolded.size === 0 ? undefined : unfolded.get(keyOf(f));
    if (typeof below === "string") {
      out.push({ kind: "text", text: below });
    } else if (below !== undefined) {
      const shown = below.slice(0, CALLERS_SHOWN);
      out.push(...shown.map((caller): TableRow => ({ kind: "caller", function: f, caller })));
      if (below.length > shown.length) {
        out.push({ kind: "text", text: `and ${below.length - shown.length} more: s shows all` });
      }
    }
  }
  return out;
}
