// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import test from "node:test";
import { bundle } from "./bundle.mjs";

const { fromZoned, setZone, zoned, zoneName, zoneOffset } = await bundle("text/zone.ts");
const AUTUMN = Date.UTC(2026, 10, 1, 5, 30); // half an hour before New York's clocks go back

test("a browser's zone, on both sides of a change", () => {
  process.env.TZ = "America/New_York";
  assert.equal(zoned(AUTUMN), "2026-11-01T01:30:00");
  assert.equal(zoneName(AUTUMN), "UTC−04:00");
  assert.equal(zoned(AUTUMN + 3_600_000), "2026-11-01T01:30:00");
  assert.equal(zoneName(AUTUMN + 3_600_000), "UTC−05:00");
  process.env.TZ = "Asia/Kolkata";
  assert.equal(zoned(AUTUMN), "2026-11-01T11:00:00");
  assert.equal(zoneName(AUTUMN), "UTC+05:30");
  assert.equal(fromZoned(zoned(AUTUMN)), AUTUMN);
});

test("UTC for everybody", () => {
  setZone("utc");
  assert.deepEqual([zoned(AUTUMN), zoneName(AUTUMN), zoneOffset(AUTUMN)], ["2026-11-01T05:30:00", "UTC", 0]);
  assert.equal(fromZoned("2026-11-01T05:30:00"), AUTUMN);
  setZone("");
  assert.equal(zoneName(AUTUMN), "UTC+05:30");
});

test("what is no time", () => {
  assert.equal(zoned(Number.NaN), "");
  assert.equal(zoned(1e18), "");
  assert.ok(Number.isNaN(fromZoned("soon")));
});
