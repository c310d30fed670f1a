// SPDX-License-Identifier: Apache-2.0
// Rates of a time line's steps. What a report brings is of the step in which it began; where steps are
// seconds it goes on in those after it. Pure.

import type { TimelineAnswer } from "../server/api";
import { MINUTE } from "../text/time";
import type { Rate } from "./rates";
import { stepMs } from "./reported";

type Line = TimelineAnswer["series"][number];

export function ratesOf(answer: TimelineAnswer, rate: Rate, values: number[], line?: Line): number[] {
  if (answer.step_ms >= MINUTE) {
    return values.map((value, step) => rate.of(value, stepMs(answer, step, line)));
  }
  return rate.isMean ? held(values, answer.step_ms) : spread(answer, rate, values, line);
}

// Senders that do not say how long their reports are: all that they sent in a minute is of that minute.
function spread(answer: TimelineAnswer, rate: Rate, values: number[], line?: Line): number[] {
  const out = new Array<number>(values.length).fill(0);
  const { step_ms } = answer;
  const first = answer.series[0]?.points[0]?.[0] ?? answer.from;
  values.forEach((value, step) => {
    if (value === 0) {
      return;
    }
    const known = (line?.reported ?? answer.reported)?.[step]?.[1] || 0;
    const into = (first + step * step_ms) % MINUTE;
    const begin = known > 0 ? step : Math.max(0, step - into / step_ms);
    const length = known || MINUTE;
    for (let at = begin, left = length; left > 0 && at < out.length; at++, left -= step_ms) {
      out[at] += rate.of(value, length) * Math.min(1, left / step_ms);
    }
  });
  return out;
}

// What there is stays until the next report says how much.
function held(values: number[], step_ms: number): number[] {
  let last = 0;
  let since = Infinity;
  return values.map((value) => {
    since = value > 0 ? 0 : since + step_ms;
    last = value > 0 ? value : since < MINUTE ? last : 0;
    return last;
  });
}
