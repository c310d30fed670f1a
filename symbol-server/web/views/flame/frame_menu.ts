// SPDX-License-Identifier: Apache-2.0
// What can be done with one frame.

import { placeOf } from "../../graph/details";
import type { Graph } from "../../graph/graph";
import type { MenuItem } from "../../widgets/menu";
import { exactly, type State } from "../../shell/state";

export interface FrameActions {
  zoom: () => void;
  change: (changed: Partial<State>) => void;
  copy: (text: string) => void;
}

// Filters add up: another hidden function joins the expression of those already hidden.
export function alsoMatching(before: string, name: string): string {
  return before === "" ? exactly(name) : `${before}|${exactly(name)}`;
}

// One frame a line, the innermost last.
export function stackText(graph: Graph, node: number): string {
  return graph.pathOf(node).join("\n");
}

// What menus need to know of a function; stack: "" in a table, where it has many.
export interface MenuFunction {
  name: string;
  signature?: string;
  module: string;
  build_id: string;
  place: string; // file:line
  stack: string;
  recurs: boolean;
}

function functionOf(graph: Graph, node: number): MenuFunction {
  const { name: module, build_id } = graph.moduleOf(node) ?? { name: "", build_id: "" };
  return { name: graph.nameOf(node), signature: graph.signatureOf(node), module, build_id, place: placeOf(graph, node), stack: stackText(graph, node), recurs: isRecursive(graph, node) };
}

function copying({ name, signature, stack, place }: MenuFunction, copy: FrameActions["copy"]): MenuItem[] {
  const item = (text: string, hint: string, what: string): MenuItem => ({ text, hint, run: () => copy(what) });
  return [
    item("Copy name", "c", name),
    ...(signature === undefined ? [] : [item("Copy signature", "", signature)]),
    ...(stack === "" ? [] : [item("Copy stack", "C", stack)]),
    ...(place === "" ? [] : [item("Copy file:line", "", place)]),
  ];
}

function isRecursive(graph: Graph, node: number): boolean {
  const name = graph.nameIndex(node);
  const above = graph.ancestorsOf(node).slice(1, -1);
  return above.some((caller) => graph.nameIndex(caller) === name);
}

function filtering({ name, module, build_id, recurs }: MenuFunction, state: State, change: FrameActions["change"]): MenuItem[] {
  const item = (text: string, changed: Partial<State>): MenuItem => ({
    text,
    hint: "",
    run: () => change({ ...changed, zoom: "" }),
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
  if (state.recursion === "" && recurs) {
    items.push(item("Collapse recursion", { recursion: "all" }));
  }
  return items;
}

export function isFunction(kind: string): boolean {
  return !["root", "group", "cut", "incomplete", "idle"].includes(kind);
}

function searching(name: string, change: FrameActions["change"]): MenuItem {
  return { text: "Search this function", hint: "", run: () => change({ search: exactly(name), sandwich: "" }) };
}

// The same for a function wherever it is named: in a row, by a bar.
export function functionMenu(f: MenuFunction, state: State, { change, copy }: Omit<FrameActions, "zoom">): MenuItem[] {
  return [
    { text: "Sandwich: callers and callees", hint: "s", run: () => change({ page: "graph", sandwich: f.signature ?? f.name }) },
    ...copying(f, copy),
    searching(f.name, change),
    {
      text: "When it runs: time line of stacks through it",
      hint: "",
      run: () => change({ page: "time", focus: exactly(f.name), zoom: "", sandwich: "" }),
    },
    ...filtering(f, state, change),
    {
      text: "Compare with the time before",
      hint: "",
      run: () => change({ page: "diff", base: "before", search: exactly(f.name), zoom: "", sandwich: "" }),
    },
  ];
}

export function frameMenu(graph: Graph, node: number, state: State, actions: FrameActions): MenuItem[] {
  const f = functionOf(graph, node);
  const kind = graph.kindOf(node);
  const zoom: MenuItem = { text: "Zoom in", hint: "Enter", run: () => actions.zoom() };
  if ((node === 0 && kind === "root") || kind === "group" || kind === "cut" || kind === "idle") {
    return [zoom, ...copying(f, actions.copy)];
  }
  return kind === "incomplete"
    ? [zoom, ...copying(f, actions.copy), searching(f.name, actions.change)]
    : [zoom, ...functionMenu(f, state, actions)];
}
