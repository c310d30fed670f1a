// SPDX-License-Identifier: Apache-2.0
// What a comparison says in words: values, changes, how sure they are, and all of it in one sentence. Pure.

import type { DiffAnswer, DiffHost, DiffRow } from "../../server/api";
import { formatCount, formatPercent, formatValue } from "../../text/format";

export const SMALL = 0.05; // a change that is none: the server's question is whether there is more
const MINUTES_TO_TELL = 6; // fewer do not show how they vary
const HOSTS_NAMED = 3;

export type Normed = Pick<DiffAnswer, "norm" | "unit" | "type">;

// A value as norm has it. per_second of nanoseconds is CPUs or threads.
export function normText(answer: Normed, value: number): string {
  if (answer.norm === "share") {
    return value === 0 ? "0 %" : formatPercent(value, 1);
  }
  if (answer.norm === "raw") {
    return formatValue(Math.round(value), answer.unit);
  }
  if (answer.unit !== "nanoseconds") {
    return `${formatValue(Math.round(value), answer.unit)}/s`;
  }
  const parallel = value / 1e9;
  const text = parallel === 0 ? "0" : parallel < 1e-5 ? "< 0.00001" : parallel.toFixed(parallel < 0.001 ? 5 : parallel < 0.01 ? 4 : 3);
  return text + (answer.type === "on-cpu" ? " CPUs" : "");
}

// "A → B" as words: a unit that both have is said once.
function joined(first: string, between: string, second: string): string {
  const [unit] = / \D+$/.exec(second) ?? [""];
  const short = unit !== "" && first.endsWith(unit) ? first.slice(0, -unit.length) : first;
  return `${short}${between}${second}`;
}

export function sidesText(answer: Normed, { before, after }: Pick<DiffRow, "before" | "after">): string {
  return joined(normText(answer, before), " → ", normText(answer, after));
}

// Both sides by themselves.
export function sampledSides(answer: Normed, row: DiffRow): string {
  const side = (value: number, error: number | undefined, samples: number) =>
    `${normText(answer, value)}${error ? ` ± ${normText(answer, error)}` : ""}, ${formatCount(samples)} ${samples === 1 ? "sample" : "samples"}`;
  return `${side(row.before, row.before_error, row.base_samples)} → ${side(row.after, row.after_error, row.samples)}`;
}

export function differenceText(answer: Normed, { before, after }: Pick<DiffRow, "before" | "after">): string {
  const sign = after > before ? "+" : after < before ? "−" : "";
  return sign + normText(answer, Math.abs(after - before));
}

// digits: of per cents.
function relativeText(change: number, digits: number): string {
  if (change >= 9) {
    return `× ${(change + 1).toFixed(change >= 99 ? 0 : 1)}`;
  }
  return `${change > 0 ? "+" : change < 0 ? "−" : ""}${(100 * Math.abs(change)).toFixed(digits)} %`;
}

export function changeText(change: number | null): string {
  return change === null ? "new" : change <= -1 ? "gone" : relativeText(change, 1);
}

function endText(change: number): string {
  return relativeText(change, Math.abs(change) < 0.1 ? 1 : 0);
}

// Of what is new or gone only one end is known.
export function intervalText({ state, ci_low, ci_high }: Pick<DiffRow, "state" | "ci_low" | "ci_high">): string {
  if (state === "new") {
    return ci_low === null || ci_low <= 0 ? "" : `at least ${endText(ci_low)}`;
  }
  if (state === "gone") {
    return ci_high === null || ci_high >= 0 ? "" : `at least ${endText(ci_high)}`;
  }
  if (ci_high === null) {
    return ci_low === null ? "" : `at least ${endText(ci_low)}`;
  }
  return joined(endText(ci_low ?? -1), " … ", endText(ci_high));
}

// What sampling alone says. change as the rows have it.
export function recordedText(recorded: boolean, change: number | null): string {
  if (recorded) {
    return "recorded";
  }
  return change === 0 ? "the same" : change !== null && Math.abs(change) < SMALL ? "less than 5 %" : "within sampling noise";
}

const SUSTAINED: Record<DiffRow["sustained"], string> = {
  yes: "stands out from minute to minute",
  no: "within the usual variation of minutes",
  "too short": "too short to tell",
};

// The two verdicts; that of the minutes only where sampling does not say it all.
export function confidenceText({ recorded, sustained, change }: Pick<DiffRow, "recorded" | "sustained" | "change">): string[] {
  const first = recordedText(recorded, change);
  return recorded || sustained === "yes" ? [first, SUSTAINED[sustained]] : [first];
}

function countText(count: number, what: string): string {
  return `${formatCount(count)} ${count === 1 ? what : what + "s"}`;
}

type Summed = Pick<DiffAnswer, "statistics" | "accounting"> & { base: Pick<DiffAnswer["base"], "accounting"> };

export function summaryText({ statistics, accounting, base }: Summed): string {
  const empty = base.accounting.samples === 0 ? ["A", "new"] : accounting.samples === 0 ? ["B", "gone"] : null;
  if (empty !== null) {
    return `${empty[0]} has no samples: all is ${empty[1]}.`;
  }
  const { tested, recorded, sustained, too_short } = statistics;
  if (tested === 0) {
    return "No function has enough samples to tell a change from sampling noise.";
  }
  const first =
    `${formatCount(recorded)} of ${countText(tested, "function")} with enough samples changed by more than 5 % ` +
    "and more than sampling explains";
  if (too_short || sustained === null) {
    const least = Math.min(statistics.minutes, statistics.base_minutes);
    const why =
      least < MINUTES_TO_TELL
        ? `${countText(least, "minute")} ${least === 1 ? "is" : "are"} too short to tell`
        : "What is stored of so long ago is too coarse to tell";
    return `${first}. ${why} what stands out from minute to minute.`;
  }
  return `${first}; ${formatCount(sustained)} ${sustained === 1 ? "stands" : "stand"} out from minute to minute.`;
}

// "" where the same hosts are on both sides.
export function hostsText(answer: Normed & Pick<DiffAnswer, "hosts_joined" | "hosts_left" | "statistics">): string {
  if (answer.statistics.hosts === 0 && answer.hosts_joined.length > 0 && answer.hosts_left.length > 0) {
    return "No host is on both sides.";
  }
  const side = (hosts: DiffHost[], does: string) => {
    if (hosts.length === 0) {
      return "";
    }
    const named = hosts.slice(0, HOSTS_NAMED).map(({ host, value }) => `${host} (${normText(answer, value)})`);
    const more = hosts.length - named.length;
    return `${countText(hosts.length, "host")} ${does}: ${named.join(", ")}${more > 0 ? ` and ${formatCount(more)} more` : ""}`;
  };
  const parts = [side(answer.hosts_joined, "joined"), side(answer.hosts_left, "left")].filter((text) => text !== "");
  return parts.length === 0 ? "" : `${parts.join("; ")}. They count in the sizes, not in the confidence.`;
}
