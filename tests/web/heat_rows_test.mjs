// SPDX-License-Identifier: Apache-2.0
// Functions over time: how finely they are asked for, and what is said of a cell.

import assert from "node:assert/strict";
import test from "node:test";
import { bundle } from "./bundle.mjs";

const { cellWords, columnParameter, heatRows, otherWords, restWords } = await bundle("views/time/heat_rows.ts");
const { rateOf } = await bundle("views/rates.ts");

const CPU = rateOf("on-cpu", "nanoseconds", "value");
const ANSWER = {
  type: "on-cpu",
  unit: "nanoseconds",
  sort: "self",
  from: 0,
  until: 180_000,
  first: 0,
  column_ms: 60_000,
  columns: 3,
  reported: [[0, 60_000, 0], [60_000, 60_000, 0], [120_000, 20_000, 0]],
  functions: [{ name: "f", self: 70e9, total: 70e9 }, { name: "g", self: 20e9, total: 20e9 }],
  cells: { row: [0, 0, 1], column: [0, 1, 2], value: [60e9, 10e9, 20e9], samples: [600, 100, 200], error: [3e9, 4e9, 1e9] },
  other: { functions: 7, value: 30e9, samples: 300, values: [0, 30e9, 0] },
  all: [60e9, 40e9, 20e9],
};

test("columns are of seconds where the time line's steps are, and no shorter than a report", () => {
  const asked = (ms, report, step_ms = 1000) => columnParameter({ step_ms, from: 0, until: ms, reported: [[0, report, 0], [1000, 0, 0]] });
  assert.deepEqual(asked(60_000, 1000), { column: "1s" });
  assert.deepEqual(asked(60_000, 5000), { column: "5s" });
  assert.deepEqual(asked(60_000, 5200), { column: "10s" });
  assert.deepEqual(asked(900_000, 1000), { column: "10s" }, "at most 150 columns");
  assert.deepEqual(asked(60_000, 60_000), { column: "1m" });
  assert.deepEqual(columnParameter({ step_ms: 1000, from: 0, until: 60_000 }), { column: "1m" }, "it is not said how long reports are");
  assert.deepEqual(asked(3_600_000, 5000, 60_000), { column: "1m" }, "minutes where steps are minutes");
  assert.deepEqual(asked(86_400_000, 5000, 300_000), { column: "10m" });
  assert.deepEqual(asked(3_600_000, 5000, 600_000), { column: "10m" }, "no finer than what is known");
  assert.deepEqual(asked(400 * 86_400_000, 5000, 2 * 86_400_000), {}, "else the server chooses");
});

test("rates are of the time reported; what has no row is one", () => {
  const { rows, most } = heatRows(ANSWER, CPU);
  assert.deepEqual(rows.map(({ function: f, rates }) => [f?.name ?? null, [...rates]]), [
    ["f", [1, 10 / 60, 0]],
    ["g", [0, 0, 1]],
    [null, [0, 0.5, 0]],
  ]);
  assert.equal(most, 1);
  assert.equal(heatRows({ ...ANSWER, other: { functions: 0, value: 0, samples: 0, values: [0, 0, 0] } }, CPU).rows.length, 2);
  assert.equal(otherWords(ANSWER), "7 others");
  assert.equal(otherWords({ ...ANSWER, other: { ...ANSWER.other, functions: 0 } }), "in no function");
  assert.equal(otherWords({ ...ANSWER, sort: "total" }), "stacks through none of these");
});

test("a cell, some of a row, and the others in words", () => {
  assert.equal(cellWords(ANSWER, CPU, 0, 0, 0), "1.00 CPUs, 60.0 s ± 3.00 s, 100 % of all then, 600 samples");
  assert.equal(cellWords(ANSWER, CPU, 0, 0, 1), "0.58 CPUs, 70.0 s ± 5.00 s, 70.0 % of all then, 700 samples", "errors of disjoint samples add up in squares");
  assert.equal(cellWords(ANSWER, CPU, 1, 2, 2), "1.00 CPUs, 20.0 s ± 1.00 s, 100 % of all then, 200 samples");
  assert.equal(cellWords(ANSWER, CPU, 2, 1, 1), "0.50 CPUs, 30.0 s, 75.0 % of all then");
  assert.equal(cellWords(ANSWER, CPU, 1, 0, 0), "0 CPUs, 0 s, 0 % of all then, 0 samples");
});

test("what is there does not add up over time", () => {
  const answer = { ...ANSWER, type: "mem-inuse", unit: "bytes", cells: { row: [0, 0], column: [0, 1], value: [3000, 1000], samples: [3, 1] }, all: [3000, 1000, 0] };
  assert.equal(cellWords(answer, rateOf("mem-inuse", "bytes", "value"), 0, 0, 1), "1.95 KiB, 100 % of all then, 4 samples");
});

test("what has no row is said, and what the server had no memory for", () => {
  const accounting = { value: 120e9 };
  assert.equal(restWords({ ...ANSWER, accounting }), " 7 more have no row. 25.0 % of all, 30.0 s, is in no row.");
  assert.equal(restWords({ ...ANSWER, sort: "total", accounting }), " 7 more have no row. 25.0 % of all, 30.0 s, is in stacks through none of these.");
  const none = { functions: 0, value: 0, samples: 0, values: [0, 0, 0] };
  assert.equal(restWords({ ...ANSWER, other: none, accounting }), "");
  assert.equal(restWords({ ...ANSWER, other: none, accounting: { value: 150e9, cut_by_memory: 30e9 } }),
    " The lightest stacks, 20.0 %, are left out: --query-memory has no room for them.");
});
