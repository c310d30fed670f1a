// SPDX-License-Identifier: Apache-2.0
// The search field: what it finds stands out in the graph; beside it the share and "3 of 17".

import { byId, el } from "../../widgets/dom";
import { formatCount, formatShare } from "../../text/format";
import type { Graph } from "../../graph/graph";
import { compilePattern, findFrames, matchNames, NAME_LIMIT, type Found } from "../../graph/search";
import { LIMIT_MS, matchGuarded, mayExplode } from "../../graph/search_guard";
import { exactly } from "../../shell/state";

const TYPING_PAUSE_MS = 120;
const COUNTING_PAUSE_MS = 150;

interface Share {
  value: number;
  whole: number;
  error?: number; // ± of both, where the server counted
  wholeError?: number;
  isLeast: boolean; // of what is drawn: there may be more
}

// The server's sum of what an expression of RE2 finds, of everything or of the zoomed frame; null: not known.
export type Counting = (expression: string, inZoom: boolean, signal: AbortSignal) => Promise<Omit<Share, "isLeast"> | null>;

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

let boxes = 0; // made so far, for ids

export class SearchBox {
  private text = "";
  private reason = "";
  private graph: Graph | null = null;
  private zoom = 0;
  private names: Uint8Array | null = null; // matching names of graph
  private expression: RegExp | null = null;
  private found: Found | null = null;
  private shares: Share[] = []; // of everything; of the zoomed frame, where that is another
  private counting = new AbortController();
  private at = -1; // which match is selected
  private timer = 0;
  private asking = new AbortController();

  constructor(
    private readonly parts: SearchElements,
    private readonly changed: (text: string) => void,
    private readonly highlight: (names: Uint8Array | null) => void,
    private readonly go: (node: number) => void,
    private readonly counted: Counting | null = null,
  ) {
    const { field } = parts;
    parts.result.id ||= `search-result-${boxes++}`;
    field.setAttribute("aria-describedby", parts.result.id);
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
    this.counting.abort();
    this.expression = pattern?.expression ?? null;
    this.markOdd(pattern?.error ?? "");
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
      this.markOdd(`Stopped after ${LIMIT_MS} ms: too many ways to match. Fewer * and + inside of each other help.`);
      this.say("");
      return;
    }
    this.names = names;
    this.count();
    this.highlight(names);
  }

  private count(): void {
    const graph = this.graph as Graph;
    const names = this.names as Uint8Array;
    const isLeast = graph.holdsCut(0) || graph.ancestorsOf(this.zoom).some((node) => graph.lacksCallees(node));
    this.found = findFrames(graph, names, this.zoom);
    const share = ({ value, error }: Found, node: number, isLeast: boolean): Share => ({
      value,
      whole: graph.total[node],
      error,
      wholeError: graph.totalErrorOf(node),
      isLeast,
    });
    const inZoom = share(this.found, this.zoom, graph.holdsCut(this.zoom));
    this.shares =
      this.zoom === 0 ? [inZoom] : [share(findFrames(graph, names, 0), 0, isLeast), inZoom];
    this.tell();
    this.counting.abort();
    if (this.shares.some((share) => share.isLeast) && this.counted !== null && this.expression !== null) {
      this.counting = new AbortController();
      const { signal } = this.counting;
      const { flags, source } = this.expression;
      const text = flags.includes("i") ? `(?i)${source}` : source;
      setTimeout(() => this.shares.forEach((_, i) => void this.ask(text, i, signal)), COUNTING_PAUSE_MS);
    }
  }

  // An expression that the server does not know leaves what is drawn.
  private async ask(expression: string, i: number, signal: AbortSignal): Promise<void> {
    const counted = signal.aborted ? null : await this.counted?.(expression, i > 0, signal).catch(() => null);
    if (counted && !signal.aborted) {
      this.shares[i] = { ...counted, isLeast: false };
      this.tell();
    }
  }

  private tell(): void {
    const { count } = this.found as Found;
    if (count === 0 && this.shares.every(({ value, isLeast }) => value === 0 && !isLeast)) {
      this.say("no match");
      return;
    }
    const words = this.shares.length === 1 ? [""] : [" of all", " of the zoom"];
    const shares = this.shares.map(
      ({ value, whole, isLeast, error, wholeError }, i) =>
        `${isLeast ? "at least " : ""}${formatShare(value, whole, error, wholeError)}${words[i]}`,
    );
    const place = this.at >= 0 ? `${formatCount(this.at + 1)} of ` : "";
    const frames = count === 0 ? "too narrow to draw" : `${place}${formatCount(count)} ${count === 1 ? "frame" : "frames"}`;
    this.say(`${shares.join(", ")} · ${frames}`);
  }

  // What is wrong with the text, "" for nothing: read with the field, and before what was found.
  private markOdd(reason: string): void {
    const { field } = this.parts;
    this.reason = reason;
    field.title = reason;
    field.classList.toggle("odd", reason !== "");
    field.setAttribute("aria-invalid", String(reason !== ""));
  }

  private say(text: string): void {
    const said = this.reason === "" ? [] : [el("span", { class: "reason", title: this.reason }, this.reason), " "];
    this.parts.result.replaceChildren(...said, text);
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
