// SPDX-License-Identifier: Apache-2.0
// Finding frames by a regular expression over their names. Each distinct name is tried once. Pure.

import type { Graph } from "./graph";
import { mayExplode } from "./search_guard";

const PATTERN_LIMIT = 1000; // characters
const SLOW_REPETITIONS = 2; // cubic in a name's length at worst, which is short as a rule
export const NAME_LIMIT = 4096; // of a name looked at: templates can be much longer than anyone types

export interface Pattern {
  expression: RegExp;
  error: string; // "" or a sentence; then the text is looked for literally
}

// Case matters only when the text has a capital letter. guarded: who asks stops what takes too long;
// for others an expression that may is no expression.
export function compilePattern(text: string, guarded = false): Pattern | null {
  if (text === "") {
    return null;
  }
  const given = text.slice(0, PATTERN_LIMIT);
  const flags = /[A-Z]/.test(given) ? "" : "i";
  const literal = () => new RegExp(given.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"), flags);
  if (!guarded && mayExplode(given, SLOW_REPETITIONS)) {
    return { expression: literal(), error: "This expression might take very long, so it is looked for letter by letter." };
  }
  try {
    return { expression: new RegExp(given, flags), error: "" };
  } catch {
    return {
      expression: literal(),
      error: "This is not a regular expression, so it is looked for letter by letter.",
    };
  }
}

export interface Found {
  nodes: Uint32Array; // matching frames in reading order
  // Of the zoomed frame, covered by them; each part once, also where a match calls a match.
  value: number;
}

export function matchNames(graph: Graph, expression: RegExp): Uint8Array {
  const names = graph.answer.names;
  const out = new Uint8Array(names.length);
  for (let i = 0; i < names.length; i++) {
    out[i] = expression.test(names[i].slice(0, NAME_LIMIT)) ? 1 : 0;
  }
  return out;
}

export function findFrames(graph: Graph, names: Uint8Array, zoom: number): Found {
  const order = graph.preorder();
  const nodes = new Uint32Array(graph.count);
  const left = graph.x[zoom];
  const right = left + graph.total[zoom];
  let count = 0;
  let value = 0;
  let coveredUntil = left; // right edge of the outermost match so far
  for (let i = 0; i < order.length; i++) {
    const node = order[i];
    if (names[graph.nameIndex(node)] === 0) {
      continue;
    }
    nodes[count++] = node;
    const from = Math.max(graph.x[node], coveredUntil);
    const to = Math.min(graph.x[node] + graph.total[node], right);
    if (to > from) {
      value += to - from;
      coveredUntil = to;
    }
  }
  return { nodes: nodes.slice(0, count), value };
}
