// SPDX-License-Identifier: Apache-2.0
// What can be done with one frame.

import { placeOf } from "../../graph/details";
import type { Graph } from "../../graph/graph";
import type { MenuItem } from "../../widgets/menu";
import { exactly, type State } from "../../shell/state";

export interface FrameActions {
  zoom(): void;
  change(changed: Partial<State>): void;
  copy(text: string): void;
}

// Filters add up: another hidden function joins the expression of those already hidden.
export function alsoMatching(before: string, name: string): string {
  return before === "" ? exactly(name) : `${before}|${exactly(name)}`;
}

// One frame a line, the innermost last.
export function stackText(graph: Graph, node: number): string {
  return graph.pathOf(node).join("\n");
}

function copying(graph: Graph, node: number, actions: FrameActions): MenuItem[] {
  const items: MenuItem[] = [
    { text: "Copy name", hint: "c", run: () => actions.copy(graph.nameOf(node)) },
    { text: "Copy stack", hint: "C", run: () => actions.copy(stackText(graph, node)) },
  ];
  const place = placeOf(graph, node);
  if (place !== "") {
    items.push({ text: "Copy file:line", hint: "", run: () => actions.copy(place) });
  }
  return items;
}

function isRecursive(graph: Graph, node: number): boolean {
  const name = graph.nameIndex(node);
  const above = graph.ancestorsOf(node).slice(1, -1);
  return above.some((caller) => graph.nameIndex(caller) === name);
}

function filtering(graph: Graph, node: number, state: State, actions: FrameActions): MenuItem[] {
  const name = graph.nameOf(node);
  const { name: module, build_id } = graph.moduleOf(node) ?? { name: "", build_id: "" };
  const item = (text: string, changed: Partial<State>): MenuItem => ({
    text,
    hint: "",
    run: () => actions.change({ ...changed, zoom: "" }),
  });
  const items = [
    item("Focus: only stacks through it", { focus: exactly(name) }),
    item("Ignore: no stacks through it", { ignore: alsoMatching(state.ignore, name) }),
    item("Hide: leave out its frame", { hide: alsoMatching(state.hide, name) }),
  ];
  if (module !== "") {
    items.push(
      item(`Hide all frames of ${module}`, { hide_module: alsoMatching(state.hide_module, module) }),
      item(`Only frames of ${module}`, { only_module: exactly(module) }),
    );
  }
  if (build_id !== "" && state.build_id !== build_id) {
    items.push(item(`Only stacks with this build of ${module}`, { build_id }));
  }
  if (state.recursion === "" && isRecursive(graph, node)) {
    items.push(item("Collapse recursion", { recursion: "all" }));
  }
  return items;
}

export function isFunction(kind: string): boolean {
  return !["root", "group", "cut", "incomplete"].includes(kind);
}

export function frameMenu(graph: Graph, node: number, state: State, actions: FrameActions): MenuItem[] {
  const name = graph.nameOf(node);
  const kind = graph.kindOf(node);
  const zoom: MenuItem = { text: "Zoom in", hint: "Enter", run: () => actions.zoom() };
  if ((node === 0 && kind === "root") || kind === "group" || kind === "cut") {
    return [zoom, ...copying(graph, node, actions)];
  }
  const search: MenuItem = {
    text: "Search this function",
    hint: "",
    run: () => actions.change({ search: exactly(name), sandwich: "" }),
  };
  if (kind === "incomplete") {
    return [zoom, ...copying(graph, node, actions), search];
  }
  return [
    zoom,
    { text: "Sandwich: callers and callees", hint: "s", run: () => actions.change({ page: "graph", sandwich: name }) },
    ...copying(graph, node, actions),
    search,
    {
      text: "When it runs: time line of stacks through it",
      hint: "",
      run: () => actions.change({ page: "time", focus: exactly(name), zoom: "", sandwich: "" }),
    },
    ...filtering(graph, node, state, actions),
    {
      text: "Compare with the time before",
      hint: "",
      run: () => actions.change({ page: "diff", base: "before", search: exactly(name), zoom: "", sandwich: "" }),
    },
  ];
}
