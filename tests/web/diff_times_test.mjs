// SPDX-License-Identifier: Apache-2.0
// The time that the time line of a comparison shows.

import assert from "node:assert/strict";
import test from "node:test";
import { bundle } from "./bundle.mjs";

globalThis.document = { createElement: () => null, createElementNS: () => null };
const { windowOf } = await bundle("views/diff/diff_times.ts");

const NOW = 10_000;

test("both ranges with half of their length on either side, and nothing later than now", () => {
  assert.deepEqual(windowOf({ from: 1000, until: 2000 }, { from: 2000, until: 3000 }, null, NOW), { from: 0, until: 4000 });
  assert.deepEqual(windowOf({ from: 8000, until: 9000 }, { from: 9000, until: NOW }, null, NOW), { from: 7000, until: NOW });
  assert.deepEqual(windowOf({ from: 5000, until: 7000 }, { from: 1000, until: 2000 }, null, NOW), { from: -2000, until: NOW });
});

test("a drag within it does not move it, one that leaves it does", () => {
  const before = { from: 0, until: 4000 };
  assert.equal(windowOf({ from: 100, until: 200 }, { from: 3000, until: 4000 }, before, NOW), before);
  assert.deepEqual(windowOf({ from: 100, until: 200 }, { from: 3000, until: 4100 }, before, NOW), { from: -1900, until: 6100 });
});
