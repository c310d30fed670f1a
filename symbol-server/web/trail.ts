// SPDX-License-Identifier: Apache-2.0
// Where we are: the way from the root to the zoomed frame, and the filters that are in force. Both
// are undone by a click.

import { byId, el } from "./dom";
import type { Graph } from "./graph";
import type { State } from "./state";

const HEAD = 2; // frames of a long way shown at its beginning
const TAIL = 3; // and at its end

const FILTER_WORDS = {
  focus: "only stacks through",
  ignore: "without stacks through",
  hide: "without frames",
} as const;

export function showTrail(graph: Graph, zoom: number, go: (node: number) => void): void {
  const way = graph.ancestorsOf(zoom);
  const box = byId("trail");
  box.replaceChildren();
  way.forEach((node, i) => {
    if (way.length > HEAD + TAIL + 1 && i >= HEAD && i < way.length - TAIL) {
      if (i === HEAD) {
        box.append(el("span", { class: "quiet" }, `› ${way.length - HEAD - TAIL} frames `));
      }
      return;
    }
    if (i > 0) {
      box.append(el("span", { class: "quiet", "aria-hidden": "true" }, "›"));
    }
    const name = graph.nameOf(node);
    if (node === zoom) {
      box.append(el("span", { class: "here", "aria-current": "location", title: name }, name));
      return;
    }
    const button = el("button", { type: "button", class: "link", title: name }, name);
    button.addEventListener("click", () => go(node));
    box.append(button);
  });
}

export function showFilters(state: State, change: (changed: Partial<State>) => void): void {
  const chips: Node[] = [];
  for (const key of ["focus", "ignore", "hide"] as const) {
    if (state[key] === "") {
      continue;
    }
    const text = `${FILTER_WORDS[key]} ${state[key]}`;
    const button = el(
      "button",
      { type: "button", class: "filter", title: "Remove this filter" },
      text,
      el("span", { "aria-hidden": "true" }, " ×"),
    );
    button.addEventListener("click", () => change({ [key]: "" }));
    chips.push(button);
  }
  byId("filters").replaceChildren(...chips);
}
