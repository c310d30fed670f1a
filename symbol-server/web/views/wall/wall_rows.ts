// SPDX-License-Identifier: Apache-2.0
// The wall clock in numbers: what each group of threads has of each type, and requests of which two
// types tell. Pure.

import type { TimelineAnswer, Trace, TracesAnswer } from "../../server/api";

export interface WallRow {
  labels: Record<string, string>;
  values: Map<string, { value: number; samples: number; error?: number }>; // by type; absent: none, or no room
}

// The answers of one /timeline for each type, all grouped by the same labels; in falling order of the
// type sorted by, then of the others as they come.
export function wallRows(answers: readonly TimelineAnswer[], sortBy: string): WallRow[] {
  const rows = new Map<string, WallRow>();
  for (const { type, series } of answers) {
    for (const { labels, value, samples, error } of series) {
      const key = JSON.stringify(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)));
      const row = rows.get(key) ?? { labels, values: new Map<string, { value: number; samples: number; error?: number }>() };
      rows.set(key, row);
      row.values.set(type, { value, samples, ...(error !== undefined && { error }) });
    }
  }
  const order = [sortBy, ...answers.map(({ type }) => type)];
  const valueOf = (row: WallRow, type: string) => row.values.get(type)?.value ?? 0;
  return [...rows.values()].sort((a, b) => {
    const decides = order.find((type) => valueOf(a, type) !== valueOf(b, type));
    return decides === undefined ? 0 : valueOf(b, decides) - valueOf(a, decides);
  });
}

// "worker · api" of {process: "api", thread: "worker"}: as group_by has the labels, without those
// that a group does not have.
export function nameOf(labels: Record<string, string>, groupBy: string): string {
  const names = groupBy
    .split(",")
    .map((label) => labels[label.trim()] ?? "")
    .filter((name) => name !== "");
  return names.length > 0 ? names.join(" · ") : groupBy === "" ? "all" : `(no ${groupBy})`;
}

export interface Request {
  trace: Trace; // times and services of all types together
  values: (number | null)[]; // by type; null: none, or not among the largest
  errors: (number | undefined)[]; // ± of these
  value: number;
}

// Requests that any of the answers has, the longest first.
export function joinTraces(answers: readonly TracesAnswer[]): Request[] {
  const requests = new Map<string, Request>();
  answers.forEach((answer, i) => {
    for (const trace of answer.traces) {
      const known = requests.get(trace.trace_id);
      const request = known ?? { trace, values: answers.map(() => null), errors: [], value: 0 };
      requests.set(trace.trace_id, request);
      request.values[i] = trace.value;
      request.errors[i] = trace.error;
      request.value += trace.value;
      request.trace = merged(request.trace, trace);
    }
  });
  return [...requests.values()].sort((a, b) => b.value - a.value);
}

function merged(a: Trace, b: Trace): Trace {
  return {
    ...a,
    from: Math.min(a.from, b.from),
    until: Math.max(a.until, b.until),
    services: [...new Set([...a.services, ...b.services])],
  };
}

// The last minute of a range, whose end may be yet to come.
export function lastMinute(from: number, until: number, now: number): { from: number; until: number } {
  const end = Math.min(until, Math.max(from, now));
  return { from: Math.max(from, end - 60_000), until: end };
}
