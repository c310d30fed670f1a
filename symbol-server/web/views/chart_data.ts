// SPDX-License-Identifier: Apache-2.0
// An answer of /timeline as the chart takes it: the largest series with a colour each, the rest
// summed. Pure.

import type { TimelineAnswer } from "../server/api";
import { formatCount } from "../text/format";
import type { Rate } from "./rates";
import { lostValues, stepMs } from "./reported";

export interface ChartSeries {
  name: string;
  values: ArrayLike<number>;
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
    points.map((point, step) => rate.of(point[at], stepMs(answer, step, series)));
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
    count: first.length,
    unit: rate.unit,
    format: rate.format,
    series: answer.series
      .slice(0, most)
      .map((series) => ({ name: nameOf(series.labels), values: values(series.points, series) })),
    ...(others > 0 ? { other: { name: `${formatCount(others)} others`, values: sum } } : {}),
    ...(lost !== null
      ? { lost: { name: "lost", values: lost.map((value, step) => rate.of(value, stepMs(answer, step))) } }
      : {}),
  };
}
