// SPDX-License-Identifier: Apache-2.0
// Trees of several types made one: a frame is where its path from the root is, and has of each tree
// what that tree has there. Pure.

import type { FlameAnswer, FlameNodes } from "../../server/api";
import { graft } from "../../graph/graft";
import { Graph, KINDS } from "../../graph/graph";

export interface Part {
  total: Float64Array;
  self: Float64Array;
  total_error?: Float64Array; // ± of total, where the answer has it
}

export interface Joined {
  answer: FlameAnswer; // sums of all trees; accounting, type and range are the first one's
  parts: Part[]; // what each tree has of each row of answer
}

// What a graph is made of: it brings its parts along.
interface PartedAnswer extends FlameAnswer {
  parts: Part[];
}

// The same frames, as wide as one part has them; −1: as all have them.
export function widthsOf({ answer, parts }: Joined, part: number): PartedAnswer {
  return { ...answer, parts, nodes: part < 0 ? answer.nodes : { ...answer.nodes, ...parts[part] } };
}

// What each tree has of a frame. Of one that it has not, it may have cut something: at most so much.
export function partsOf(graph: Graph, node: number): { total: number; most: number; error?: number }[] {
  const { parts } = graph.answer as PartedAnswer;
  return parts.map(({ total, total_error }) => {
    const own = total[graph.rowOf(node)];
    return { total: own, ...(total_error && { error: total_error[graph.rowOf(node)] }), most: own > 0 || graph.kindOf(node) === "cut" ? own : cutAbove(graph, node, total) };
  });
}

// What was cut beside a frame, or beside the nearest of its callers that the tree has.
function cutAbove(graph: Graph, node: number, total: Float64Array): number {
  for (let at = graph.parent[node]; at >= 0; at = graph.parent[at]) {
    const first = graph.firstChild[at];
    for (let child = first; child < first + graph.childCount[at]; child++) {
      if (graph.kindOf(child) === "cut") {
        return total[graph.rowOf(child)];
      }
    }
    if (total[graph.rowOf(at)] > 0) {
      return 0;
    }
  }
  return 0;
}

// The graph with that finer subtree at a frame: the way down to it has of each tree at least what the subtree has.
// null: the subtree has no such frame.
export function graftJoined(base: Graph, node: number, joined: Joined, part: number): Graph | null {
  const own = (base.answer as PartedAnswer).parts;
  const met: number[][] = own.flatMap(() => [[], [], []]); // total, self and error of each
  const detail = new Graph(joined.answer);
  const found = detail.find(base.pathOf(node));
  const least = joined.parts.map(({ total }) => (found < 0 ? 0 : total[detail.rowOf(found)]));
  const answer = graft(base, node, widthsOf(joined, part), (from, of) => {
    const { parts } = from.answer as PartedAnswer;
    parts.forEach(({ total, self, total_error }, i) => {
      const row = from.rowOf(of);
      met[3 * i].push(from === base ? Math.max(total[row], least[i]) : total[row]);
      met[3 * i + 1].push(self[row]);
      met[3 * i + 2].push(total_error?.[row] ?? 0);
    });
  });
  if (answer === null) {
    return null;
  }
  const parts = own.map(({ total_error }, i) => ({
    total: Float64Array.from(met[3 * i]),
    self: Float64Array.from(met[3 * i + 1]),
    ...(total_error && joined.parts[i].total_error && { total_error: Float64Array.from(met[3 * i + 2]) }),
  }));
  return new Graph({ ...answer, parts } as PartedAnswer);
}

// The frames of one answer as texts that any other answer's equal frame has too.
class Keys {
  private readonly modules: string[];

  constructor(private readonly answer: FlameAnswer) {
    this.modules = answer.modules.map(({ name, build_id }) => `${name}\n${build_id}`);
  }

  of(row: number): string {
    const { name, kind, module } = this.answer.nodes;
    const { names, signatures, kinds } = this.answer;
    return `${kinds[kind[row]] ?? ""}\n${this.modules[module[row]] ?? ""}\n${signatures?.[name[row]] ?? names[name[row]]}`;
  }
}

// Grows the union of the trees: columns for FlameNodes, rows in the order in which they were met.
class Union {
  readonly names: string[] = [];
  readonly signatures: Record<string, string> = {};
  readonly languages: Record<string, string> = {};
  readonly files: string[] = [];
  readonly modules: FlameAnswer["modules"] = [];
  readonly nodes: FlameNodes<number[]> = { name: [], file: [], line: [], module: [], parent: [], self: [], total: [], kind: [] };
  private readonly children: (Map<string, number> | undefined)[] = [];
  private readonly roots = new Map<string, number>();
  private readonly texts = new Map<string, number>();

  // The row of the child with that key; −1 is the parent of the root.
  child(parent: number, key: string, answer: FlameAnswer, row: number): number {
    const siblings = parent < 0 ? this.roots : (this.children[parent] ??= new Map<string, number>());
    let made = siblings.get(key);
    if (made === undefined) {
      made = this.add(parent, answer, row);
      siblings.set(key, made);
    }
    return made;
  }

  private add(parent: number, { names, signatures, languages, files, modules, kinds, nodes }: FlameAnswer, row: number): number {
    const own = this.nodes;
    const module = modules[nodes.module[row]];
    const name = nodes.name[row];
    own.name.push(this.name(names[name], signatures?.[name], languages?.[name]));
    own.file.push(nodes.file[row] < 0 ? -1 : this.intern("f", files[nodes.file[row]], this.files));
    own.line.push(nodes.line[row]);
    own.module.push(module === undefined ? -1 : this.module(module));
    own.self.push(0);
    own.total.push(0);
    own.kind.push(KINDS.indexOf(kinds[nodes.kind[row]] as (typeof KINDS)[number]));
    return own.parent.push(parent) - 1;
  }

  private name(text: string, signature: string | undefined, language: string | undefined): number {
    const key = `${signature === undefined ? "n" : "s"}${language ?? ""}\n${signature ?? text}`;
    const known = this.texts.get(key) ?? this.names.push(text) - 1;
    if (signature !== undefined) {
      this.signatures[known] = signature;
    }
    if (language !== undefined) {
      this.languages[known] = language;
    }
    this.texts.set(key, known);
    return known;
  }

  private intern(table: string, text: string, into: string[]): number {
    const known = this.texts.get(table + text);
    if (known !== undefined) {
      return known;
    }
    this.texts.set(table + text, into.length);
    return into.push(text) - 1;
  }

  private module(module: FlameAnswer["modules"][number]): number {
    const key = `m${module.name}\n${module.build_id}`;
    const known = this.texts.get(key) ?? this.modules.push(module) - 1;
    this.texts.set(key, known);
    return known;
  }
}

// At least one answer; their units are equal. Callees come widest first, as in each answer.
export function joinTrees(answers: readonly FlameAnswer[]): Joined {
  const union = new Union();
  const parts = answers.map((answer) => {
    const keys = new Keys(answer);
    const { parent, total, self, total_error } = answer.nodes;
    const rowOf = new Int32Array(parent.length);
    const part = { total: [] as number[], self: [] as number[], squares: total_error && ([] as number[]) };
    for (let row = 0; row < parent.length; row++) {
      if (row > 0 && !(parent[row] >= 0 && parent[row] < row)) {
        throw new Error(`The server's flame graph is damaged: column parent, node ${row}.`);
      }
      const key = row === 0 ? "" : keys.of(row);
      const to = union.child(row === 0 ? -1 : rowOf[parent[row]], key, answer, row);
      rowOf[row] = to;
      part.total[to] = (part.total[to] ?? 0) + total[row];
      part.self[to] = (part.self[to] ?? 0) + self[row];
      if (part.squares && total_error) {
        part.squares[to] = (part.squares[to] ?? 0) + total_error[row] ** 2;
      }
      union.nodes.total[to] += total[row];
      union.nodes.self[to] += self[row];
    }
    return part;
  });
  return sorted(answers[0], union, parts);
}

// In falling order of total below each parent, parents first.
function sorted(
  first: FlameAnswer,
  union: Union,
  parts: { total: number[]; self: number[]; squares?: number[] }[],
): Joined {
  const { nodes, names, signatures, languages, files, modules } = union;
  const count = nodes.total.length;
  const depth = new Uint32Array(count);
  for (let row = 1; row < count; row++) {
    depth[row] = depth[nodes.parent[row]] + 1;
  }
  const order = Uint32Array.from({ length: count }, (_, row) => row).sort(
    (a, b) => depth[a] - depth[b] || nodes.total[b] - nodes.total[a],
  );
  const place = new Int32Array(count);
  order.forEach((row, at) => (place[row] = at));
  const moved = (column: number[]) => Array.from(order, (row) => column[row]);
  return {
    answer: {
      ...first,
      names,
      signatures,
      languages,
      files,
      modules,
      kinds: [...KINDS],
      nodes: {
        name: moved(nodes.name),
        file: moved(nodes.file),
        line: moved(nodes.line),
        module: moved(nodes.module),
        parent: Array.from(order, (row) => (row === 0 ? -1 : place[nodes.parent[row]])),
        self: moved(nodes.self),
        total: moved(nodes.total),
        kind: moved(nodes.kind),
      },
    },
    parts: parts.map(({ total, self, squares }) => ({
      ...(squares && { total_error: Float64Array.from(order, (row) => Math.sqrt(squares[row] ?? 0)) }),
      total: Float64Array.from(order, (row) => total[row] ?? 0),
      self: Float64Array.from(order, (row) => self[row] ?? 0),
    })),
  };
}
