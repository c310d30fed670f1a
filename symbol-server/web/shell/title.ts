// SPDX-License-Identifier: Apache-2.0
// What a view is called in tabs, bookmarks and wherever its link is pasted. Pure.

import { timeOf } from "../text/time";
import { isLive } from "./snapshot";
import { contentsOf, pickWords } from "./selector";
import { picksOf, type State } from "./state";

const USUAL = ["process", "service", "host"]; // whose values speak for themselves

// "2026-11-23 23:43–23:48 UTC": the same words for every reader of a link; "" where times move on.
export function rangeTitle(state: State): string {
  const from = timeOf(state.from, 0);
  const until = timeOf(state.until, 0);
  if (isLive(state) || ![from, until].every((ms) => Number.isFinite(ms) && Math.abs(ms) < 8e15)) {
    return "";
  }
  const [begin, end] = [from, until].map((ms) => new Date(ms).toISOString().slice(0, 16).replace("T", " "));
  return `${begin}–${begin.slice(0, 10) === end.slice(0, 10) ? end.slice(11) : end} UTC`;
}

export function titleOf(state: State, view: string): string {
  const labels = new Set([...USUAL, ...contentsOf(state.match).labels]);
  const chosen = [...labels].map((label) => {
    const words = pickWords(picksOf(state, label));
    return words === "" || USUAL.includes(label) ? words : `${label} ${words}`;
  });
  const what = state.page === "graph" ? state.type : view;
  return [state.note, ...chosen, what, rangeTitle(state), "farflame"].filter((text) => text !== "").join(" · ");
}
