// SPDX-License-Identifier: Apache-2.0
// The canvas for whoever does not see it: a tree with the way to the selected frame, its neighbours'
// place and its callees, kept as the selection is. Keys are the graph's own; the element that has the
// focus points at the selected item.

import { el } from "../../widgets/dom";
import { formatPercent, formatValue } from "../../text/format";
import type { Graph } from "../../graph/graph";
import { labelOf } from "../../graph/palette";

const CALLEES = 40; // of the selected frame, the heaviest; how many there are is said
const NAME_READ = 400; // characters

export interface TreeItem {
  node: number;
  level: number;
  position: number; // among its caller's callees, from 1, in the order of the graph
  siblings: number;
  expanded: boolean | null; // null: calls nothing
  text: string;
}

// What is said of a frame; its share of all by default.
export type Words = (graph: Graph, node: number) => [term: string, text: string][];

function textOf(graph: Graph, node: number, words: Words | null): string {
  const name = labelOf(graph.nameOf(node).slice(0, NAME_READ), graph.kindOf(node));
  if (words !== null) {
    return [name, ...words(graph, node).map(([term, text]) => `${term} ${text}`)].join(", ");
  }
  const total = `${formatPercent(graph.total[node], graph.total[0])} total, ${formatValue(graph.total[node], graph.answer.unit)}`;
  return `${name}, ${total}, ${formatPercent(graph.selfOf(node), graph.total[0])} self`;
}

function itemOf(graph: Graph, node: number, isOpen: boolean, words: Words | null): TreeItem {
  const parent = graph.parent[node];
  return {
    node,
    level: graph.depth[node] + 1,
    position: parent < 0 ? 1 : node - graph.firstChild[parent] + 1,
    siblings: parent < 0 ? 1 : graph.childCount[parent],
    expanded: graph.childCount[node] === 0 ? null : isOpen,
    text: textOf(graph, node, words),
  };
}

// From the root to the frame, then what it calls, the heaviest first.
export function treeItems(graph: Graph, node: number, words: Words | null = null): TreeItem[] {
  const way = graph.ancestorsOf(Math.max(0, node));
  const at = way[way.length - 1];
  const first = graph.firstChild[at];
  const callees = Array.from({ length: graph.childCount[at] }, (_, i) => first + i);
  const heaviest = callees.sort((a, b) => graph.total[b] - graph.total[a]).slice(0, CALLEES);
  return [...way.map((one) => itemOf(graph, one, true, words)), ...heaviest.map((one) => itemOf(graph, one, false, words))];
}

export class FrameTree {
  private readonly list = el("div", { class: "hidden-for-eyes" });

  // element: has the focus and the keys.
  constructor(
    private readonly element: HTMLElement,
    label: string,
    private readonly prefix: string,
    private readonly words: Words | null = null,
  ) {
    element.setAttribute("role", "tree");
    element.setAttribute("aria-label", label);
    element.append(this.list);
    this.show(null, -1);
  }

  show(graph: Graph | null, node: number): void {
    if (graph === null) {
      this.list.replaceChildren(el("div", { role: "treeitem", "aria-level": "1" }, "nothing"));
      this.element.removeAttribute("aria-activedescendant");
      return;
    }
    const active = `${this.prefix}-item-${Math.max(0, node)}`;
    this.list.replaceChildren(...treeItems(graph, node, this.words).map((item) => this.made(item, item.node === Math.max(0, node))));
    this.element.setAttribute("aria-activedescendant", active);
  }

  private made(item: TreeItem, isSelected: boolean): HTMLElement {
    const made = el(
      "div",
      {
        role: "treeitem",
        id: `${this.prefix}-item-${item.node}`,
        "aria-level": String(item.level),
        "aria-posinset": String(item.position),
        "aria-setsize": String(item.siblings),
        "aria-selected": String(isSelected),
      },
      item.text,
    );
    if (item.expanded !== null) {
      made.setAttribute("aria-expanded", String(item.expanded));
    }
    return made;
  }
}
