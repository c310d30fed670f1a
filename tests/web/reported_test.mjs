// SPDX-License-Identifier: Apache-2.0
// Rates are of the time in which hosts reported, and lost time has its place.

import assert from "node:assert/strict";
import test from "node:test";
import { bundle } from "./bundle.mjs";

const { chartOf } = await bundle("views/chart_data.ts");
const { rateOf } = await bundle("views/rates.ts");
const { isMostlyNamed, rowsOf } = await bundle("views/overview/overview_sums.ts");
const { reportedMs } = await bundle("views/reported.ts");

const MINUTE = 60_000;
const S = 1e9;
// Two hosts that use one CPU each: "a" since long, with a running minute of 20 s; "b" began in the middle.
const answer = {
  type: "on-cpu", unit: "nanoseconds", from: 0, until: 3 * MINUTE, step_ms: MINUTE,
  reported: [[0, 60_000, 0], [MINUTE, 60_000, 0], [2 * MINUTE, 20_000, 500]],
  series: [
    { labels: { host: "a" }, value: 140 * S, samples: 14_000, points: [[0, 60 * S, 6000], [MINUTE, 60 * S, 6000], [2 * MINUTE, 20 * S, 2000]],
      reported: [[0, 60_000], [MINUTE, 60_000], [2 * MINUTE, 20_000]] },
    { labels: { host: "b" }, value: 50 * S, samples: 5000, points: [[0, 0, 0], [MINUTE, 30 * S, 3000], [2 * MINUTE, 20 * S, 2000]],
      reported: [[0, 0], [MINUTE, 30_000], [2 * MINUTE, 20_000]] },
  ],
  accounting: { value: 190 * S, samples: 19_000, lost: 500, reported_ms: 140_000 },
};
const cpus = rateOf("on-cpu", "nanoseconds", "value");
const draw = (given, withLost) => chartOf(given, cpus, false, 8, ({ host }) => host, withLost);

test("the running minute is divided by what was reported of it, and a host's by its own time", () => {
  const { series } = draw(answer);
  assert.deepEqual(series[0].values, [1, 1, 1]);
  assert.deepEqual(series[1].values, [0, 1, 1]);
});

test("lost time stands above the used, in its own step", () => {
  assert.equal(draw(answer).lost, undefined);
  assert.deepEqual(draw(answer, true).lost.values, [0, 0, 0.25]);
  const bySamples = chartOf(answer, rateOf("on-cpu", "nanoseconds", "samples"), true, 8, ({ host }) => host, true);
  assert.deepEqual(bySamples.lost.values, [0, 0, 25]);
  assert.equal(draw({ ...answer, reported: answer.reported.map(([at, ms]) => [at, ms, 0]) }, true).lost, undefined);
});

test("means are of the time reported", () => {
  assert.equal(reportedMs(answer), 140_000);
  const { rows } = rowsOf([answer], "host", "on-cpu");
  assert.deepEqual(rows.map(({ name, values, times }) => [name, cpus.of(values.get("on-cpu"), times.get("on-cpu"))]), [["a", 1], ["b", 1]]);
});

test("where nobody says it, of all of the time", () => {
  const series = answer.series.map(({ labels, value, samples, points }) => ({ labels, value, samples, points }));
  const old = { ...answer, series, reported: undefined, accounting: { value: 190 * S, samples: 19_000, lost: 500 } };
  assert.equal(draw(old).series[0].values[2], 20 / 60);
  assert.equal(draw(old, true).lost, undefined);
  assert.equal(reportedMs(old), 3 * MINUTE);
  assert.equal(rowsOf([old], "host", "on-cpu").rows[0].times.get("on-cpu"), 3 * MINUTE);
});

// Reports of five seconds, of two hosts that begin in different seconds; a burst of ten from the third one on.
const bySecond = (count, lines) => ({
  ...answer, until: count * 1000, step_ms: 1000,
  reported: Array.from({ length: count }, (_, i) => [i * 1000, i % 5 < 2 && i < count - 3 ? 5000 : 0, 0]),
  series: lines.map((values) => ({ labels: { host: "a" }, value: 0, samples: 0, points: values.map((value, i) => [i * 1000, value, 0]) })),
});

test("by the second, what a report brings goes on until the next one", () => {
  const values = Array.from({ length: 28 }, (_, i) => (i % 5 === 0 && i < 25 ? (i === 10 || i === 15 ? 10 : 1) * 5 * S : i % 5 === 1 && i < 25 ? 5 * S : 0));
  const data = draw(bySecond(28, [values]));
  assert.deepEqual(data.series[0].values.slice(5, 26), [...Array(5).fill(2), ...Array(10).fill(11), ...Array(5).fill(2), 1].map((v) => v));
  assert.equal(data.count, 26, "what is still on its way is no drop");
});

test("by the second, of senders that do not say how long their reports are, minutes", () => {
  const values = Array.from({ length: 120 }, (_, i) => (i === 7 || i === 67 ? 60 * S : 0));
  const { series } = draw({ ...bySecond(120, [values]), reported: undefined });
  assert.deepEqual(series[0].values, Array(120).fill(1));
});

test("by the second, what is in use stays so until the next report says", () => {
  const held = chartOf(bySecond(7, [[0, 4, 0, 0, 6, 0, 0]]), rateOf("mem-inuse", "bytes", "value"), false, 8, () => "");
  assert.deepEqual(held.series[0].values, [0, 4, 4, 4, 6, 6, 6]);
});

test("rows are services where most has one", () => {
  const of = (named, none, more) => ({
    series: [{ labels: { service: "shop" }, value: named }, { labels: {}, value: none }, { labels: { service: "" }, value: 1 }],
    ...(more > 0 ? { other: { series: 3, value: more, samples: more, points: [] } } : {}),
  });
  assert.deepEqual([of(10, 8, 0), of(10, 10, 0), of(10, 20, 30)].map((sums) => isMostlyNamed(sums, "service")), [true, false, true]);
  assert.equal(isMostlyNamed({ series: [] }, "service"), true);
});
