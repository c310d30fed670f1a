// SPDX-License-Identifier: Apache-2.0
// A profile type's values over time in the unit that people think in: CPUs, threads that wait,
// bytes a second. Pure.

import { formatCount, formatValue } from "../text/format";

export interface Rate {
  unit: string; // for round axis values
  of: (value: number, duration_ms: number) => number;
  format: (rate: number) => string;
  isMean?: boolean; // of what there is: nothing that adds up over time
}

function short(n: number): string {
  return n === 0 ? "0" : n >= 100 ? n.toFixed(0) : n >= 10 ? n.toFixed(1) : n >= 0.1 ? n.toFixed(2) : n >= 0.0005 ? n.toFixed(3) : "< 0.001";
}

const perSecond = (value: number, ms: number) => (ms > 0 ? (value * 1000) / ms : 0);
const parallel = (value: number, ms: number) => (ms > 0 ? value / 1e6 / ms : 0);

// by: "value" or "samples", as the API's value=.
export function rateOf(type: string, unit: string, by: string): Rate {
  if (by === "samples") {
    return { unit: "count", of: perSecond, format: (n) => `${formatCount(Math.round(n))}/s` };
  }
  if (unit === "nanoseconds") {
    const what = type === "on-cpu" ? "CPUs" : type === "on-gpu" ? "GPUs" : "threads";
    return { unit: "count", of: parallel, format: (n) => `${short(n)} ${what}` };
  }
  if (type.endsWith("-inuse")) {
    return { unit, isMean: true, of: (value) => value, format: (n) => formatValue(Math.round(n), unit) };
  }
  return { unit, of: perSecond, format: (n) => `${formatValue(Math.round(n), unit)}/s` };
}
