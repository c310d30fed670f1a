// SPDX-License-Identifier: Apache-2.0
// No samples: is it the choice, the time, or is there no agent at all? And what to do about it.

import { ask, type Accounting, type AgentsAnswer, type AgentState } from "../server/api";
import { el, type Child } from "../widgets/dom";
import { formatAge, formatCount, formatRange } from "../text/format";
import { hasFilters, noFilters } from "./state";
import { commandLine } from "../widgets/command";
import { button } from "./messages";
import type { Shell } from "./view";

const HOUR_MS = 3_600_000;

// What an answer says of itself when it has no samples.
export type Emptiness = Pick<Accounting, "lost" | "nothing" | "data_from" | "data_until">;

export async function explainEmpty(shell: Shell, answer: Emptiness, signal: AbortSignal): Promise<void> {
  const parts: Child[] = [el("h2", {}, "No samples here")];
  if (answer.lost > 0) {
    const count = `${formatCount(answer.lost)} samples of this time were lost.`;
    parts.push(el("p", {}, `${count} The line above says why.`));
  }
  parts.push(...whyEmpty(shell, answer));
  shell.blank(...parts);
  const known = await ask<AgentsAnswer>("agents", {}, signal).catch(() => null);
  if (known !== null && !signal.aborted) {
    shell.blank(...parts, ...agentLines(known.agents, known.now));
  }
}

// Of a type that nobody records the command that does; else when there is something to be seen.
function whyEmpty(shell: Shell, { nothing, data_from, data_until }: Emptiness): Child[] {
  if (nothing !== undefined) {
    const option = /--profile \S+$/.exec(nothing);
    return [
      el("p", {}, sentence(nothing)),
      ...(option !== null
        ? [commandLine(`sudo farflame-agent --server ${location.origin} ${option[0]}`)]
        : hasFilters(shell.state)
          ? [clearFilters(shell)]
          : []),
    ];
  }
  if (data_from !== undefined && data_until !== undefined) {
    const last = { from: String(Math.max(data_from, data_until - HOUR_MS)), until: String(data_until) };
    return [
      el("p", {}, `Of this selection there are samples from ${formatRange(data_from, data_until).replace("–", "until")}.`),
      button("Look at the last hour of them", () => shell.change(last)),
    ];
  }
  if (hasFilters(shell.state)) {
    return [el("p", {}, "The chosen filters may be too narrow."), clearFilters(shell)];
  }
  const day = { from: "now-24h", until: "now" };
  return shell.state.from === day.from ? [] : [button("Look at the last 24 hours", () => shell.change(day))];
}

function clearFilters(shell: Shell): HTMLButtonElement {
  return button("Clear all filters", () => shell.change(noFilters()));
}

// The server knows nothing of that name, and says of which it does.
export function explainUnknown(shell: Shell, message: string): void {
  shell.blank(el("h2", {}, "No samples here"), el("p", {}, sentence(message.replace(/^parameter '[a-z_.]+': /, ""))), clearFilters(shell));
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

// How to start an agent, when none has ever reported; who reported last otherwise. now: by the server's
// clock.
export function agentLines(agents: AgentState[], now: number): Node[] {
  if (agents.length === 0) {
    return [
      el(
        "p",
        {},
        "No agent has reported to this server yet. Start one on the host to be profiled:",
      ),
      commandLine(`sudo farflame-agent --server ${location.origin}`),
      el("p", { class: "quiet" }, "Its first report arrives about ten seconds later; this page looks for it by itself."),
      el("p", { class: "quiet" }, "To try it on one Debian host, from the source, with all that it needs:"),
      commandLine("sudo sh deploy/quickstart.sh"),
    ];
  }
  const count = agents.length === 1 ? "One agent is" : `${formatCount(agents.length)} agents are`;
  const latest = agents.reduce((a, b) => (a.last_seen > b.last_seen ? a : b));
  const age = formatAge(now - latest.last_seen);
  return [el("p", {}, `${count} known; the last report came from ${latest.host}, ${age}.`)];
}
