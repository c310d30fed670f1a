// SPDX-License-Identifier: Apache-2.0
// What is known about one frame: beside the pointer, in the strip below the graph, and as a
// sentence for screen readers.

import { byId, el } from "../widgets/dom";
import { formatCpus, formatPercent, formatSampled, formatShare } from "../text/format";
import type { Graph } from "./graph";
import { KIND_WORDS, labelOf } from "./palette";

const POINTER_GAP = 14; // pixels

function rangeOf(graph: Graph): number {
  const { from, until, accounting } = graph.answer;
  return accounting.reported_ms ?? until - from;
}

function amount(graph: Graph, value: number, error: number | undefined): string {
  const text = formatSampled(value, error, graph.answer.unit);
  return graph.answer.unit === "nanoseconds" && graph.answer.type === "on-cpu"
    ? `${text} (${formatCpus(value, rangeOf(graph), graph.answer.accounting.cpus)})`
    : text;
}

export function placeOf(graph: Graph, node: number): string {
  const file = graph.fileOf(node);
  return file === "" ? "" : graph.lineOf(node) > 0 ? `${file}:${graph.lineOf(node)}` : file;
}

export function detailRows(graph: Graph, node: number): [string, string][] {
  const total = graph.total[node];
  const self = graph.selfOf(node);
  const all = graph.total[0];
  const share = (value: number, error: number | undefined) => formatShare(value, all, error, graph.totalErrorOf(0));
  const out: [string, string][] = [
    ["total", `${amount(graph, total, graph.totalErrorOf(node))} · ${share(total, graph.totalErrorOf(node))} of all`],
  ];
  if (node > 0) {
    const caller = graph.parent[node];
    out[0][1] += ` · ${formatShare(total, graph.total[caller], graph.totalErrorOf(node), graph.totalErrorOf(caller))} of its caller`;
  }
  out.push(["self", `${amount(graph, self, graph.selfErrorOf(node))} · ${share(self, graph.selfErrorOf(node))} of all`]);
  const signature = graph.signatureOf(node);
  if (signature !== undefined) {
    out.push(["signature", signature]);
  }
  const language = graph.languageOf(node);
  if (language !== undefined) {
    out.push(["language", language]);
  }
  const place = placeOf(graph, node);
  if (place !== "") {
    out.push(["source", place]);
  }
  const module = graph.moduleOf(node);
  if (module !== null) {
    out.push(["module", module.name]);
    if (module.build_id !== "") {
      out.push(["build-id", module.build_id]);
    }
  }
  const kind = graph.kindOf(node) as keyof typeof KIND_WORDS;
  out.push(["kind", KIND_WORDS[kind]]);
  return out;
}

// own: rows before those that every graph has.
function fill(box: HTMLElement, graph: Graph, node: number, own: [string, string][] = []): void {
  const list = el("dl");
  for (const [term, text] of [...own, ...detailRows(graph, node)]) {
    list.append(el("div", {}, el("dt", {}, term), el("dd", {}, text)));
  }
  const label = labelOf(graph.nameOf(node), graph.kindOf(node));
  box.replaceChildren(el("div", { class: "frame-name" }, label), list);
}

// The box beside the pointer.
export class HoverCard {
  private readonly box = byId("hover-card");
  private graph: Graph | null = null;
  private node = -1;

  show(graph: Graph, node: number, x: number, y: number, own: [string, string][] = []): void {
    if (graph !== this.graph || node !== this.node) {
      this.graph = graph;
      this.node = node;
      fill(this.box, graph, node, own);
    }
    this.box.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = this.box;
    const right = x + POINTER_GAP + width < window.innerWidth;
    const below = y + POINTER_GAP + height < window.innerHeight;
    this.box.style.left = `${right ? x + POINTER_GAP : Math.max(4, x - POINTER_GAP - width)}px`;
    this.box.style.top = `${below ? y + POINTER_GAP : Math.max(4, y - POINTER_GAP - height)}px`;
  }

  hide(): void {
    this.box.hidden = true;
  }
}

// A frame in words; spoken when the selection moves by keyboard.
export function describe(graph: Graph, node: number): string {
  const parts = [
    labelOf(graph.nameOf(node), graph.kindOf(node)),
    `${graph.kindOf(node)} frame`,
    `level ${graph.depth[node]}`,
    `total ${formatPercent(graph.total[node], graph.total[0])}`,
    `self ${formatPercent(graph.selfOf(node), graph.total[0])}`,
    graph.childCount[node] === 1 ? "1 callee" : `${graph.childCount[node]} callees`,
  ];
  return parts.join(", ");
}
