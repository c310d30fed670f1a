// SPDX-License-Identifier: Apache-2.0
// Joins two answers: the whole picture's way down to one frame, and that frame's finer subtree from
// a second question (root=). Pure.

import type { FlameAnswer, FlameNodes } from "../server/api";
import { Graph, KINDS } from "./graph";

function subtreeRoot(detail: Graph, path: readonly string[]): number {
  const whole = detail.find(path);
  if (whole >= 0) {
    return whole;
  }
  const name = path[path.length - 1];
  const first = detail.nameIndex(0);
  return detail.answer.names[first] === name || detail.answer.signatures?.[first] === name ? 0 : detail.find([name]);
}

// The answer to draw, in which the path from the root is base's and all below node is detail's;
// null when detail has no such frame (names changed between the two answers). put: told of each of its rows
// which frame of which graph it is.
export function graft(base: Graph, node: number, answer: FlameAnswer, put?: (from: Graph, node: number) => void): FlameAnswer | null {
  const detail = new Graph(answer);
  const root = subtreeRoot(detail, base.pathOf(node));
  if (root < 0) {
    return null;
  }
  const chain = base.ancestorsOf(node).slice(0, -1);
  const { nodes, names, signatures, languages, files, modules } = copyChain(base, chain, answer);
  chain.forEach((one) => put?.(base, one));
  const number = new Int32Array(detail.count).fill(-1);
  for (let i = root; i < detail.count; i++) {
    const parent = i === root ? chain.length - 1 : number[detail.parent[i]];
    if (i !== root && (i === 0 || parent < 0)) {
      continue;
    }
    put?.(detail, i);
    number[i] = nodes.name.length;
    nodes.name.push(detail.nameIndex(i));
    nodes.file.push(detail.fileIndex(i));
    nodes.line.push(detail.lineOf(i));
    nodes.module.push(detail.moduleIndex(i));
    nodes.parent.push(parent);
    nodes.self.push(detail.selfOf(i));
    nodes.total.push(detail.total[i]);
    nodes.kind.push(detail.kindIndex(i));
    pushErrors(nodes, detail, i);
  }
  return { ...base.answer, names, signatures, languages, files, modules, kinds: [...KINDS], nodes };
}

function pushErrors(to: FlameNodes<number[]>, from: Graph, node: number): void {
  to.self_error?.push(from.selfErrorOf(node) ?? 0);
  to.total_error?.push(from.totalErrorOf(node) ?? 0);
}

// The chain as columns, each frame below the one before; its names follow the detail's own.
function copyChain(base: Graph, chain: number[], answer: FlameAnswer) {
  const names = answer.names.slice();
  const signatures = { ...answer.signatures };
  const languages = { ...answer.languages };
  const files = answer.files.slice();
  const modules = answer.modules.slice();
  const nodes: FlameNodes<number[]> = {
    name: [],
    file: [],
    line: [],
    module: [],
    parent: [],
    self: [],
    total: [],
    kind: [],
    ...(base.totalErrorOf(0) === undefined || answer.nodes.total_error === undefined ? {} : { self_error: [], total_error: [] }),
  };
  for (const [i, node] of chain.entries()) {
    const module = base.moduleOf(node);
    const signature = base.signatureOf(node);
    const language = base.languageOf(node);
    if (signature !== undefined) {
      signatures[names.length] = signature;
    }
    if (language !== undefined) {
      languages[names.length] = language;
    }
    nodes.name.push(names.push(base.nameOf(node)) - 1);
    nodes.file.push(files.push(base.fileOf(node)) - 1);
    nodes.line.push(base.lineOf(node));
    nodes.module.push(module === null ? -1 : modules.push(module) - 1);
    nodes.parent.push(i - 1);
    nodes.self.push(base.selfOf(node));
    nodes.total.push(base.total[node]);
    nodes.kind.push(base.kindIndex(node));
    pushErrors(nodes, base, node);
  }
  return { nodes, names, signatures, languages, files, modules };
}
