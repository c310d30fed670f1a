// SPDX-License-Identifier: Apache-2.0
// A choice whose times stand still: its link shows the same picture tomorrow.

import type { State } from "./state";
import { timeOf } from "../text/time";

// As an absolute time; what cannot be understood as it is, for the server to say so.
function fixed(time: string, now: number): string {
  const ms = timeOf(time, now);
  return time.startsWith("now") && Number.isFinite(ms) ? String(Math.round(ms)) : time;
}

// now: unix milliseconds when the picture was made.
export function snapshotOf(state: State, now: number): State {
  const base = state.base.includes("..")
    ? state.base.split("..").map((time) => fixed(time, now)).join("..")
    : state.base; // relative to the other side
  return { ...state, from: fixed(state.from, now), until: fixed(state.until, now), base, refresh: "0" };
}

export function isLive(state: State): boolean {
  return [state.from, state.until, ...state.base.split("..")].some((time) => time.startsWith("now"));
}
