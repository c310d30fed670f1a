// SPDX-License-Identifier: Apache-2.0
// An answer of /api/v1/flamegraph laid out for drawing. Pure.
//
// Nodes are renumbered breadth first: a level is a run of numbers, in it x only grows, and the
// children of a node are neighbours. So drawing, hit tests and walks are binary searches in typed
// arrays, and a million nodes need no object each.

import type { FlameAnswer } from "../server/api";

export class Graph {
  rootName = "all";
  readonly count: number;
  readonly levels: number;
  readonly levelStart: Uint32Array; // levels + 1 entries
  readonly x: Float64Array; // left edge, in the unit of total
  readonly total: Float64Array;
  readonly parent: Int32Array; // −1 for the root
  readonly depth: Uint16Array;
  readonly firstChild: Uint32Array;
  readonly childCount: Uint32Array;
  // A node's number in the answer, null: the same. What only a few nodes at a time are asked for
  // stays there.
  private readonly row: Uint32Array | null;
  private readonly kinds: Uint8Array; // the answer's kinds as indices into KINDS
  private readonly cutBelow: Uint8Array; // by number in the answer
  private order: Uint32Array | null = null;

  // Throws a sentence when the columns contradict each other.
  constructor(readonly answer: FlameAnswer) {
    const count = checked(answer);
    this.count = count;
    const isInOrder = isBreadthFirst(answer.nodes.parent);
    this.x = new Float64Array(count);
    this.depth = new Uint16Array(count);
    this.firstChild = new Uint32Array(count);
    this.childCount = new Uint32Array(count);
    this.kinds = Uint8Array.from(answer.kinds, kindNumber);
    this.cutBelow = cutBelow(answer, this.kinds);
    if (isInOrder) {
      const { parent, total } = answer.nodes;
      this.row = null;
      this.total = total instanceof Float64Array ? total : Float64Array.from(total);
      this.parent = parent instanceof Int32Array ? parent : Int32Array.from(parent);
      this.parent[0] = -1;
      this.placeLevels();
    } else {
      this.row = new Uint32Array(count);
      this.total = new Float64Array(count);
      this.parent = new Int32Array(count);
      this.walkLevels(this.row);
    }
    this.levels = this.depth[count - 1] + 1;
    this.levelStart = new Uint32Array(this.levels + 1);
    for (let i = 0; i < count; i++) {
      this.levelStart[this.depth[i] + 1] = i + 1;
    }
  }

  // The nodes as they are: one pass over columns that lie in the order of the walk.
  private placeLevels(): void {
    const { x, total, parent, depth, firstChild, childCount } = this;
    let above = -1;
    let right = 0; // where the next child of that parent begins
    for (let i = 1; i < this.count; i++) {
      if (parent[i] !== above) {
        above = parent[i];
        firstChild[above] = i;
        right = x[above];
        if (depth[above] >= DEEPEST) {
          throw new Error(`The server's flame graph is deeper than ${DEEPEST} frames.`);
        }
      }
      childCount[above]++;
      depth[i] = depth[above] + 1;
      x[i] = right;
      right += total[i];
    }
  }

  // Numbers the nodes breadth first, children in the answer's order, and places them.
  private walkLevels(rows: Uint32Array): void {
    const { parent: parentRow, total } = this.answer.nodes;
    const first = new Uint32Array(this.count); // rows; 0 is none: the root is nobody's child
    const next = new Uint32Array(this.count);
    for (let row = this.count - 1; row > 0; row--) {
      next[row] = first[parentRow[row]];
      first[parentRow[row]] = row;
    }
    this.parent[0] = -1;
    this.total[0] = total[0];
    let end = 1;
    for (let i = 0; i < end; i++) {
      const depth = this.depth[i] + 1;
      let x = this.x[i];
      this.firstChild[i] = end;
      for (let row = first[rows[i]]; row !== 0; row = next[row]) {
        if (depth > DEEPEST) {
          throw new Error(`The server's flame graph is deeper than ${DEEPEST} frames.`);
        }
        rows[end] = row;
        this.parent[end] = i;
        this.depth[end] = depth;
        this.x[end] = x;
        this.total[end] = total[row];
        x += total[row];
        end++;
      }
      this.childCount[i] = end - this.firstChild[i];
    }
  }

  // The node's number in the answer's columns.
  rowOf(node: number): number {
    return this.row === null ? node : this.row[node];
  }

  selfOf(node: number): number {
    return this.answer.nodes.self[this.rowOf(node)];
  }

  // ± of what the node has itself and with its callees, 95 %; undefined: not known.
  selfErrorOf(node: number): number | undefined {
    return this.answer.nodes.self_error?.[this.rowOf(node)];
  }

  totalErrorOf(node: number): number | undefined {
    return this.answer.nodes.total_error?.[this.rowOf(node)];
  }

  // Index into the answer's names.
  nameIndex(node: number): number {
    return this.answer.nodes.name[this.rowOf(node)];
  }

  nameOf(node: number): string {
    return node === 0 ? this.rootName : this.answer.names[this.nameIndex(node)];
  }

  // As the sender told it; undefined: it did not.
  languageOf(node: number): string | undefined {
    return node === 0 ? undefined : this.answer.languages?.[this.nameIndex(node)];
  }

  signatureOf(node: number): string | undefined {
    return node === 0 ? undefined : this.answer.signatures?.[this.nameIndex(node)];
  }

  // What tells it from every other function of its module.
  wholeNameOf(node: number): string {
    return this.signatureOf(node) ?? this.nameOf(node);
  }

  // Index into KINDS.
  kindIndex(node: number): number {
    return this.kinds[this.answer.nodes.kind[this.rowOf(node)]] ?? NATIVE;
  }

  kindOf(node: number): string {
    return KINDS[this.kindIndex(node)];
  }

  // Index into the answer's files; −1 none.
  fileIndex(node: number): number {
    return this.answer.nodes.file[this.rowOf(node)];
  }

  fileOf(node: number): string {
    const file = this.fileIndex(node);
    return file < 0 ? "" : this.answer.files[file];
  }

  lineOf(node: number): number {
    return this.answer.nodes.line[this.rowOf(node)];
  }

  // Index into the answer's modules; −1 none.
  moduleIndex(node: number): number {
    return this.answer.nodes.module[this.rowOf(node)];
  }

  moduleOf(node: number): { name: string; build_id: string } | null {
    const module = this.moduleIndex(node);
    return module < 0 ? null : this.answer.modules[module];
  }

  // Whether something below was folded away by max_nodes or min_share.
  holdsCut(node: number): boolean {
    return this.cutBelow[this.rowOf(node)] === 1;
  }

  // Whether only the way to a finer subtree is below it, of all that it calls.
  lacksCallees(node: number): boolean {
    const first = this.firstChild[node];
    let known = this.selfOf(node);
    for (let child = first; child < first + this.childCount[node]; child++) {
      known += this.total[child];
    }
    return known < this.total[node];
  }

  // Per node what its name has in a table of the answer's names.
  marks(ofNames: Uint8Array): Uint8Array {
    const { name } = this.answer.nodes;
    const out = new Uint8Array(this.count);
    if (this.row === null) {
      for (let node = 0; node < out.length; node++) {
        out[node] = ofNames[name[node]];
      }
    } else {
      for (let node = 0; node < out.length; node++) {
        out[node] = ofNames[name[this.row[node]]];
      }
    }
    return out;
  }

  // Whole names from below the root to the node.
  pathOf(node: number): string[] {
    const names: string[] = [];
    for (let i = node; i > 0; i = this.parent[i]) {
      names.push(this.wholeNameOf(i));
    }
    return names.reverse();
  }

  // Nodes from the root to the node, both included.
  ancestorsOf(node: number): number[] {
    const out: number[] = [];
    for (let i = node; i >= 0; i = this.parent[i]) {
      out.push(i);
    }
    return out.reverse();
  }

  // The node at this path, or −1. A name without its signature is the widest function's of that name.
  find(path: readonly string[]): number {
    let node = 0;
    for (const name of path) {
      const first = this.firstChild[node];
      const end = first + this.childCount[node];
      let child = first;
      while (child < end && this.nameOf(child) !== name && this.signatureOf(child) !== name) {
        child++;
      }
      if (child >= end) {
        return -1;
      }
      node = child;
    }
    return node;
  }

  // The last node of a level whose left edge is not right of x; the level's first if there is none.
  at(level: number, x: number): number {
    let low = this.levelStart[level];
    let high = this.levelStart[level + 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.x[middle] <= x) {
        low = middle;
      } else {
        high = middle;
      }
    }
    return low;
  }

  isInside(node: number, ancestor: number): boolean {
    const depth = this.depth[ancestor];
    while (node >= 0 && this.depth[node] > depth) {
      node = this.parent[node];
    }
    return node === ancestor;
  }

  // All nodes from left to right as a reader's eye follows one stack down, then the next.
  preorder(): Uint32Array {
    if (this.order !== null) {
      return this.order;
    }
    const size = new Uint32Array(this.count).fill(1);
    for (let i = this.count - 1; i > 0; i--) {
      size[this.parent[i]] += size[i];
    }
    const position = new Uint32Array(this.count);
    const next = new Uint32Array(this.count);
    next[0] = 1;
    const order = new Uint32Array(this.count);
    for (let i = 1; i < this.count; i++) {
      const parent = this.parent[i];
      position[i] = next[parent];
      next[parent] += size[i];
      next[i] = position[i] + 1;
      order[position[i]] = i;
    }
    this.order = order;
    return order;
  }
}

// The kinds the page tells apart; the API's table may be ordered otherwise.
export const KINDS = [
  "root",
  "group",
  "native",
  "inline",
  "kernel",
  "interpreter",
  "jit",
  "gpu",
  "unresolved",
  "incomplete",
  "cut",
  "idle",
  "runtime",
] as const;
export const NATIVE = KINDS.indexOf("native");
const DEEPEST = 65535; // what a depth can hold
const CUT = KINDS.indexOf("cut");

function kindNumber(name: string): number {
  const i = (KINDS as readonly string[]).indexOf(name);
  return i < 0 ? NATIVE : i;
}

function damaged(column: string, row: number): Error {
  return new Error(`The server's flame graph is damaged: column ${column}, node ${row}.`);
}

// Parents in rising order: then a level is a run of numbers and children are neighbours. The server
// numbers so; answers joined here are in another order.
function isBreadthFirst(parent: ArrayLike<number>): boolean {
  for (let i = 2; i < parent.length; i++) {
    if (parent[i] < parent[i - 1]) {
      return false;
    }
  }
  return true;
}

function inRange(column: ArrayLike<number>, least: number, end: number, name: string): void {
  for (let i = 0; i < column.length; i++) {
    if (!(column[i] >= least && column[i] < end)) {
      throw damaged(name, i);
    }
  }
}

function checked(answer: FlameAnswer): number {
  const nodes = answer.nodes;
  const count = nodes?.name?.length ?? 0;
  if (count === 0) {
    throw new Error("The server's answer holds no flame graph.");
  }
  for (const key of ["file", "line", "module", "parent", "self", "total", "kind"] as const) {
    if (nodes[key]?.length !== count) {
      throw new Error(`The server's flame graph is damaged: column ${key} has another length.`);
    }
  }
  // Column by column: a million rows are read in the order in which they lie in memory.
  inRange(nodes.name, 0, answer.names.length, "name");
  inRange(nodes.file, -1, answer.files.length, "file");
  inRange(nodes.module, -1, answer.modules.length, "module");
  inRange(nodes.self, 0, Infinity, "self");
  inRange(nodes.total, 0, Infinity, "total");
  for (let i = 1; i < count; i++) {
    if (!(nodes.parent[i] >= 0 && nodes.parent[i] < i)) {
      throw damaged("parent", i);
    }
  }
  return count;
}

// By number in the answer, 1: below this node is one of kind cut.
function cutBelow(answer: FlameAnswer, kinds: Uint8Array): Uint8Array {
  const { kind, parent } = answer.nodes;
  const out = new Uint8Array(kind.length);
  for (let i = kind.length - 1; i > 0; i--) {
    if (out[i] === 1 || kinds[kind[i]] === CUT) {
      out[parent[i]] = 1;
    }
  }
  return out;
}
