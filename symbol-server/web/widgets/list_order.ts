// SPDX-License-Identifier: Apache-2.0
// The order of a list by one of its columns, as the address has it: "host", or "-host" for the other
// way round. Pure.

export interface Ordered<T> {
  key: string;
  order: (a: T, b: T) => number; // the way that is wanted first
}

export function sorted<T>(rows: readonly T[], columns: readonly Ordered<T>[], text: string): T[] {
  const { column, isReversed } = orderOf(columns, text);
  const sign = isReversed ? -1 : 1;
  const last = columns[0].order; // of equals
  return [...rows].sort((a, b) => sign * column.order(a, b) || last(a, b));
}

export function orderOf<T>(
  columns: readonly Ordered<T>[],
  text: string,
): { column: Ordered<T>; isReversed: boolean } {
  const isReversed = text.startsWith("-");
  const key = isReversed ? text.slice(1) : text;
  return { column: columns.find((column) => column.key === key) ?? columns[0], isReversed };
}

// What a click on a column's head makes of it.
export function nextOrder(now: string, key: string): string {
  return now === key ? `-${key}` : key;
}

export const byText =
  <T>(of: (row: T) => string) =>
  (a: T, b: T): number => {
    const [x, y] = [of(a), of(b)];
    return x < y ? -1 : x > y ? 1 : 0;
  };

export const byFalling =
  <T>(of: (row: T) => number) =>
  (a: T, b: T): number =>
    of(b) - of(a);
