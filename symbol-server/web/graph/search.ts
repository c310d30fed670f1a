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
    return { expression: literal(), error: "It might take very long: looked for letter by letter." };
  }
  try {
    return { expression: new RegExp(given, flags), error: "" };
  } catch (failure) {
    return { expression: literal(), error: `No expression (${reasonOf(failure)}): looked for letter by letter.` };
  }
}

// What browsers say after "Invalid regular expression: /…/i: ".
function reasonOf(failure: unknown): string {
  const text = failure instanceof Error ? failure.message : "";
  return (text.split(": ").at(-1) ?? "").toLowerCase() || "it cannot be read";
}

export interface Found {
  readonly count: number; // matching frames
  // Of the zoomed frame, covered by them; each part once, also where a match calls a match.
  readonly value: number;
  readonly error?: number; // ± of it; absent: not known
  nodes(): Uint32Array; // in reading order; made when first asked for
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
  const isMatch = graph.marks(names);
  if (graph.kindOf(0) === "root") {
    isMatch[0] = 0; // which is no frame
  }
  for (let node = 1; graph.holdsCut(0) && node < isMatch.length; node++) {
    isMatch[node] &= Number(graph.kindOf(node) !== "cut");
  }
  let count = 0;
  for (let node = 0; node < isMatch.length; node++) {
    count += isMatch[node];
  }
  const { value, error }: ReturnType<typeof coveredIn> = count === 0 ? { value: 0 } : coveredIn(graph, isMatch, zoom);
  let nodes: Uint32Array | null = null;
  return { count, value, ...(error !== undefined && { error }), nodes: () => (nodes ??= inReadingOrder(graph, isMatch, count)) };
}

// Level by level, as the nodes lie in memory: a match below a match adds nothing.
function coveredIn(graph: Graph, isMatch: Uint8Array, zoom: number): { value: number; error?: number } {
  const { x, total, parent } = graph;
  const left = x[zoom];
  const right = left + total[zoom];
  const isCovered = new Uint8Array(isMatch.length); // by itself or a caller
  let value = 0;
  let squares = 0;
  for (let node = 0; node < isMatch.length; node++) {
    if (node > 0 && isCovered[parent[node]] === 1) {
      isCovered[node] = 1;
    } else if (isMatch[node] === 1) {
      isCovered[node] = 1;
      const inside = Math.max(0, Math.min(x[node] + total[node], right) - Math.max(x[node], left));
      value += inside;
      squares += inside > 0 ? (graph.totalErrorOf(node) ?? NaN) ** 2 : 0;
    }
  }
  return { value, ...(squares > 0 && { error: Math.sqrt(squares) }) };
}

function inReadingOrder(graph: Graph, isMatch: Uint8Array, count: number): Uint32Array {
  const order = graph.preorder();
  const nodes = new Uint32Array(count);
  let at = 0;
  for (let i = 0; i < order.length; i++) {
    if (isMatch[order[i]] === 1) {
      nodes[at++] = order[i];
    }
  }
  return nodes;
}
