// SPDX-License-Identifier: Apache-2.0
// An answer of /heatmap?by=function as rows of rates, and how finely to ask. Pure.

import type { FunctionHeat, TimelineAnswer, TopFunction } from "../../server/api";
import { formatCount, formatPercent, formatSampled, formatValue } from "../../text/format";
import { MINUTE } from "../../text/time";
import type { Rate } from "../rates";

const COLUMNS = 150; // as many as can be told apart
const SECONDS = [1, 2, 5, 10, 20, 30]; // parts of a minute
const MINUTES = [1, 2, 5, 10, 20, 30, 60, 120, 180, 360, 720, 1440];

// Of a time line's answer: columns no finer than its steps. Of seconds none is shorter than a report, whose
// value is all in the second in which it began. Of a very long time the server chooses.
export function columnParameter({ step_ms, from, until, reported }: Pick<TimelineAnswer, "step_ms" | "from" | "until" | "reported">): Record<string, string> {
  if (step_ms >= MINUTE) {
    const minutes = MINUTES.find((m) => m * MINUTE >= step_ms && (until - from) / (m * MINUTE) <= COLUMNS);
    return minutes === undefined ? {} : { column: `${minutes}m` };
  }
  const longest = reported?.reduce((most, [, ms]) => Math.max(most, ms), 0) || MINUTE;
  const seconds = SECONDS.find((s) => s * 1000 >= longest && (until - from) / (s * 1000) <= COLUMNS);
  return { column: seconds === undefined ? "1m" : `${seconds}s` };
}

export interface HeatRow {
  function: TopFunction | null; // null: all that has no row
  rates: Float64Array; // by column
}

export interface HeatRows {
  rows: HeatRow[];
  most: number; // of the rates of functions
}

// The time that a column's values are of.
function columnMs({ reported, column_ms }: FunctionHeat, column: number): number {
  return reported?.[column]?.[1] || column_ms;
}

export function heatRows(answer: FunctionHeat, rate: Rate): HeatRows {
  const { cells, functions, columns, other } = answer;
  const rows: HeatRow[] = functions.map((f) => ({ function: f, rates: new Float64Array(columns) }));
  let most = 0;
  cells.row.forEach((row, i) => {
    const column = cells.column[i];
    const value = rate.of(cells.value[i], columnMs(answer, column));
    if (row >= 0 && row < rows.length && column >= 0 && column < columns) {
      rows[row].rates[column] = value;
      most = Math.max(most, value);
    }
  });
  if (other.value > 0) {
    rows.push({ function: null, rates: Float64Array.from(other.values, (value, column) => rate.of(value, columnMs(answer, column))) });
  }
  return { rows, most };
}

export function otherWords({ sort, other }: FunctionHeat): string {
  const count = formatCount(other.functions);
  return sort === "total" ? "stacks through none of these" : other.functions > 0 ? `${count} others` : "in no function";
}

// What no row has, in sentences with a space before each.
export function restWords({ other, sort, all, unit, accounting }: FunctionHeat): string {
  const whole = all.reduce((sum, value) => sum + value, 0);
  const more = other.functions === 0 ? "" : ` ${formatCount(other.functions)} more have no row.`;
  const where = sort === "total" ? "in stacks through none of these" : "in no row";
  const rest = other.value === 0 ? "" : ` ${formatPercent(other.value, whole)} of all, ${formatValue(other.value, unit)}, is ${where}.`;
  const { cut_by_memory: cut = 0, value } = accounting;
  return `${more}${rest}${cut === 0 ? "" : ` The lightest stacks, ${formatPercent(cut, value)}, are left out: --query-memory has no room for them.`}`;
}

// What a row has from one column to another.
export function cellWords(answer: FunctionHeat, rate: Rate, row: number, first: number, last: number): string {
  const { cells, other, all, unit, functions } = answer;
  let [value, whole, samples, squares, ms] = [0, 0, 0, 0, 0];
  for (let column = first; column <= last; column++) {
    whole += all[column];
    ms += columnMs(answer, column);
    value += row < functions.length ? 0 : other.values[column];
  }
  cells.row.forEach((of, i) => {
    if (of === row && cells.column[i] >= first && cells.column[i] <= last) {
      value += cells.value[i];
      samples += cells.samples[i];
      squares += (cells.error?.[i] ?? 0) ** 2;
    }
  });
  const parts = rate.isMean === true ? last - first + 1 : 1;
  const error = cells.error === undefined || row >= functions.length ? undefined : Math.sqrt(squares) / parts;
  const counted = row < functions.length ? `, ${formatCount(samples)} samples` : "";
  const speed = rate.isMean === true ? "" : `${rate.format(rate.of(value, ms))}, `;
  return `${speed}${formatSampled(value / parts, error, unit)}, ${formatPercent(value, whole)} of all then${counted}`;
}
