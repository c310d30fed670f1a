// SPDX-License-Identifier: Apache-2.0
// What can be done with one frame.

import { placeOf } from "./details";
import type { Graph } from "./graph";
import type { MenuItem } from "./menu";
import { exactly, type State } from "./state";

export interface FrameActions {
  zoom(): void;
  change(changed: Partial<State>): void;
  copy(text: string): void;
}

// Filters add up: another hidden function joins the expression of those already hidden.
function alsoMatching(before: string, name: string): string {
  return before === "" ? exactly(name) : `${before}|${exactly(name)}`;
}

export function frameMenu(
  graph: Graph,
  node: number,
  state: State,
  actions: FrameActions,
): MenuItem[] {
  const name = graph.nameOf(node);
  const items: MenuItem[] = [
    { text: "Zoom in", hint: "Enter", run: () => actions.zoom() },
    { text: "Copy name", hint: "c", run: () => actions.copy(name) },
    { text: "Copy stack", hint: "", run: () => actions.copy(graph.pathOf(node).join("\n")) },
  ];
  const place = placeOf(graph, node);
  if (place !== "") {
    items.push({ text: "Copy file:line", hint: "", run: () => actions.copy(place) });
  }
  const kind = graph.kindOf(node);
  if (node === 0 || kind === "group" || kind === "cut") {
    return items;
  }
  items.push({
    text: "Search this function",
    hint: "",
    run: () => actions.change({ search: exactly(name) }),
  });
  if (kind !== "incomplete") {
    items.push(
      {
        text: "Focus: only stacks through it",
        hint: "",
        run: () => actions.change({ focus: exactly(name), zoom: "" }),
      },
      {
        text: "Ignore: no stacks through it",
        hint: "",
        run: () => actions.change({ ignore: alsoMatching(state.ignore, name), zoom: "" }),
      },
      {
        text: "Hide: leave out its frame",
        hint: "",
        run: () => actions.change({ hide: alsoMatching(state.hide, name), zoom: "" }),
      },
    );
  }
  return items;
}
