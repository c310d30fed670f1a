// SPDX-License-Identifier: Apache-2.0
// The typed columns of a flame graph: read as they are written in schema/README.md, and whatever else
// comes is refused with a sentence.

import assert from "node:assert/strict";
import test from "node:test";
import { bundle } from "./bundle.mjs";

const { Graph } = await bundle("graph/graph.ts");
const { readColumns } = await bundle("server/columns.ts");

const TYPES = { self: "f64", total: "f64", name: "i32", file: "i32", line: "i32", module: "i32", parent: "i32", kind: "u8" };
const SMALL = {
  self: [1, 0, 2, 4],
  total: [7, 4, 2, 4],
  name: [0, 1, 2, 1],
  file: [-1, 0, -1, -1],
  line: [0, 7, 0, 0],
  module: [-1, 0, -1, -1],
  parent: [-1, 0, 0, 1],
  kind: [0, 1, 1, 1],
};
const HEAD = { type: "on-cpu", unit: "nanoseconds", from: 1, until: 2, modules: [{ name: "m", build_id: "" }], kinds: ["root", "native"], accounting: {} };

function write({ columns = SMALL, types = TYPES, names = ["all", "a\u00e9", "\u{1F525}"], files = ["f.c"], head = {} } = {}) {
  const count = columns.parent.length;
  const whole = { ...HEAD, nodes: count, names: names.length, files: files.length, columns: types, ...head };
  let json = Buffer.from(JSON.stringify(whole));
  json = Buffer.concat([json, Buffer.alloc((8 - (json.length % 8)) % 8, " ")]);
  const length = Buffer.alloc(8);
  length.writeUInt32LE(json.length);
  const parts = Object.entries(types).map(([name, type]) => {
    const array = { f64: Float64Array, i32: Int32Array, u8: Uint8Array }[type] ?? Uint8Array;
    return Buffer.from(array.from(columns[name] ?? []).buffer);
  });
  const texts = Buffer.from([...names, ...files].map((text) => text + "\0").join(""));
  return Buffer.concat([Buffer.from("FFCOLS1\n"), length, json, ...parts, texts]);
}

const bytes = (buffer) => new Uint8Array(buffer).buffer;

test("a small one is read and laid out", () => {
  const answer = readColumns(bytes(write()));
  assert.deepEqual(answer.names, ["all", "a\u00e9", "\u{1F525}"]);
  assert.deepEqual(answer.files, ["f.c"]);
  const graph = new Graph(answer);
  assert.equal(graph.count, 4);
  assert.equal(graph.levels, 3);
  assert.deepEqual([...graph.x], [0, 0, 4, 0]);
  assert.deepEqual(graph.pathOf(3), ["a\u00e9", "a\u00e9"]);
  assert.equal(graph.find(["\u{1F525}"]), 2);
  assert.equal(graph.fileOf(1), "f.c");
  assert.equal(graph.moduleOf(2), null);
});

test("the order of JSON gives the same picture", () => {
  const rows = [0, 1, 3, 2]; // depth first
  const nodes = Object.fromEntries(Object.entries(SMALL).map(([name, column]) => [name, rows.map((row) => column[row])]));
  nodes.parent = [-1, 0, 1, 0];
  const slow = new Graph({ ...HEAD, names: ["all", "b", "c"], files: ["f"], nodes });
  const fast = new Graph(readColumns(bytes(write({ names: ["all", "b", "c"], files: ["f"] }))));
  for (const column of ["x", "total", "parent", "depth", "childCount", "levelStart"]) {
    assert.deepEqual([...slow[column]], [...fast[column]], column);
  }
});

test("a column that nobody knows yet is skipped", () => {
  const answer = readColumns(bytes(write({ types: { age: "f64", ...TYPES }, columns: { ...SMALL, age: [1, 2, 3, 4] } })));
  assert.equal(new Graph(answer).count, 4);
});

test("every cut is refused with a sentence", () => {
  const whole = write();
  for (let length = 0; length < whole.length; length++) {
    assert.throws(() => new Graph(readColumns(bytes(whole.subarray(0, length)))), /^Error: The server's .*\.$/, `${length} bytes`);
  }
});

test("hostile numbers are refused", () => {
  const bad = [
    { head: { nodes: 2 ** 40 } },
    { head: { nodes: -1 } },
    { head: { names: 5 } },
    { head: { names: 1e9 } },
    { head: { columns: null } },
    { types: { ...TYPES, kind: "u64" } },
    { columns: { ...SMALL, parent: [-1, 0, 3, 1] } },
    { columns: { ...SMALL, parent: [-1, 1, 0, 1] } },
    { columns: { ...SMALL, name: [0, 1, 2, 3] } },
    { columns: { ...SMALL, total: [7, NaN, 2, 4] } },
    { columns: { ...SMALL, total: [7, -4, 2, 4] } },
    { columns: { ...SMALL, self: [7, Infinity, 2, 4] } },
  ];
  for (const what of bad) {
    assert.throws(() => new Graph(readColumns(bytes(write(what)))), /The server's/, JSON.stringify(what));
  }
});

test("changed bytes never do worse than a sentence", () => {
  const whole = write();
  for (let i = 0; i < whole.length; i++) {
    for (const bit of [1, 16, 128]) {
      const changed = Buffer.from(whole);
      changed[i] ^= bit;
      try {
        new Graph(readColumns(bytes(changed)));
      } catch (error) {
        assert.match(String(error), /^Error: The server's .*\.$/, `byte ${i}`);
      }
    }
  }
});
