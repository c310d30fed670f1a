// SPDX-License-Identifier: Apache-2.0
// What a comparison says in words, and what of a picture sampling explains.

import assert from "node:assert/strict";
import test from "node:test";
import { bundle } from "./bundle.mjs";

const { changeText, confidenceText, differenceText, hostsText, intervalText, recordedText, sidesText, summaryText } =
  await bundle("views/diff/diff_words.ts");
const { Changes } = await bundle("views/diff/diff_graph.ts");
const { chanceOf, differing } = await bundle("views/diff/sampling_noise.ts");

const CPUS = { norm: "per_second", unit: "nanoseconds", type: "on-cpu" };

test("values, with a unit once", () => {
  assert.equal(sidesText(CPUS, { before: 0.012e9, after: 0.343e9 }), "0.012 → 0.343 CPUs");
  assert.equal(differenceText(CPUS, { before: 0.343e9, after: 0.012e9 }), "−0.331 CPUs");
  assert.equal(differenceText(CPUS, { before: 0.0012e9, after: 0.0015e9 }), "+0.00030 CPUs", "small ones by more digits");
  assert.equal(sidesText({ ...CPUS, norm: "share" }, { before: 0, after: 0.25 }), "0 → 25.0 %");
  assert.equal(sidesText({ norm: "raw", unit: "bytes", type: "alloc" }, { before: 1024, after: 3 * 2 ** 20 }), "1.00 KiB → 3.00 MiB");
});

test("changes and their interval", () => {
  assert.deepEqual([null, -1, -0.5, 0.123, 9.5, 120].map(changeText), ["new", "gone", "−50.0 %", "+12.3 %", "× 10.5", "× 121"]);
  const interval = (state, ci_low, ci_high) => intervalText({ state, ci_low, ci_high });
  assert.equal(interval("changed", 0.08, 0.17), "+8.0 … +17 %");
  assert.equal(interval("changed", -0.2, 11), "−20 % … × 12.0");
  assert.equal(interval("same", null, 0.5), "−100 … +50 %", "no lower end: all of it may be gone");
  assert.equal(interval("changed", 3, null), "at least +300 %");
  assert.equal(interval("new", 11, null), "at least × 12.0");
  assert.equal(interval("gone", null, -0.97), "at least −97 %");
  assert.equal(interval("new", null, null), "", "nothing that can be said");
});

test("of sampling noise is spoken only where sampling explains the difference", () => {
  const words = (recorded, sustained, change) => confidenceText({ recorded, sustained, change });
  assert.deepEqual(words(true, "yes", 1), ["recorded", "stands out from minute to minute"]);
  assert.deepEqual(words(true, "no", null), ["recorded", "within the usual variation of minutes"]);
  assert.deepEqual(words(true, "too short", null), ["recorded", "too short to tell"]);
  assert.deepEqual(words(false, "no", 0.3), ["within sampling noise"]);
  assert.deepEqual(words(false, "yes", 0.02), ["less than 5 %", "stands out from minute to minute"]);
  assert.equal(recordedText(false, -0.02), "less than 5 %");
  assert.equal(recordedText(false, 0), "the same");
  assert.equal(recordedText(false, null), "within sampling noise");
});

test("the sentence", () => {
  const side = (samples) => ({ accounting: { samples } });
  const of = (more, before = 9, after = 9) => summaryText({ ...side(after), base: side(before), statistics: { minutes: 10, base_minutes: 10, hosts: 3, tested: 341, recorded: 12, sustained: 3, too_short: false, ...more } });
  assert.match(of({}), /^12 of 341 functions .*; 3 stand out from minute to minute\.$/);
  assert.match(of({ sustained: 1 }), /; 1 stands out/);
  assert.match(of({ base_minutes: 1, sustained: null, too_short: true }), /\. 1 minute is too short to tell what/);
  assert.match(of({ sustained: null, too_short: true }), /too coarse/);
  assert.equal(of({}, 0), "A has no samples: all is new.");
  assert.equal(of({}, 9, 0), "B has no samples: all is gone.");
  assert.match(of({ tested: 0, recorded: 0 }), /^No function has enough samples/);
});

test("hosts of one side", () => {
  const of = (hosts_joined, hosts_left, hosts = 2) => hostsText({ ...CPUS, hosts_joined, hosts_left, statistics: { hosts } });
  const host = (name) => ({ host: name, value: 0.9e9 });
  assert.equal(of([], []), "");
  assert.equal(of([host("a")], []), "1 host joined: a (0.900 CPUs). They count in the sizes, not in the confidence.");
  assert.match(of([], ["a", "b", "c", "d", "e"].map(host)), /^5 hosts left: a .*, b .*, c \(0\.900 CPUs\) and 2 more\./);
  assert.equal(of([host("a")], [host("b")], 0), "No host is on both sides.");
});

// Two-sided, by adding up binomial probabilities: after of all, of which p are expected at most.
function exact(before, after, ratio) {
  const all = before + after;
  const logs = [0];
  for (let i = 1; i <= all; i++) {
    logs[i] = logs[i - 1] + Math.log(i);
  }
  const sum = (odds, from, until) => {
    const p = odds / (1 + odds);
    let chance = 0;
    for (let k = from; k <= until; k++) {
      chance += Math.exp(logs[all] - logs[k] - logs[all - k] + k * Math.log(p) + (all - k) * Math.log(1 - p));
    }
    return chance;
  };
  return Math.min(1, 2 * Math.min(sum(ratio * 1.05, after, all), sum(ratio / 1.05, 0, after)));
}

test("chance is nearly that of the exact test", () => {
  for (const [before, after, ratio] of [[40, 70, 1], [0, 12, 1], [12, 0, 1], [100, 260, 2], [1000, 1130, 1], [3, 30, 5], [5000, 5200, 1]]) {
    const [got, want] = [chanceOf(before, after, ratio), exact(before, after, ratio)];
    assert.ok(Math.abs(got - want) < 0.02 + 0.4 * want, `${before} → ${after} × ${ratio}: ${got}, exactly ${want}`);
  }
});

test("of equal sides next to nothing differs, and what differs is found", () => {
  let seed = 1;
  const uniform = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  const normal = () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
  const around = (mean) => Math.max(0, Math.round(mean + Math.sqrt(mean) * normal()));
  let found = 0;
  for (let round = 0; round < 100; round++) {
    const pairs = Array.from({ length: 200 }, (_, i) => [around(20 + 10 * i), around(20 + 10 * i)]);
    found += differing(pairs, 1).some(Boolean) ? 1 : 0;
  }
  assert.ok(found <= 6, `${found} of 100 pictures without a change have one`);
  assert.deepEqual(differing([[100, 900], [100, 100], [0, 60], [60, 0], [0, 4], [1e6, 1.02e6]], 1), [true, false, true, true, false, false]);
  assert.deepEqual(differing([[100, 1000], [100, 3000]], 10), [false, true], "ten times as many samples were to be expected");
  assert.deepEqual(differing([], 1), []);
});

test("frames of a picture: by the samples that count, scaled", () => {
  const of = (effective) => {
    const nodes = { total: [400e9, 250e9, 150e9], base_total: [600e9, 300e9, 300e9] };
    const side = (value, samples) => ({ accounting: { value, samples } });
    return new Changes({ nodes, scale: 0.5, statistics: { effective }, ...side(400e9, 400), base: side(600e9, 600) });
  };
  assert.deepEqual([0, 1, 2].map((row) => of(1).of(row).recorded), [true, true, false]);
  assert.deepEqual([0, 1, 2].map((row) => of(0.05).of(row).recorded), [false, false, false], "waits of very different lengths");
  assert.deepEqual(of(1).of(1), { before: 150e9, after: 250e9, ratio: 0.4, recorded: true });
});
