// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import fs from "node:fs";
import test from "node:test";
import { bundle } from "./bundle.mjs";

const { healthOf, listAgents, rowOf, tallyOf, WALK_WORDS } = await bundle("views/agents/agents_rows.ts");

const NOW = 1_800_000_000_000;
const of = (changed) => ({
  host: "h", version: "1.0", kernel: "6.1.0", last_seen: NOW - 5000, rate_hz: 19, taken: 1000, lost: 0, lost_by: {},
  stacks: { complete: 900, no_table: 100, guessed: 50 }, lag_ms: 100, skew_ms: 3, ...changed,
});
const row = (changed) => rowOf(of(changed), NOW);

test("each way a walk ends has words", () => {
  const header = fs.readFileSync(new URL("../../bpf/results.h", import.meta.url), "utf8");
  const names = [...header.slice(header.indexOf("#define WALK_RESULTS")).matchAll(/RESULT\((\w+), "/g)].map(([, name]) => name);
  assert.ok(names.length > 10);
  const merges = fs
    .readFileSync(new URL("../../node-agent/runtimes/frame_merge.h", import.meta.url), "utf8")
    .matchAll(/X\((\w+),[\s\\]*"[^"]/g);
  for (const name of [...names, ...[...merges].map(([, merge]) => `interpreter_${merge}`)]) {
    assert.ok(WALK_WORDS[name], name);
  }
});

test("late is by the server's clock", () => {
  assert.equal(healthOf(0), "reporting");
  assert.equal(healthOf(60_000), "reporting");
  assert.equal(healthOf(60_001), "late");
  assert.equal(healthOf(3_600_001), "silent");
  assert.equal(row({ last_seen: NOW + 9000 }).age, 0, "a clock set back is no age below nothing");
});

test("results: what was guessed is part of the complete ones", () => {
  const { stacksCount, incomplete, worst } = row({ stacks: { complete: 80, guessed: 70, no_table: 5, new_result: 15 } });
  assert.deepEqual([stacksCount, incomplete], [100, 20]);
  assert.deepEqual(worst, [["new_result", 15], ["no_table", 5]]);
  assert.equal(row({ stacks: {} }).stacksCount, 0);
});

test("what is wrong is said, and nothing else", () => {
  assert.deepEqual(row({}).warnings, []);
  const bad = row({ last_seen: NOW - 120_000, lag_ms: 90_000, skew_ms: -5000, lost: 100, stacks: { complete: 1, no_table: 9 } });
  assert.equal(bad.warnings.length, 5);
  assert.equal(row({ lost: 10 }).warnings.length, 0, "one in a hundred is allowed");
  assert.equal(row({ lost: 11 }).warnings.length, 1);
  assert.equal(row({ taken: 0, lost: 0 }).lostShare, 0);
  assert.match(row({ clock_jumps: 2 }).warnings[0], /set 2 times/);
  assert.equal(row({ skew_ms: undefined }).warnings.length, 0, "a clock not told is not wrong");
});

test("words find hosts, versions, states, and reasons that occurred", () => {
  const rows = [row({ host: "web-1" }), row({ host: "db-1", lost: 1, lost_by: { ring_full: 1, queue: 0 } }), row({ host: "db-2", last_seen: 0 })];
  const hosts = (text, ...only) => listAgents(rows, { only, not: [] }, text).map((r) => r.host).join(" ");
  assert.equal(hosts(""), "web-1 db-1 db-2");
  assert.equal(hosts("db"), "db-1 db-2");
  assert.equal(hosts("ring_full"), "db-1");
  assert.equal(hosts("queue"), "");
  assert.equal(hosts("silent DB"), "db-2");
  assert.equal(hosts("", "web-1"), "web-1");
  assert.equal(hosts("", "web-1", "db-2"), "web-1 db-2");
  assert.deepEqual(listAgents(rows, { only: [], not: ["db-1"] }, "").map(({ host }) => host), ["web-1", "db-2"]);
});

test("sums are of all agents listed", () => {
  const rows = [row({}), row({ version: "0.9", lost: 3 }), row({ last_seen: 0 })];
  assert.deepEqual(tallyOf(rows), { agents: 3, late: 1, taken: 3000, lost: 3, versions: [["1.0", 2], ["0.9", 1]] });
});
