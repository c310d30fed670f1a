// SPDX-License-Identifier: Apache-2.0
// Which rows of a long list are on the screen, all rows being equally high. Pure.

export interface RowWindow {
  first: number;
  end: number; // the row after the last
}

// spare: rows above and below that are made too, so that scrolling shows no gaps.
export function rowWindow(top: number, height: number, rowHeight: number, count: number, spare: number): RowWindow {
  const first = Math.min(count, Math.max(0, Math.floor(top / rowHeight) - spare));
  const end = Math.min(count, Math.ceil((Math.max(0, top) + height) / rowHeight) + spare);
  return { first, end: Math.max(first, end) };
}

// Where to scroll so that the row is seen whole; top where it is already. head: pixels that a fixed
// head covers.
export function scrollTo(row: number, top: number, height: number, rowHeight: number, head: number): number {
  const from = row * rowHeight;
  if (from < top) {
    return from;
  }
  return from + rowHeight + head > top + height ? from + rowHeight + head - height : top;
}
