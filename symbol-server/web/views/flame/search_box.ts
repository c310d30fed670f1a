// SPDX-License-Identifier: Apache-2.0
// The search field: what it finds stands out in the graph; beside it the share and "3 of 17".

import { byId, el } from "../../widgets/dom";
import { formatCount, formatPercent } from "../../text/format";
import type { Graph } from "../../graph/graph";
import { compilePattern, findFrames, matchNames, NAME_LIMIT, type Found } from "../../graph/search";
import { LIMIT_MS, matchGuarded, mayExplode } from "../../graph/search_guard";
import { exactly } from "../../shell/state";

const TYPING_PAUSE_MS = 120;

export interface SearchElements {
  field: HTMLInputElement;
  tools: HTMLElement; // hidden while nothing is searched
  result: HTMLElement;
  previous: HTMLElement;
  next: HTMLElement;
  clear: HTMLElement;
  leave(): void; // Escape in the field
}

// Those of index.html.
export function pageSearch(): SearchElements {
  return {
    field: byId<HTMLInputElement>("search"),
    tools: byId("search-tools"),
    result: byId("search-result"),
    previous: byId("search-previous"),
    next: byId("search-next"),
    clear: byId("search-clear"),
    leave: () => byId("flame-scroller").focus(),
  };
}

// The same for a view that makes its own.
export function makeSearch(leave: () => void): { element: HTMLElement; parts: SearchElements } {
  const button = (title: string, label: string, text: string) =>
    el("button", { type: "button", title, "aria-label": label }, text);
  const parts: SearchElements = {
    field: el("input", {
      type: "text",
      placeholder: "Search: regular expression, or a trace id  ( / )",
      "aria-label": "Search frames",
      spellcheck: "false",
      autocomplete: "off",
    }),
    tools: el("span", { class: "search-tools", hidden: "" }),
    result: el("span", { class: "search-result", role: "status" }),
    previous: button("Previous match (N)", "Previous match", "‹"),
    next: button("Next match (n)", "Next match", "›"),
    clear: button("End the search", "End the search", "×"),
    leave,
  };
  parts.tools.append(parts.result, parts.previous, parts.next, parts.clear);
  return { element: el("span", { class: "search-side", role: "search" }, parts.field, parts.tools), parts };
}

export class SearchBox {
  private text = "";
  private graph: Graph | null = null;
  private zoom = 0;
  private names: Uint8Array | null = null; // matching names of graph
  private found: Found | null = null;
  private at = -1; // which match is selected
  private timer = 0;
  private asking = new AbortController();

  constructor(
    private readonly parts: SearchElements,
    private readonly changed: (text: string) => void,
    private readonly highlight: (names: Uint8Array | null) => void,
    private readonly go: (node: number) => void,
  ) {
    const { field } = parts;
    field.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = window.setTimeout(() => this.changed(field.value), TYPING_PAUSE_MS);
    });
    field.addEventListener("keydown", (e) => this.key(e));
    parts.next.addEventListener("click", () => this.step(1));
    parts.previous.addEventListener("click", () => this.step(-1));
    parts.clear.addEventListener("click", () => this.changed(""));
  }

  private key(e: KeyboardEvent): void {
    if (e.key === "Enter") {
      clearTimeout(this.timer);
      if (this.parts.field.value !== this.text) {
        this.changed(this.parts.field.value);
      }
      this.step(e.shiftKey ? -1 : 1);
    } else if (e.key === "Escape") {
      clearTimeout(this.timer);
      this.changed("");
      this.parts.leave();
    }
  }

  // Names that the search found in the graph.
  get marked(): Uint8Array | null {
    return this.names;
  }

  focus(): void {
    this.parts.field.focus();
    this.parts.field.select();
  }

  set(text: string): void {
    this.parts.field.value = text;
    if (text === this.text) {
      return;
    }
    this.text = text;
    this.at = -1;
    this.run();
  }

  // The graph drawn now, and the frame whose share counts.
  attach(graph: Graph | null, zoom: number): void {
    const isNew = graph !== this.graph;
    this.graph = graph;
    this.zoom = zoom;
    if (isNew) {
      this.at = -1;
      this.run();
    } else if (this.names !== null) {
      this.count();
    }
  }

  private run(): void {
    const pattern = compilePattern(this.text, true);
    this.asking.abort();
    this.parts.field.title = pattern?.error ?? "";
    this.parts.field.classList.toggle("odd", pattern !== null && pattern.error !== "");
    if (pattern === null || this.graph === null) {
      this.names = this.found = null;
      this.say("");
    } else if (mayExplode(pattern.expression.source)) {
      this.names = this.found = null;
      this.say("searching…");
      void this.runGuarded(this.graph, pattern.expression);
    } else {
      this.names = matchNames(this.graph, pattern.expression);
      this.count();
    }
    this.highlight(this.names);
  }

  private async runGuarded(graph: Graph, expression: RegExp): Promise<void> {
    this.asking = new AbortController();
    const { signal } = this.asking;
    const names = await matchGuarded(graph.answer.names, expression, NAME_LIMIT, signal);
    if (signal.aborted) {
      return;
    }
    if (names === null) {
      this.parts.field.title = "This expression has too many ways to match: it was stopped. Fewer * and + inside of each other help.";
      this.parts.field.classList.add("odd");
      this.say(`stopped after ${LIMIT_MS} ms`);
      return;
    }
    this.names = names;
    this.count();
    this.highlight(names);
  }

  private count(): void {
    this.found = findFrames(this.graph as Graph, this.names as Uint8Array, this.zoom);
    this.tell();
  }

  private tell(): void {
    const graph = this.graph as Graph;
    const { count, value } = this.found as Found;
    if (count === 0) {
      this.say("no match");
      return;
    }
    const share = formatPercent(value, graph.total[this.zoom]);
    const place = this.at >= 0 ? `${formatCount(this.at + 1)} of ` : "";
    this.say(`${share} · ${place}${formatCount(count)} ${count === 1 ? "frame" : "frames"}`);
  }

  private say(text: string): void {
    this.parts.result.textContent = text;
    this.parts.tools.hidden = this.text === "";
  }

  step(step: 1 | -1): void {
    const n = this.found?.count ?? 0;
    if (n === 0) {
      return;
    }
    this.at = this.at < 0 ? (step > 0 ? 0 : n - 1) : (this.at + step + n) % n;
    const at = this.at;
    this.go((this.found as Found).nodes()[at]);
    this.at = at; // going there may have zoomed, and so attached anew
    if (this.found !== null) {
      this.tell();
    }
  }

  // The table's pointer shows one function for a moment; null gives the search back.
  point(name: string | null): void {
    if (this.graph === null) {
      return;
    }
    this.highlight(name === null ? this.names : matchNames(this.graph, new RegExp(exactly(name))));
  }
}
