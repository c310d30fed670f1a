// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import fs from "node:fs";
import test from "node:test";
import { bundle } from "./bundle.mjs";

const { DEFAULTS, readState, writeState } = await bundle("shell/state.ts");
const { isLive, snapshotOf } = await bundle("shell/snapshot.ts");
const { titleOf } = await bundle("shell/title.ts");
const { downloadsOf, fileName } = await bundle("server/downloads.ts");

const NOW = Date.UTC(2026, 10, 23, 6, 10, 0);
const of = (changed) => ({ ...DEFAULTS, ...changed });

test("a snapshot's times stand still, whatever was chosen besides stays", () => {
  const state = of({ page: "diff", from: "now-1h", until: "now", base: "now-1d..now-23h", search: "x", exact: "true", refresh: "5" });
  const still = snapshotOf(state, NOW);
  assert.deepEqual(still, {
    ...state, from: String(NOW - 3_600_000), until: String(NOW), base: `${NOW - 86_400_000}..${NOW - 82_800_000}`, refresh: "0",
  });
  assert.equal(isLive(state), true);
  assert.equal(isLive(still), false);
  assert.deepEqual(snapshotOf(still, NOW + 86_400_000), still);
  assert.deepEqual(readState(writeState(still)), still);
});

test("times that are fixed, relative to the other side or nonsense are left as they are", () => {
  const state = of({ from: "1795413000000", until: "2026-11-23T06:00:00Z", base: "-1d" });
  assert.deepEqual(snapshotOf(state, NOW), state);
  assert.equal(snapshotOf(of({ from: "now-soon" }), NOW).from, "now-soon");
});

test("a file's name says type, selection and time, and holds nothing that means something", () => {
  assert.equal(fileName(of({ process: "api" }), "", "svg", NOW), "farflame_on-cpu_api_2026-11-23T0510Z_2026-11-23T0610Z.svg");
  for (const name of ["../../etc/passwd", "<b>\u202e", "a b;c|d", "-rf", "x".repeat(4096), "..", '"$(x)`']) {
    const file = fileName(of({ process: name, match: name, type: name }), "functions", "csv", NOW);
    assert.match(file, /^farflame_[A-Za-z0-9._-]+\.csv$/, name);
    assert.equal(file.includes(".."), false, file);
    assert.ok(file.length < 255, name);
  }
});

test("a view whose times stand still says them, the same for every reader", () => {
  const state = of({ page: "graph", process: "cc1", from: String(Date.UTC(2026, 10, 23, 23, 43)), until: String(Date.UTC(2026, 10, 23, 23, 48)) });
  assert.equal(titleOf(state, "Flame graph"), "cc1 · on-cpu · 2026-11-23 23:43–23:48 UTC · farflame");
  assert.equal(titleOf({ ...state, note: "the slow build" }, "Flame graph"), "the slow build · cc1 · on-cpu · 2026-11-23 23:43–23:48 UTC · farflame");
  const night = { ...state, until: String(Date.UTC(2026, 10, 24, 0, 3)) };
  assert.match(titleOf(night, "Flame graph"), /2026-11-23 23:43–2026-11-24 00:03 UTC/);
  assert.equal(titleOf(of({ page: "time" }), "Time"), "Time · farflame", "times that move on are not");
  assert.equal(titleOf(of({ page: "time", from: "nonsense" }), "Time"), "Time · farflame");
});

// The formats of a resource, as the contract lists them.
function formatsOf(resource) {
  const contract = fs.readFileSync(new URL("../../schema/rest/openapi.yaml", import.meta.url), "utf8");
  const part = contract.split(`\n  /api/v1/${resource}:\n`)[1].split("\n  /")[0];
  const list = /name: format\b[\s\S]*?enum: \[([^\]]*)\]/.exec(part)[1];
  return list.split(",").map((format) => format.trim());
}

test("each format that the API gives is offered, and no other", () => {
  for (const [page, resources] of Object.entries({ graph: ["flamegraph", "top"], diff: ["diff"], time: ["timeline", "heatmap"], overview: ["top"], wall: [] })) {
    const offered = [...downloadsOf(of({ page }), NOW).values()].flat();
    for (const resource of resources) {
      const formats = offered.filter((download) => download.resource === resource).map(({ parameters }) => parameters.format);
      const wanted = formatsOf(resource).filter((format) => format !== "columns"); // for the page alone
      assert.deepEqual(formats.sort(), wanted.sort(), `${page}: ${resource}`);
    }
    assert.equal(new Set(offered.map(({ file }) => file)).size, offered.length, `${page}: names differ`);
  }
});

test("the wall clock has both of its types, modules and agents what the API answers", () => {
  const wall = [...downloadsOf(of({ page: "wall", type: "still-blocked", group_by: "thread" }), NOW).values()].flat();
  assert.deepEqual(wall.map(({ parameters: { type, format, group_by } }) => `${type} ${format} ${group_by}`),
    ["on-cpu csv thread", "on-cpu json thread", "off-cpu csv thread", "off-cpu json thread"]);
  for (const page of ["modules", "agents"]) {
    const [[one]] = downloadsOf(of({ page }), NOW).values();
    assert.deepEqual([one.resource, "format" in one.parameters], [page, false]);
  }
});

test("downloads are of what is shown", () => {
  const [whole] = downloadsOf(of({ page: "graph", invert: "1", hide: "^x$", max_nodes: "5000", trace_id: "a" }), NOW).values();
  assert.ok(whole.every(({ parameters }) => parameters.invert === "1" && parameters.hide === "^x$" && parameters.max_nodes === "5000"));
  assert.ok(whole.every(({ parameters }) => parameters.match === '{trace_id="a"}'));
  assert.equal(whole.some(({ text }) => text === "pprof"), false, "pprof has no inverted stacks");
  const zoomed = downloadsOf(of({ page: "graph", zoom: "p;f\\;g" }), NOW);
  assert.deepEqual([...zoomed.keys()], ["Flame graph of f;g", "Functions of f;g"]);
  assert.ok([...zoomed.values()].flat().every(({ parameters }) => parameters.root === "p;f\\;g" && parameters.group_by === "process"));
  assert.ok([...downloadsOf(of({ page: "graph" }), NOW).values()].flat().every(({ parameters }) => !("max_nodes" in parameters)), "nothing is cut");
});
