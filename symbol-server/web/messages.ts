// SPDX-License-Identifier: Apache-2.0
// What stands where a picture cannot: loading, an error in one sentence, or nothing there and what
// to do about it. An error while an older picture is shown becomes a banner above it.

import { ask, type AgentState, type FlameAnswer } from "./api";
import { byId, el, type Child } from "./dom";
import { formatAge, formatCount } from "./format";
import { hasFilters, type State } from "./state";

const LOADING_AFTER_MS = 200; // shorter waits are not worth a flicker

export interface MessageEvents {
  retry(): void;
  clearFilters(): void;
  lastDay(): void;
}

export class Messages {
  private readonly message = byId("message");
  private readonly banner = byId("banner");
  private timer = 0;

  constructor(private readonly events: MessageEvents) {}

  loading(hasPicture: boolean): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => {
      document.body.classList.add("loading");
      if (!hasPicture) {
        this.put("loading", [el("p", {}, "Loading…")]);
      }
    }, LOADING_AFTER_MS);
  }

  done(): void {
    clearTimeout(this.timer);
    document.body.classList.remove("loading");
  }

  hide(): void {
    this.done();
    this.message.hidden = true;
    this.banner.hidden = true;
  }

  error(sentence: string, shownSince: number): void {
    this.done();
    const retry = this.button("Try again", () => this.events.retry());
    if (shownSince === 0) {
      this.put("error", [el("h2", {}, "No picture"), el("p", {}, sentence), retry]);
      return;
    }
    const time = new Date(shownSince).toLocaleTimeString("en-GB");
    const old = `The picture below is the last one that came, at ${time}.`;
    this.banner.replaceChildren(el("span", {}, `${sentence} ${old}`), retry);
    this.banner.hidden = false;
  }

  // No samples: is it the choice, the time, or is there no agent at all?
  async empty(answer: FlameAnswer, state: State, signal: AbortSignal): Promise<void> {
    this.hide();
    const parts: Child[] = [el("h2", {}, "No samples here")];
    if (answer.accounting.lost > 0) {
      const lost = `${formatCount(answer.accounting.lost)} samples of this time were lost.`;
      parts.push(el("p", {}, `${lost} The line above says why.`));
    }
    if (hasFilters(state)) {
      parts.push(
        el("p", {}, "The chosen filters may be too narrow."),
        this.button("Clear all filters", () => this.events.clearFilters()),
      );
    } else if (state.from !== "now-24h") {
      parts.push(this.button("Look at the last 24 hours", () => this.events.lastDay()));
    }
    this.put("empty", parts);
    const agents = await ask<{ agents: AgentState[] }>("agents", {}, signal).catch(() => null);
    if (agents !== null && !signal.aborted) {
      this.message.append(...agentLines(agents.agents));
    }
  }

  private put(kind: string, children: Child[]): void {
    this.message.className = kind;
    this.message.replaceChildren(...children);
    this.message.hidden = false;
  }

  private button(text: string, run: () => void): HTMLButtonElement {
    const made = el("button", { type: "button" }, text);
    made.addEventListener("click", run);
    return made;
  }
}

function agentLines(agents: AgentState[]): Node[] {
  const start = el("pre", {}, `sudo farflame-agent --server ${location.origin}`);
  if (agents.length === 0) {
    return [
      el(
        "p",
        {},
        "No agent has reported to this server yet. Start one on the host to be profiled:",
      ),
      start,
      el("p", { class: "quiet" }, "Its first report arrives about ten seconds later."),
    ];
  }
  const count = agents.length === 1 ? "One agent is" : `${formatCount(agents.length)} agents are`;
  const latest = agents.reduce((a, b) => (a.last_seen > b.last_seen ? a : b));
  const age = formatAge(Date.now() - latest.last_seen);
  return [el("p", {}, `${count} known; ` + `the last report came from ${latest.host}, ${age}.`)];
}
