// SPDX-License-Identifier: Apache-2.0
// One function between those who call it, above and growing upwards, and those it calls, below.

import type { SandwichAnswer } from "../../server/api";
import { HoverCard } from "../../graph/details";
import { el } from "../../widgets/dom";
import { FlameGraph, type Colouring } from "../../graph/flamegraph";
import { formatCount, formatPercent, formatSampled, formatShare } from "../../text/format";
import type { Graph } from "../../graph/graph";
import { FlameSteps, type Way } from "./flame_steps";
import { FrameTree } from "./frame_tree";
import { sandwichOf } from "./sandwich_trees";

export interface SandwichEvents {
  select(graph: Graph, node: number): void;
  menu(graph: Graph, node: number, x: number, y: number): void;
  leave(): void;
}

export interface SandwichScope {
  within: string; // the zoomed frame; "": everything,
  isZoomed: boolean; // which is to be said then
  saysCut: boolean; // a number of frames was asked for
}

class Half {
  private readonly tree: FrameTree;
  graph: Graph | null = null;
  zoom = 0;
  selected = -1;
  readonly host: HTMLElement;
  readonly flame: FlameGraph;
  readonly steps: FlameSteps;

  constructor(
    prefix: "callers" | "callees",
    card: HoverCard,
    private readonly events: SandwichEvents,
    private readonly took: (half: Half) => void,
  ) {
    this.host = el("div", { class: "half-flame" });
    this.flame = new FlameGraph(
      this.host,
      {
        hover: (node, x, y) => (this.graph === null || node < 0 ? card.hide() : card.show(this.graph, node, x, y)),
        zoom: (node) => this.zoomTo(node),
        select: (node) => this.select(node),
        menu: (node, x, y) => {
          card.hide();
          this.events.menu(this.graph as Graph, node, x, y);
        },
        wheel: (step, node) => this.zoomTo(step === "in" ? node : Math.max(0, this.graph?.parent[this.zoom] ?? 0)),
      },
      prefix,
      prefix === "callers",
    );
    const label = prefix === "callers" ? "Callers, the function at the bottom" : "Callees, the function on top";
    this.tree = new FrameTree(this.flame.scroller, label, prefix);
    this.steps = new FlameSteps(this.flame, (node) => this.select(node));
  }

  show(graph: Graph): void {
    this.graph = graph;
    this.zoom = 0;
    this.selected = -1;
    this.flame.show(graph, 0, -1);
    this.tree.show(graph, 0);
  }

  zoomTo(node: number): void {
    if (this.graph !== null && node >= 0) {
      this.zoom = node;
      this.flame.show(this.graph, node, this.selected);
      this.select(node);
    }
  }

  select(node: number): void {
    if (this.graph !== null) {
      this.selected = node;
      this.took(this);
      this.flame.select(node);
      this.flame.reveal(node);
      this.tree.show(this.graph, node);
      this.events.select(this.graph, node);
    }
  }
}

export class SandwichPanel {
  readonly element = el("section", { class: "sandwich", hidden: "", "aria-label": "Callers and callees of a function" });
  private readonly head = el("div", { class: "sandwich-head" });
  private readonly card = new HoverCard();
  private readonly callers: Half;
  private readonly callees: Half;
  private readonly callersTitle = el("h2");
  private readonly calleesTitle = el("h2");
  private active: Half;

  constructor(private readonly events: SandwichEvents) {
    const took = (half: Half) => this.take(half);
    this.callers = new Half("callers", this.card, events, took);
    this.callees = new Half("callees", this.card, events, took);
    this.active = this.callees;
    this.element.append(this.head, this.callersTitle, this.callers.host, this.calleesTitle, this.callees.host);
  }

  get isShown(): boolean {
    return !this.element.hidden;
  }

  get selection(): { graph: Graph; node: number } | null {
    const { graph, selected } = this.active;
    return graph === null || selected < 0 ? null : { graph, node: selected };
  }

  // Returns the graph of callees.
  show(answer: SandwichAnswer, { within, isZoomed, saysCut }: SandwichScope): Graph {
    this.element.hidden = false;
    const { callers, callees } = sandwichOf(answer);
    const { accounting, unit } = answer;
    const back = el("button", { type: "button", id: "sandwich-leave" }, "‹ Flame graph ", el("kbd", {}, "Esc"));
    back.addEventListener("click", () => this.events.leave());
    const self = answer.functions.reduce((sum, f) => sum + f.self, 0);
    const selfError = Math.hypot(...answer.functions.map((f) => f.self_error ?? 0));
    const amount = (word: string, value: number, error: number | undefined) => {
      const share = formatShare(value, accounting.value, error, accounting.error);
      return el("span", {}, el("span", { class: "quiet" }, word), ` ${formatSampled(value, error, unit)} · ${share}`);
    };
    this.head.replaceChildren(
      back,
      el("strong", { title: answer.function }, answer.function),
      amount("total", answer.total, answer.error),
      amount("self", self, answer.error === undefined ? undefined : selfError),
      el("span", { class: "quiet" }, `${formatCount(answer.total_samples)} samples${modulesText(answer)}`),
      el("span", { class: "quiet within" }, within !== "" ? `within ${within}` : isZoomed ? "of everything" : ""),
    );
    this.element.classList.toggle("nobody", answer.total === 0);
    if (answer.total === 0) {
      this.head.append(el("p", { class: "quiet" }, "No stack of this choice and time goes through a function of this name."));
    }
    this.callersTitle.textContent = `Callers${saysCut ? cutText(answer.callers.cut, answer) : ""}`;
    this.calleesTitle.textContent = `Callees${saysCut ? cutText(answer.callees.cut, answer) : ""}`;
    this.callers.show(callers);
    this.callees.show(callees);
    this.active = this.callees;
    document.body.dataset.sandwich = answer.function;
    return callees;
  }

  hide(): void {
    this.element.hidden = true;
    this.card.hide();
    delete document.body.dataset.sandwich;
  }

  setTheme(dark: boolean): void {
    this.callers.flame.setTheme(dark);
    this.callees.flame.setTheme(dark);
  }

  colour(byModule: boolean, colouring: Colouring | null): void {
    this.callers.flame.colour(byModule, colouring);
    this.callees.flame.colour(byModule, colouring);
  }

  // Keys go where eyes do: up in the upper half is to the callers.
  move(way: Way): void {
    const { active, callers, callees } = this;
    const isUpper = active === callers;
    const own = way === "parent" ? (isUpper ? "child" : "parent") : way === "child" ? (isUpper ? "parent" : "child") : way;
    if (own === "parent" && active.selected <= 0 && active.selected !== -1) {
      (isUpper ? callees : callers).select(0);
      return;
    }
    active.steps.move(active.graph, own, active.selected, active.zoom);
  }

  zoomIn(): void {
    this.active.zoomTo(this.active.selected);
  }

  // Both halves whole again; false: they were.
  zoomOut(): boolean {
    const zoomed = [this.callers, this.callees].filter(({ zoom }) => zoom > 0);
    zoomed.forEach((half) => half.zoomTo(0));
    return zoomed.length > 0;
  }

  place(): { left: number; top: number } {
    return this.active.flame.place(Math.max(0, this.active.selected));
  }

  private take(half: Half): void {
    const other = half === this.callers ? this.callees : this.callers;
    this.active = half;
    other.selected = -1;
    other.flame.select(-1);
  }
}

function cutText(cut: number, answer: SandwichAnswer): string {
  return cut > 0 ? ` · ${formatPercent(cut, answer.total)} in frames too small for this answer` : "";
}

function modulesText(answer: SandwichAnswer): string {
  const modules = [...new Set(answer.functions.map(({ module }) => module).filter((name) => name !== ""))];
  return modules.length === 0 ? "" : modules.length === 1 ? ` · ${modules[0]}` : ` · in ${modules.length} modules: ${modules.slice(0, 4).join(", ")}`;
}
