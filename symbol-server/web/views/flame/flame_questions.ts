// SPDX-License-Identifier: Apache-2.0
// What the flame graph's view asks the server: frames that the screen can show, sums of everything.

import { ask, type FlameAnswer, type Parameters, type TopAnswer } from "../../server/api";
import { graft } from "../../graph/graft";
import { Graph } from "../../graph/graph";
import { joinPath, splitPath } from "../../graph/path";
import { frameParameters, recursionParameter, treeParameters, zoomParameters, type State } from "../../shell/state";
import type { SandwichScope } from "./sandwich_panel";
import type { Counting } from "./search_box";

const LEAST_WIDTH = 0.5; // pixels: frames that are narrower come when one zooms
const WIDTH_STEP = 256; // a window that grows a little needs no other answer
const WIDTH_ELSE = 1280; // where no graph is shown
const RESIZED_MS = 300;

// The width that an answer is asked for, and another question where the window has become wider.
export class Screen {
  width = WIDTH_ELSE;
  private timer = 0;

  constructor(private readonly again: () => void) {}

  ask(pixels: number): void {
    clearTimeout(this.timer);
    this.width = Math.ceil((pixels || WIDTH_ELSE) / WIDTH_STEP) * WIDTH_STEP;
  }

  // state: of the picture that is there; null: none.
  grew(pixels: number, state: Pick<State, "max_nodes"> | null): void {
    clearTimeout(this.timer);
    if (state !== null && pixels > this.width && state.max_nodes === "") {
      this.timer = window.setTimeout(this.again, RESIZED_MS);
    }
  }
}

// As many frames as the screen shows, unless a number is asked for.
export function nodeParameters(state: State, width: number): Parameters {
  return state.max_nodes === "" ? { min_share: (LEAST_WIDTH / width).toFixed(6) } : { max_nodes: state.max_nodes };
}

// Whether the sandwich is one of the zoomed frame: leaves first, and of what is collapsed, there is no such.
function isOfZoom(state: State): boolean {
  return "root" in zoomParameters(state) && state.invert !== "1" && state.recursion === "";
}

export function sandwichScope(state: State): SandwichScope {
  const within = isOfZoom(state) ? (splitPath(state.zoom).at(-1) ?? "") : "";
  return { within, isZoomed: state.zoom !== "", saysCut: state.max_nodes !== "" };
}

export function sandwichParameters(state: State, width: number): Parameters {
  return { ...frameParameters(state), ...(isOfZoom(state) ? zoomParameters(state) : {}), ...nodeParameters(state, width), function: state.sandwich, errors: "1" };
}

export function graphParameters(state: State, width: number): Parameters {
  return { ...treeParameters(state), ...nodeParameters(state, width), format: "columns", errors: "1" };
}

// The graph with what the screen can show below one of its frames; null: the server knows no such frame any more.
export async function finerGraph(graph: Graph, path: string[], state: State, width: number, signal: AbortSignal): Promise<Graph | null> {
  const range = { from: String(graph.answer.from), until: String(graph.answer.until) };
  const asked = { ...graphParameters({ ...state, ...range }, width), root: joinPath(path) };
  const joined = graft(graph, graph.find(path), await ask<FlameAnswer>("flamegraph", asked, signal));
  return joined === null ? null : new Graph(joined);
}

// What a search finds in all stacks, or in those of the zoomed frame; null: the server knows no such frame.
export async function countFound(state: State, expression: string, inZoom: boolean, signal: AbortSignal): ReturnType<Counting> {
  const zoom = inZoom ? zoomParameters(state) : { group_by: state.group_by, ...recursionParameter(state) };
  if (inZoom && !("root" in zoom)) {
    return null;
  }
  const asked = { ...frameParameters(state), ...zoom, limit: "1", search: expression };
  const { found, accounting } = await ask<TopAnswer>("top", asked, signal);
  return found === undefined ? null : { ...found, whole: accounting.value, wholeError: accounting.error };
}
