// SPDX-License-Identifier: Apache-2.0
// format=columns of /api/v1/flamegraph → the same answer as JSON's, its columns views of the bytes
// that came. schema/README.md has the layout. Pure.

import type { FlameAnswer, FlameNodes } from "./api";

const MAGIC = "FFCOLS1\n";
const HEAD_AT = 16;
const WIDTHS = { f64: 8, i32: 4, u8: 1 } as const;

type Head = Omit<FlameAnswer, "names" | "files" | "nodes"> & {
  nodes: number;
  columns: Record<string, string>;
  names: number; // how many
  files: number;
};

function damaged(what: string): Error {
  return new Error(`The server's flame graph is damaged: ${what}.`);
}

function isCount(n: unknown, most: number): n is number {
  return typeof n === "number" && Number.isInteger(n) && n >= 0 && n <= most;
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

function readHead(bytes: ArrayBuffer, text: TextDecoder): { head: Head; end: number } {
  if (bytes.byteLength < HEAD_AT || text.decode(new Uint8Array(bytes, 0, 8)) !== MAGIC) {
    throw damaged("its first bytes are others");
  }
  const end = HEAD_AT + new DataView(bytes).getUint32(8, true);
  if (end > bytes.byteLength || end % 8 !== 0) {
    throw damaged("its head is cut off");
  }
  try {
    const head = JSON.parse(text.decode(new Uint8Array(bytes, HEAD_AT, end - HEAD_AT))) as Head;
    return { head, end };
  } catch {
    throw damaged("its head is no JSON");
  }
}

function columnAt(bytes: ArrayBuffer, type: string, at: number, count: number): ArrayLike<number> {
  switch (type) {
    case "f64":
      return new Float64Array(bytes, at, count);
    case "i32":
      return new Int32Array(bytes, at, count);
    default:
      return new Uint8Array(bytes, at, count);
  }
}

// Throws one sentence when the bytes are no such answer. All machines with a browser are
// little-endian, as the columns are.
export function readColumns(bytes: ArrayBuffer): FlameAnswer {
  const text = new TextDecoder();
  const { head, end } = readHead(bytes, text);
  const { nodes: count, columns } = head;
  if (!isCount(count, bytes.byteLength) || !isObject(columns)) {
    throw damaged("its head names no columns");
  }
  if (!Array.isArray(head.modules) || !Array.isArray(head.kinds) || !isObject(head.accounting)) {
    throw damaged("its head is not whole");
  }
  let at = end;
  const nodes: Record<string, ArrayLike<number>> = {};
  for (const [name, type] of Object.entries(columns)) {
    const width = WIDTHS[type as keyof typeof WIDTHS];
    if (width === undefined || at % width !== 0 || at + width * count > bytes.byteLength) {
      throw damaged(`column ${name.slice(0, 20)} is cut off`);
    }
    nodes[name] = columnAt(bytes, type, at, count);
    at += width * count;
  }
  const texts = text.decode(new Uint8Array(bytes, at)).split("\0");
  if (!isCount(head.names, texts.length) || !isCount(head.files, texts.length) || head.names + head.files !== texts.length - 1) {
    throw damaged("names are missing");
  }
  return {
    ...head,
    names: texts.slice(0, head.names),
    files: texts.slice(head.names, -1),
    nodes: nodes as unknown as FlameNodes,
  };
}
