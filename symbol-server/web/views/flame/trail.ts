// SPDX-License-Identifier: Apache-2.0
// Where we are: the way from the root to the zoomed frame, and the filters that are in force. Both
// are undone by a click.

import { byId, el } from "../../widgets/dom";
import type { Graph } from "../../graph/graph";
import { plain, type State } from "../../shell/state";
import { presetNames } from "./frame_presets";

const HEAD = 2; // frames of a long way shown at its beginning
const TAIL = 3; // and at its end

const FILTER_WORDS = {
  focus: "only stacks through",
  ignore: "without stacks through",
  hide: "without frames",
  hide_kind: "without frames of kind",
  hide_runtime: "with interpreters’ own frames",
  hide_module: "without frames of",
  only_module: "only frames of",
  build_id: "only stacks with the build",
  trace_id: "of the trace",
  exact: "with times of their own",
  collapse: "overloads joined",
} as const;
type Shown = keyof typeof FILTER_WORDS;

// As people read it: presets by their names, an expression for exactly one text as that text.
function wordsOf(key: Shown, text: string): string {
  if (key === "hide" || key === "hide_kind" || key === "hide_module") {
    const { names, rest } = presetNames(key, text);
    const parts = [...names, ...rest.map(plain)].join(", ");
    return rest.length === 0 ? `without ${parts}` : `${FILTER_WORDS[key]} ${parts}`;
  }
  return key === "exact" || key === "collapse" || key === "hide_runtime" ? FILTER_WORDS[key] : `${FILTER_WORDS[key]} ${plain(text)}`;
}

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

export function showFilters(
  state: State,
  change: (changed: Partial<State>) => void,
  box: HTMLElement = byId("filters"),
  keys: readonly Shown[] = Object.keys(FILTER_WORDS) as Shown[], // those that act here
): void {
  const chips: Node[] = [];
  for (const key of keys) {
    if (state[key] === "") {
      continue;
    }
    const button = el(
      "button",
      { type: "button", class: "filter", title: `Remove this filter: ${key}=${state[key]}` },
      wordsOf(key, state[key]),
      el("span", { "aria-hidden": "true" }, " ×"),
    );
    button.addEventListener("click", () => change({ [key]: "" }));
    chips.push(button);
  }
  box.replaceChildren(...chips);
}
