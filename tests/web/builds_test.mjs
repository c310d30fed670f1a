// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import test from "node:test";
import { bundle } from "./bundle.mjs";

const { againstPrevious, aroundBuild, newBuilds, previousBuilds, severalBuilds } = await bundle("views/builds.ts");
const module = (name, build_id, first_seen, samples = 1) => ({ name, build_id, first_seen, samples });

test("a new build is a known name with another build-id, first met in the range, that has samples", () => {
  const modules = [
    module("api", "bb", 5000), module("api", "aa", 1000, 0), // a deployment
    module("lib.so", "cc", 5000), // the first of its name
    module("db", "dd", 1000), module("db", "ee", 9000), // after the range
    module("x", "ff", 1000), module("x", "gg", 5000, 0), // not in the selection
    module("", "11", 1000), module("", "22", 5000), // without a name
    module("old", "33", 0), module("old", "44", 5000), // nobody knows when
  ];
  assert.deepEqual(newBuilds(modules, 4000, 6000), [{ name: "api", build_id: "bb", before: "aa", time: 5000, samples: 1 }]);
});

test("each of several builds is against the one before it", () => {
  const modules = [module("api", "c", 300), module("api", "a", 100), module("api", "b", 200)];
  assert.deepEqual(newBuilds(modules, 150, 1000).map(({ before, build_id }) => before + build_id), ["ab", "bc"]);
});

test("builds that were met together, as on two hosts, are not one after the other", () => {
  assert.deepEqual(newBuilds([module("api", "a", 100), module("api", "b", 100)], 0, 1000), []);
});

test("of very many, those with most samples, in the order of time", () => {
  const modules = [module("n", "first", 1)];
  for (let i = 0; i < 500; i++) {
    modules.push(module("n", "b" + i, 1000 - i, i));
  }
  const found = newBuilds(modules, 2, 5000);
  assert.equal(found.length, 20);
  assert.deepEqual([found[0].build_id, found[19].build_id], ["b499", "b480"]);
});

test("before and after have one length and not the minute of both", () => {
  const m = 60_000;
  assert.deepEqual(aroundBuild(10 * m + 5, 0, 60 * m), { from: 11 * m, until: 21 * m, base: `0..${10 * m}` });
  assert.deepEqual(aroundBuild(50 * m + 5, 0, 60 * m), { from: 51 * m, until: 60 * m, base: `${41 * m}..${50 * m}` });
  assert.equal(aroundBuild(5, 0, 60 * m), null);
});

test("names of several builds are offered, the most sampled first, the newest build first", () => {
  const modules = [
    module("few", "a", 1, 1), module("few", "b", 2, 1), module("many", "c", 5, 9), module("many", "d", 7, 0), module("one", "e", 1, 99),
    module("", "f", 1), module("", "g", 2), module("kernel", "", 1), module("kernel", "", 2),
  ];
  const found = severalBuilds(modules).map(({ name, builds }) => [name, builds.map(({ build_id }) => build_id).join("")]);
  assert.deepEqual(found, [["many", "dc"], ["few", "ba"]]);
});

test("the previous build is that met before the newest one that runs", () => {
  const modules = [
    module("api", "c", 300, 0), module("api", "b", 200, 5), module("api", "a", 100, 0), // c is not in the selection
    module("both", "e", 400, 9), module("both", "d", 300, 9), module("both", "?", 0, 9),
    module("same", "f", 100), module("same", "g", 100), module("idle", "h", 1, 0), module("idle", "i", 2, 0),
  ];
  assert.deepEqual(previousBuilds(modules), [
    { name: "both", build_id: "e", before: "d", runsStill: true, time: 400 },
    { name: "api", build_id: "b", before: "a", runsStill: false, time: 200 },
  ]);
});

test("against the previous build: around its end, beside it, or as much just before the new one", () => {
  const m = 60_000;
  const of = (time, runsStill) => againstPrevious({ time, runsStill }, 100 * m, 160 * m);
  assert.deepEqual(of(130 * m, true), { from: 131 * m, until: 160 * m, base: `${101 * m}..${130 * m}` });
  assert.deepEqual(of(50 * m, true), { base: "-0s" }, "both run");
  assert.deepEqual(of(50 * m + 5, false), { base: `${-10 * m}..${50 * m}` });
  assert.deepEqual(of(100 * m + 5, false), { base: `${40 * m}..${100 * m}` }, "no minute of it is left in the range");
});
