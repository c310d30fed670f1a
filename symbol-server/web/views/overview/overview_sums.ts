// SPDX-License-Identifier: Apache-2.0
// The rows of the overview: one group (a service, host or process), its value of each type. Pure.

import type { TimelineAnswer } from "../../server/api";
import { reportedBy } from "../reported";

export interface Row {
  name: string; // "" has no such label
  values: Map<string, number>; // by type; absent: nothing of it, or not among the largest
  errors: Map<string, number>; // ± of these, squared
  times: Map<string, number>; // by type: milliseconds that the values are of
}

export interface Rows {
  rows: Row[];
  sums: Map<string, number>; // by type, of all groups
  left: Map<string, { groups: number; value: number }>; // by type: groups that had no room
}

// The answers of one /timeline for each type, all grouped by that label. Rows in falling order of
// the type sorted by, then of the others in their order.
export function rowsOf(answers: readonly TimelineAnswer[], label: string, sortBy: string): Rows {
  const byName = new Map<string, Row>();
  const sums = new Map<string, number>();
  const left: Rows["left"] = new Map();
  for (const answer of answers) {
    let sum = answer.other?.value ?? 0;
    for (const series of answer.series) {
      const name = series.labels[label] ?? "";
      const row = byName.get(name) ?? { name, values: new Map<string, number>(), errors: new Map<string, number>(), times: new Map<string, number>() };
      byName.set(name, row);
      row.values.set(answer.type, (row.values.get(answer.type) ?? 0) + series.value);
      if (series.error !== undefined) {
        row.errors.set(answer.type, (row.errors.get(answer.type) ?? 0) + series.error ** 2);
      }
      row.times.set(answer.type, Math.max(row.times.get(answer.type) ?? 0, reportedBy(answer, series)));
      sum += series.value;
    }
    sums.set(answer.type, sum);
    if (answer.other !== undefined) {
      left.set(answer.type, { groups: answer.other.series, value: answer.other.value });
    }
  }
  const order = [sortBy, ...answers.map(({ type }) => type)];
  const rows = [...byName.values()].sort((a, b) => {
    for (const type of order) {
      const difference = (b.values.get(type) ?? 0) - (a.values.get(type) ?? 0);
      if (difference !== 0) {
        return difference;
      }
    }
    return a.name < b.name ? -1 : 1;
  });
  return { rows, sums, left };
}

// Whether at least half has that label, which the answer is grouped by.
export function isMostlyNamed({ series, other }: TimelineAnswer, label: string): boolean {
  const sum = (values: readonly { value: number }[]) => values.reduce((all, { value }) => all + value, other?.value ?? 0);
  return 2 * sum(series.filter(({ labels }) => (labels[label] ?? "") !== "")) >= sum(series);
}

// A profiler is seen by itself too: what it takes is said apart from what it was put there to look at.
export function isOwn(name: string): boolean {
  return /^farflame-(agent|loader|net|parser|reader|server|unwind|worker)$/.test(name);
}
