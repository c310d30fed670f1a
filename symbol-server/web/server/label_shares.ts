// SPDX-License-Identifier: Apache-2.0
// Which values a label has in what is chosen otherwise, and how much of it each is.

import { ask, type TimelineAnswer } from "./api";
import { pick, sampleParameters, type State } from "../shell/state";
import { escapePattern, NO_PICKS, quote } from "../shell/selector";
import { formatValue } from "../text/format";
import { timeOf } from "../text/time";

const VALUES = "1000"; // asked for; the server sums up the rest
const MINUTE_MS = 60_000;

export interface Shares {
  rows: { value: string; amount: number }[]; // the largest first
  more: number; // values beyond these
  total: number;
  format: (amount: number) => string;
}

// As few steps as the range has room for: only sums are wanted.
function oneStep(state: State): { step?: string } {
  const now = Date.now();
  const minutes = Math.ceil((timeOf(state.until, now) - timeOf(state.from, now)) / MINUTE_MS);
  return minutes >= 1 ? { step: `${minutes}m` } : {};
}

export function askGroups(state: State, type: string, labels: string, signal: AbortSignal): Promise<TimelineAnswer> {
  const parameters = { ...sampleParameters(state), ...oneStep(state), type, group_by: labels, limit: VALUES };
  return ask<TimelineAnswer>("timeline", parameters, signal);
}

// Of the types together; what is picked of the label itself does not narrow it. text: of the values, a part; "": all.
export async function askShares(state: State, types: readonly string[], label: string, text: string, signal: AbortSignal): Promise<Shares> {
  const others = { ...state, ...pick(state, label, NO_PICKS) };
  const found = text === "" ? "" : `${label}=~${quote(`(?is).*${escapePattern(text)}.*`)}`;
  const match = [others.match, found].filter((part) => part !== "").join(",");
  const answers = await Promise.all(types.map((type) => askGroups({ ...others, match }, type, label, signal)));
  const sums = new Map<string, number>();
  for (const { labels, value } of answers.flatMap(({ series }) => series)) {
    const name = labels[label] ?? "";
    sums.set(name, (sums.get(name) ?? 0) + value);
  }
  return {
    rows: [...sums].map(([value, amount]) => ({ value, amount })).sort((a, b) => b.amount - a.amount),
    more: Math.max(...answers.map(({ other }) => other?.series ?? 0)),
    total: answers.reduce((sum, { accounting }) => sum + accounting.value, 0),
    format: (amount) => formatValue(amount, answers[0].unit),
  };
}
