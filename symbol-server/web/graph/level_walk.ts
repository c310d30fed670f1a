// SPDX-License-Identifier: Apache-2.0
// What of one level is on the screen: frames of a pixel or more, and strips of narrower ones, which are
// passed by binary search. The work depends on the pixels, not on the nodes. Pure.

import type { Graph } from "./graph";

export interface LevelEvents {
  frame(node: number, from: number, to: number): void; // pixels, cut at the edges
  haze(from: number, to: number): void; // whole pixels with narrower frames
}

// The zoomed frame is as wide as width.
export function walkLevel(graph: Graph, level: number, zoomed: number, width: number, events: LevelEvents): void {
  const { x, total } = graph;
  const left = x[zoomed];
  const right = left + total[zoomed];
  const scale = width / (right - left);
  const end = graph.levelStart[level + 1];
  let hazeFrom = -1; // strip that is not told yet
  let hazeTo = -1;
  const flush = () => {
    if (hazeFrom >= 0) {
      events.haze(hazeFrom, hazeTo);
      hazeFrom = -1;
    }
  };
  for (let node = graph.at(level, left); node < end && x[node] < right; node++) {
    const from = (x[node] - left) * scale;
    const to = from + total[node] * scale;
    if (to <= 0) {
      continue;
    }
    if (to - from >= 1) {
      flush();
      events.frame(node, Math.max(from, 0), Math.min(to, width));
      continue;
    }
    const column = Math.max(0, Math.floor(from));
    if (column > hazeTo) {
      flush();
    }
    if (hazeFrom < 0) {
      hazeFrom = column;
    }
    hazeTo = column + 1;
    // All others that begin in this pixel end in it, but for the last: that may be of any width.
    const last = skipTo(x, node, end, left + hazeTo / scale) - 1;
    node = last > node && total[last] * scale >= 1 ? last - 1 : last;
  }
  flush();
}

// The first number in [from + 1, end) whose x is not below the limit: steps double, then halve, as
// the next frame is mostly near.
function skipTo(x: Float64Array, from: number, end: number, limit: number): number {
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
