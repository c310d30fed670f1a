// SPDX-License-Identifier: Apache-2.0
// Round places for the marks of an axis. Pure.

import { clockText, dayText } from "../text/format";
import { MINUTE } from "../text/time";
import { zoneOffset } from "../text/zone";

const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = [
  ...[1000, 5000, 15_000, 30_000, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE],
  ...[30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 28 * DAY],
];

// Times between from and until (unix milliseconds) at round times of the zone, at most so many.
export function timeTicks(from: number, until: number, most: number): number[] {
  const step = STEPS.find((s) => (until - from) / s <= most) ?? (until - from) / most;
  const offset = -zoneOffset(from); // days begin at midnight
  const ticks: number[] = [];
  for (let t = Math.ceil((from - offset) / step) * step + offset; t <= until; t += step) {
    ticks.push(t);
  }
  return ticks;
}

// A time in as few words as tell the ticks of such a range apart.
export function tickText(time: number, from: number, until: number): string {
  const span = until - from;
  if (span > 2 * DAY) {
    return dayText(time).slice(5);
  }
  return clockText(time).slice(0, span < 10 * MINUTE ? 8 : 5);
}

// The smallest of 1, 2, 2.5, 5 × 10^n (bytes: of powers of two) that is not below the value.
export function roundUp(value: number, unit: string): number {
  if (!(value > 0)) {
    return 1;
  }
  if (unit === "bytes") {
    return 2 ** Math.ceil(Math.log2(value));
  }
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 2.5, 5, 10].find((f) => f * power >= value * (1 - 1e-9)) ?? 10) * power;
}
