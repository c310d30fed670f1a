// SPDX-License-Identifier: Apache-2.0
// No samples: is it the choice, the time, or is there no agent at all? And what to do about it.

import { ask, type AgentsAnswer, type AgentState } from "../server/api";
import { el, type Child } from "../widgets/dom";
import { formatAge, formatCount } from "../text/format";
import { hasFilters, noFilters } from "./state";
import { commandLine } from "../widgets/command";
import { button } from "./messages";
import type { Shell } from "./view";

export async function explainEmpty(shell: Shell, lost: number, signal: AbortSignal): Promise<void> {
  const parts: Child[] = [el("h2", {}, "No samples here")];
  if (lost > 0) {
    const count = `${formatCount(lost)} samples of this time were lost.`;
    parts.push(el("p", {}, `${count} The line above says why.`));
  }
  if (hasFilters(shell.state)) {
    parts.push(
      el("p", {}, "The chosen filters may be too narrow."),
      button("Clear all filters", () => shell.change(noFilters())),
    );
  } else if (shell.state.from !== "now-24h") {
    const day = { from: "now-24h", until: "now" };
    parts.push(button("Look at the last 24 hours", () => shell.change(day)));
  }
  shell.blank(...parts);
  const answer = await ask<AgentsAnswer>("agents", {}, signal).catch(() => null);
  if (answer !== null && !signal.aborted) {
    shell.blank(...parts, ...agentLines(answer.agents, answer.now));
  }
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
