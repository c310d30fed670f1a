// SPDX-License-Identifier: Apache-2.0
// When something new began to run: a module with another build-id than those seen before. Pure.

import type { ModuleState } from "../server/api";

export interface NewBuild {
  name: string;
  build_id: string;
  before: string; // the build-id of that name that came last before it
  time: number; // when the server met it first, unix milliseconds
  samples: number;
}

const MOST = 20;

// Of all modules, those with samples in the selection that were first met within from…until and whose
// name was known by then; of many the ones with most samples, in the order of time. A name of which
// several came in one report, as plugins' stubs do, is told apart by its samples alone.
export function newBuilds(modules: readonly ModuleState[], from: number, until: number): NewBuild[] {
  const byName = new Map<string, ModuleState[]>();
  for (const module of modules) {
    if (module.name !== "" && module.first_seen > 0) {
      const same = byName.get(module.name);
      if (same === undefined) {
        byName.set(module.name, [module]);
      } else {
        same.push(module);
      }
    }
  }
  const found: NewBuild[] = [];
  for (const [name, all] of byName) {
    all.sort((a, b) => a.first_seen - b.first_seen);
    let before = ""; // met before the one looked at, not together with it
    for (let i = 0; i < all.length; i++) {
      const { build_id, samples, first_seen: time } = all[i];
      before = i > 0 && all[i - 1].first_seen < time ? all[i - 1].build_id : before;
      if (before !== "" && samples > 0 && time >= from && time < until) {
        found.push({ name, build_id, before, time, samples });
      }
    }
  }
  return found
    .sort((a, b) => b.samples - a.samples)
    .slice(0, MOST)
    .sort((a, b) => a.time - b.time);
}

// Names that the server has met several builds of, those with most samples first, each with its builds, the newest first.
export function severalBuilds(modules: readonly ModuleState[]): { name: string; builds: ModuleState[] }[] {
  const byName = new Map<string, ModuleState[]>();
  for (const module of modules) {
    if (module.name !== "" && module.build_id !== "") {
      byName.set(module.name, [...(byName.get(module.name) ?? []), module]);
    }
  }
  const samplesOf = (builds: ModuleState[]) => builds.reduce((sum, { samples }) => sum + samples, 0);
  return [...byName]
    .filter(([, builds]) => builds.length > 1)
    .sort(([, a], [, b]) => samplesOf(b) - samplesOf(a))
    .slice(0, MOST)
    .map(([name, builds]) => ({ name, builds: builds.sort((a, b) => b.first_seen - a.first_seen).slice(0, MOST) }));
}

const MINUTE = 60_000;

// What to compare: since it ran against the same length before, in whole minutes. Nothing of the minute
// in which it came, which has both.
export function aroundBuild(time: number, from: number, until: number): { from: number; until: number; base: string } | null {
  const before = Math.floor(time / MINUTE) * MINUTE;
  const after = before + MINUTE;
  const length = Math.min(before - from, until - after);
  return length < MINUTE ? null : { from: after, until: after + length, base: `${before - length}..${before}` };
}

export interface Previous {
  name: string;
  build_id: string;
  before: string; // the build-id it replaced
  runsStill: boolean; // that one has samples in the selection too
  time: number; // when the server met the new one first
}

// Of each program with several builds the newest that has samples, and the one that the server met before it;
// those with most samples first.
export function previousBuilds(modules: readonly ModuleState[]): Previous[] {
  return severalBuilds(modules).flatMap(({ name, builds }) => {
    const now = builds.find(({ samples }) => samples > 0);
    const before = now && builds.find(({ first_seen }) => first_seen > 0 && first_seen < now.first_seen);
    return now && before
      ? [{ name, build_id: now.build_id, before: before.build_id, runsStill: before.samples > 0, time: now.first_seen }]
      : [];
  });
}

// What to compare of from…until: with the time before where the new build came within it, at the same time where
// both run, else with as much as there is of the previous one just before it came.
export function againstPrevious(previous: Previous, from: number, until: number): { from?: number; until?: number; base: string } {
  const around = previous.time > from ? aroundBuild(previous.time, from, until) : null;
  if (around !== null || previous.runsStill) {
    return around ?? { base: "-0s" };
  }
  const end = Math.floor(Math.min(previous.time, from) / MINUTE) * MINUTE;
  return { base: `${end - Math.round(until - from)}..${end}` };
}
