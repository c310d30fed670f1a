// SPDX-License-Identifier: Apache-2.0
// Which modules are listed. Pure.

import type { ModuleState } from "../../server/api";

export const SHOWN = ["nameless", "used", "all"] as const;
export type Shown = (typeof SHOWN)[number];

export const SHOWN_WORDS: Record<Shown, string> = {
  nameless: "without names",
  used: "in this picture",
  all: "all known",
};

export function shownOf(text: string): Shown {
  return SHOWN.find((known) => known === text) ?? "nameless";
}

export function isListed(module: ModuleState, which: Shown): boolean {
  return which === "all" || (which === "used" ? module.samples > 0 : module.unsymbolized > 0);
}

// Every word of the text is in the name, build-id, state, reason, source or quality.
export function matches(module: ModuleState, text: string): boolean {
  const { name, build_id, state, reason, source, quality } = module;
  const all = [name, build_id, state, reason, source, quality].join("\n").toLowerCase();
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((part) => all.includes(part));
}

export function listOf(modules: readonly ModuleState[], which: Shown, text: string): ModuleState[] {
  return modules.filter((module) => isListed(module, which) && matches(module, text.trim()));
}
