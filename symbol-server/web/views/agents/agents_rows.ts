// SPDX-License-Identifier: Apache-2.0
// What the agents say of themselves, judged. Pure. Times are the server's.

import type { AgentState } from "../../server/api";
import { isPicked, type Picks } from "../../shell/selector";

export const LATE_MS = 60_000; // reports come every ten seconds, unless told otherwise
export const SILENT_MS = 3_600_000;
const LAG_WARN_MS = 60_000;
const SKEW_WARN_MS = 2000;
const LOST_WARN = 0.01; // part of what was taken
const INCOMPLETE_WARN = 0.2; // part of the stacks

export type Health = "silent" | "late" | "reporting";

// bpf/results.h, and node-agent/runtimes/frame_merge.h behind "interpreter_"; what is not here is shown by its name.
export const WALK_WORDS: Record<string, string> = {
  complete: "complete",
  no_frame_pointer: "code without frame pointers",
  read_fault: "stack memory could not be read",
  too_deep: "deeper than the frame limit (--max-frames)",
  compat_32bit: "32-bit process",
  no_registers: "the thread's registers could not be read",
  bad_address: "the instruction pointer is no user address",
  no_table: "no unwind table for this code",
  not_code: "a return address outside of code",
  no_mapping: "the process' mappings could not be read",
  not_loaded: "first sight of this code",
  copy_short: "deeper than what was copied of the stack",
  register_unknown: "the caller hangs on a register not known there",
  table_failed: "the unwind table is damaged or could not be read",
  mappings_changed: "the process' mappings changed meanwhile",
  uprobe: "a return probe hides the caller",
  bad_frame: "the unwind table does not fit the stack",
  no_start: "a return address of 0 where no stack begins",
  leaf_not_code: "the instruction pointer outside of code",
  java_state: "code of HotSpot in a state not known",
  frozen: "frames of a virtual thread in the Java heap",
  interpreter_no_list: "the interpreter's frames were not read",
  interpreter_not_by_perf: "by perf events the interpreter's frames are not read",
  interpreter_early: "the interpreter was found only afterwards",
  interpreter_too_new: "the interpreter is newer than the agent",
  interpreter_unknown: "the interpreter's version is not known",
  interpreter_no_place: "the interpreter's frames were not found",
  interpreter_unsure: "not known yet whether it is interpreted",
  interpreter_list_cut: "more frames of the interpreter than are read",
  interpreter_list_unread: "frames of the interpreter were not in memory",
  interpreter_list_other: "another interpreter's frames were not read",
  interpreter_list_wrong: "the interpreter's frames make no sense",
  interpreter_guessed: "native frames behind generated code not known",
  interpreter_differ: "interpreter's and native frames do not fit",
  other: "other results",
};

// node-agent/kernel/lacks.h; what is not here is shown by its name.
const LACK_WORDS: Record<string, string> = {
  bpf: "Its BPF programs could not be loaded: it takes on-CPU stacks only, by perf events, and tries again.",
  descriptors: "It has too few descriptors: stacks of files that it cannot open stay incomplete. Raise LimitNOFILE.",
  realtime: "It is denied real-time priority: windows in allocators blur and are thrown away. Give it CAP_SYS_NICE.",
  threads: "It is denied threads: windows in allocators do not open, or end late. Raise TasksMax.",
};

export interface AgentRow extends AgentState {
  health: Health;
  age: number; // ms since its last report
  lostShare: number; // of what was taken
  stacksCount: number; // 0: it does not tell
  incomplete: number; // stacks
  worst: [string, number][]; // results other than complete, the most first
  warnings: string[]; // what is wrong with it, in words
}

export function healthOf(age: number): Health {
  return age > SILENT_MS ? "silent" : age > LATE_MS ? "late" : "reporting";
}

export function rowOf(agent: AgentState, now: number): AgentRow {
  const age = Math.max(0, now - agent.last_seen);
  const results = Object.entries(agent.stacks).filter(([name]) => name !== "guessed");
  const worst = results.filter(([name, count]) => name !== "complete" && count > 0).sort((a, b) => b[1] - a[1]);
  const stacksCount = results.reduce((sum, [, count]) => sum + count, 0);
  const incomplete = worst.reduce((sum, [, count]) => sum + count, 0);
  const row: AgentRow = {
    ...agent,
    health: healthOf(age),
    age,
    lostShare: agent.taken > 0 ? Math.min(1, agent.lost / agent.taken) : 0,
    stacksCount,
    incomplete,
    worst,
    warnings: [],
  };
  row.warnings = warningsOf(row);
  return row;
}

export const hasLag = ({ lag_ms }: AgentState): boolean => lag_ms > LAG_WARN_MS;
export const hasSkew = ({ skew_ms }: AgentState): boolean => Math.abs(skew_ms ?? 0) > SKEW_WARN_MS;
export const losesMuch = ({ lostShare }: AgentRow): boolean => lostShare > LOST_WARN;
export const isIncomplete = ({ incomplete, stacksCount }: AgentRow): boolean => incomplete > INCOMPLETE_WARN * stacksCount;

function warningsOf(row: AgentRow): string[] {
  const out: string[] = [];
  if (row.health !== "reporting") {
    out.push("No report for a while: is the agent running, and does it reach this server?");
  }
  if (hasLag(row)) {
    out.push("Its reports come late: they waited in its queue or spool.");
  }
  if (hasSkew(row)) {
    out.push("Its clock differs from the server's: its samples are shown at its own time.");
  }
  const jumps = row.clock_jumps ?? 0;
  if (jumps > 0) {
    out.push(`Its host's clock was set ${jumps === 1 ? "once" : `${jumps} times`}: samples lie where the clock said.`);
  }
  if (losesMuch(row)) {
    out.push("It loses many samples; the reasons are below.");
  }
  if (isIncomplete(row)) {
    out.push("Many of its stacks do not reach their start; the reasons are below.");
  }
  for (const name of Object.keys(row.lacks ?? {})) {
    out.push(LACK_WORDS[name] ?? `It was denied ${name}.`);
  }
  return out;
}

export interface Tally {
  agents: number;
  late: number; // late or silent
  taken: number;
  lost: number;
  versions: [string, number][]; // the most agents first
}

export function tallyOf(rows: readonly AgentRow[]): Tally {
  const versions = new Map<string, number>();
  const tally: Tally = { agents: rows.length, late: 0, taken: 0, lost: 0, versions: [] };
  for (const { health, taken, lost, version } of rows) {
    tally.late += health === "reporting" ? 0 : 1;
    tally.taken += taken;
    tally.lost += lost;
    versions.set(version, (versions.get(version) ?? 0) + 1);
  }
  tally.versions = [...versions].sort((a, b) => b[1] - a[1]);
  return tally;
}

// Every word is in its host, version, kernel, state, or a result or reason that it has.
export function listAgents(rows: readonly AgentRow[], hosts: Picks, text: string): AgentRow[] {
  const parts = text.toLowerCase().split(/\s+/);
  return rows.filter((row) => {
    if (!isPicked(hosts, row.host)) {
      return false;
    }
    const reasons = [...row.worst, ...Object.entries(row.lost_by).filter(([, count]) => count > 0)].map(([name]) => name);
    const all = [row.host, row.version, row.kernel, row.health, ...reasons].join("\n").toLowerCase();
    return parts.every((part) => all.includes(part));
  });
}
