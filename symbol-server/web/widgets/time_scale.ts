// SPDX-License-Identifier: Apache-2.0
// Round places for the marks of an axis. Pure.

import { dayText } from "../text/format";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = [
  ...[1000, 5000, 15_000, 30_000, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE],
  ...[30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 28 * DAY],
];

// Times between from and until (unix milliseconds) at round local times, at most so many.
export function timeTicks(from: number, until: number, most: number): number[] {
  const step = STEPS.find((s) => (until - from) / s <= most) ?? (until - from) / most;
  const offset = new Date(from).getTimezoneOffset() * MINUTE; // days begin at local midnight
  const ticks: number[] = [];
  for (let t = Math.ceil((from - offset) / step) * step + offset; t <= until; t += step) {
    ticks.push(t);
  }
  return ticks;
}

// A time in as few words as tell the ticks of such a range apart.
export function tickText(time: number, from: number, until: number): string {
  const at = new Date(time);
  const span = until - from;
  if (span > 2 * DAY) {
    return dayText(at).slice(5);
  }
  const hasSeconds = span < 10 * MINUTE;
  return at.toLocaleTimeString("en-GB", {
    hour: "2-digit",
    minute: "2-digit",
    ...(hasSeconds ? { second: "2-digit" as const } : {}),
  });
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
