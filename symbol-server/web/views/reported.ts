// SPDX-License-Identifier: Apache-2.0
// The time that values are of: that in which the selected hosts reported, where the server knows it, and
// else all that was asked for. Pure.

import type { Accounting, TimelineAnswer } from "../server/api";

export interface Ranged {
  from: number;
  until: number;
  accounting: Pick<Accounting, "reported_ms">;
}

export function reportedMs({ from, until, accounting }: Ranged): number {
  return accounting.reported_ms ?? until - from;
}

// Of one line: that of its host, where it has one.
export function reportedBy(answer: TimelineAnswer, series: TimelineAnswer["series"][number]): number {
  return series.reported?.reduce((sum, [, ms]) => sum + ms, 0) || reportedMs(answer);
}

// Of a step. Where nobody reported, values are of senders that do not say, and of the whole step.
export function stepMs(answer: TimelineAnswer, step: number, series?: TimelineAnswer["series"][number]): number {
  return series?.reported?.[step]?.[1] || answer.reported?.[step]?.[1] || answer.step_ms;
}

// What the lost samples of each step would have been worth, by the mean of those that there are; null:
// nothing was lost.
export function lostValues(answer: TimelineAnswer, bySamples: boolean): number[] | null {
  const { value, samples } = answer.accounting;
  const each = bySamples ? 1 : samples > 0 ? value / samples : 0;
  const lost = answer.reported?.map(([, , count]) => count * each) ?? [];
  return lost.some((one) => one > 0) ? lost : null;
}
