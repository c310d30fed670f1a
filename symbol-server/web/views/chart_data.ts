// SPDX-License-Identifier: Apache-2.0
// An answer of /timeline as the chart takes it: the largest series with a colour each, the rest
// summed. Pure.

import type { TimelineAnswer } from "../server/api";
import { formatCount } from "../text/format";
import { MINUTE } from "../text/time";
import type { Rate } from "./rates";
import { lostValues } from "./reported";
import { ratesOf } from "./step_rates";

const LATE_MS = 20_000;

export interface ChartSeries {
  name: string;
  values: ArrayLike<number>;
  errors?: ArrayLike<number>; // ± of these
}

export interface ChartData {
  from: number;
  step: number;
  count: number;
  unit: string;
  format: (value: number) => string;
  series: ChartSeries[];
  other?: ChartSeries;
  lost?: ChartSeries;
}

// The last seconds are still on their way: no drop at the end.
function shownSteps({ reported, step_ms }: TimelineAnswer, count: number): number {
  if (reported === undefined || step_ms >= MINUTE) {
    return count;
  }
  const last = reported.reduce((found, [, ms], step) => (ms > 0 ? step : found), -1);
  const end = last < 0 ? count : Math.min(count, last + Math.ceil(reported[last][1] / step_ms));
  return (count - end) * step_ms <= LATE_MS ? end : count;
}

// most: series with a colour of their own. nameOf: of the series' labels. withLost: losses are of whole
// hosts; they belong beside what is shown of all that these hosts did.
export function chartOf(
  answer: TimelineAnswer,
  rate: Rate,
  bySamples: boolean,
  most: number,
  nameOf: (labels: Record<string, string>) => string,
  withLost = false,
): ChartData {
  const at = bySamples ? 2 : 1;
  const first = answer.series[0]?.points ?? [];
  const values = (points: readonly (readonly number[])[], series?: TimelineAnswer["series"][number]) =>
    ratesOf(answer, rate, points.map((point) => point[at]), series);
  const rest = answer.series.slice(most);
  const sum = new Float64Array(first.length);
  for (const line of [...rest.map((series) => values(series.points, series)), values(answer.other?.points ?? [])]) {
    line.forEach((value, step) => (sum[step] += value));
  }
  const lost = withLost ? lostValues(answer, bySamples) : null;
  const others = rest.length + (answer.other?.series ?? 0);
  return {
    from: first[0]?.[0] ?? answer.from,
    step: answer.step_ms,
    count: shownSteps(answer, first.length),
    unit: rate.unit,
    format: rate.format,
    series: answer.series
      .slice(0, most)
      .map((series) => ({
        name: nameOf(series.labels),
        values: values(series.points, series),
        ...(series.errors && { errors: ratesOf(answer, rate, series.errors, series) }),
      })),
    ...(others > 0 ? { other: { name: `${formatCount(others)} others`, values: sum } } : {}),
    ...(lost !== null
      ? { lost: { name: "lost", values: ratesOf(answer, rate, lost) } }
      : {}),
  };
}
