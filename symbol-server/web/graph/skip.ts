// SPDX-License-Identifier: Apache-2.0
// A search in a rising column. Pure.

// The first number in [from + 1, end) whose x is not below the limit: steps double, then halve, as
// the next frame is mostly near.
export function skipTo(x: Float64Array, from: number, end: number, limit: number): number {
  let step = 1;
  let low = from;
  while (low + step < end && x[low + step] < limit) {
    low += step;
    step *= 2;
  }
  let high = Math.min(end, low + step);
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (x[middle] < limit) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return high;
}
