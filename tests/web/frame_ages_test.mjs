// SPDX-License-Identifier: Apache-2.0
// Ages of frames, by when their builds were first met.

import assert from "node:assert/strict";
import test from "node:test";
import { bundle } from "./bundle.mjs";
import { answerOf, tree } from "./trees.mjs";

const { ageColour, ageColouring, ageNames, ageOf, compareAges, firstSeenOf } = await bundle("views/flame/frame_ages.ts");
const { Graph } = await bundle("graph/graph.ts");
const { legendOf } = await bundle("views/flame/frame_colours.ts");

const HOUR = 3_600_000;
const UNTIL = 1_800_000_000_000;
const BEFORE = { fresh: HOUR / 2, today: 5 * HOUR, week: 6.9 * 24 * HOUR, month: 29 * 24 * HOUR, old: 400 * 24 * HOUR };
const NAMES = { fresh: "under an hour", today: "under a day", week: "under a week", month: "under a month", old: "older", never: "not known" };

const seen = firstSeenOf([
  ...Object.entries(BEFORE).map(([build_id, ms]) => ({ build_id, first_seen: UNTIL - ms })),
  { build_id: "never", first_seen: 0 },
]);

function answer() {
  const builds = Object.keys(NAMES);
  const made = answerOf(tree("all", 0, [...builds.map((name, i) => tree(name, i + 1)), tree("no module", 1), tree("cut", 9, [], "cut")], "root"));
  made.until = UNTIL;
  made.modules = builds.map((build_id) => ({ name: `lib${build_id}.so`, build_id }));
  made.accounting = { value: 1, samples: 1 };
  made.nodes.module = made.nodes.name.map((name) => builds.indexOf(made.names[name]));
  return made;
}

test("a build has the age it had at the end of the time shown; one that is newer is of no age", () => {
  assert.equal(ageOf("today", seen, UNTIL), 5 * HOUR);
  assert.equal(ageOf("fresh", seen, UNTIL - 10 * HOUR), 0);
  assert.equal(ageOf("never", seen, UNTIL), null);
  assert.equal(ageOf("", seen, UNTIL), null);
});

test("each frame is in the class of its build, those without one are not known, and the root is in none", () => {
  const made = answer();
  const of = ageNames(made, seen);
  made.nodes.name.forEach((name, row) => {
    const text = made.names[name];
    assert.equal(of(row), text === "all" || text === "cut" ? "" : (NAMES[text] ?? "not known"));
  });
});

test("the legend has the youngest first, with what its frames have of their own", () => {
  const builds = Object.keys(NAMES).map((build_id, i) => ({ name: "lib", build_id, value: i + 1 }));
  const top = { until: UNTIL, functions: [], own: { kinds: { native: 22, group: 9 }, modules: builds }, accounting: { value: 31 } };
  const rows = legendOf(top, "age", false, seen).map(({ name, value }) => [name, value]);
  assert.deepEqual(rows, [["under an hour", 1], ["under a day", 2], ["under a week", 3], ["under a month", 4], ["older", 5], ["not known", 7]]);
  assert.ok(compareAges("older", "not known") < 0);
});

test("the colours of the graph are the legend's", () => {
  const graph = new Graph(answer());
  for (const dark of [false, true]) {
    const colouring = ageColouring(seen, dark);
    for (const [build, name] of Object.entries(NAMES)) {
      assert.equal(colouring(graph, graph.find([build])), ageColour(name, dark));
    }
    assert.equal(colouring(graph, 0), undefined);
  }
  assert.equal(new Set(Object.values(NAMES).map((name) => ageColour(name, false))).size, 6);
});
