// SPDX-License-Identifier: Apache-2.0
// An answer of /timeline as the chart takes it: the largest series with a colour each, the rest
// summed. Pure.

import type { TimelineAnswer } from "../server/api";
import { formatCount } from "../text/format";
import type { Rate } from "./rates";

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
}

// most: series with a colour of their own. nameOf: of the series' labels.
export function chartOf(
  answer: TimelineAnswer,
  rate: Rate,
  bySamples: boolean,
  most: number,
  nameOf: (labels: Record<string, string>) => string,
): ChartData {
  const at = bySamples ? 2 : 1;
  const first = answer.series[0]?.points ?? [];
  const values = (points: readonly (readonly number[])[]) =>
    points.map((point) => rate.of(point[at], answer.step_ms));
  const rest = answer.series.slice(most);
  const sum = new Float64Array(first.length);
  for (const points of [...rest.map((series) => series.points), answer.other?.points ?? []]) {
    values(points).forEach((value, step) => (sum[step] += value));
  }
  const others = rest.length + (answer.other?.series ?? 0);
  return {
    from: first[0]?.[0] ?? answer.from,
    step: answer.step_ms,
    count: first.length,
    unit: rate.unit,
    format: rate.format,
    series: answer.series
      .slice(0, most)
      .map(({ labels, points }) => ({ name: nameOf(labels), values: values(points) })),
    ...(others > 0 ? { other: { name: `${formatCount(others)} others`, values: sum } } : {}),
  };
}
