// SPDX-License-Identifier: Apache-2.0
// Answers of /diff written for tests of the page: each verdict that a row can have.

import { accounting, Columns, KINDS, MODULES, NS_PER_SAMPLE } from "./fake_answers.mjs";

const MINUTE = 60_000;

// name, samples before, after, recorded, sustained, 95 % interval
const FUNCTIONS = [
  ["burst", 0, 900, true, "no", [40, null]],
  ["grown", 1000, 1600, true, "yes", [0.4, 0.8]],
  ["retired", 500, 0, true, "yes", [null, -0.97]],
  ["busy", 9000, 9200, false, "no", [-0.1, 0.15]],
  ["rare", 60, 75, false, "no", [-0.2, 0.9]],
  ["fresh", 0, 4, false, "no", [null, null]],
  ["steady", 800, 800, false, "no", [-0.1, 0.1]],
];
const PROCESSES = [
  ["api-server", 9500, 11_000, true, "yes", [0.1, 0.2]],
  ["cron", 0, 900, true, "no", [40, null]],
  ["old-worker", 500, 0, true, "yes", [null, -0.97]],
  ["p4", 60, 75, false, "no", [-0.2, 0.9]], ["p5", 60, 74, false, "no", [-0.2, 0.9]],
  ["p6", 60, 73, false, "no", [-0.2, 0.9]], ["p7", 60, 72, false, "no", [-0.2, 0.9]],
];

function row([name, base_samples, samples, recorded, sustained, [ci_low, ci_high]], perSample, isShort) {
  const state = base_samples === samples ? "same" : base_samples === 0 ? "new" : samples === 0 ? "gone" : "changed";
  return {
    name, before: base_samples * perSample, after: samples * perSample, samples, base_samples, ci_low, ci_high,
    change: base_samples === 0 ? null : samples / base_samples - 1, state, recorded, sustained: isShort ? "too short" : sustained,
  };
}

// The largest change first, whatever is thought of it.
const bySize = (rows) => rows.sort((a, b) => Math.abs(b.after - b.before) - Math.abs(a.after - a.before));

// isShort: of two minutes, with a base that the server had to move.
export function diffAnswer(isShort = false) {
  const columns = new Columns();
  const base = { self: [], total: [] };
  const add = (name, before, after, parent, own) => {
    base.total.push(before * NS_PER_SAMPLE);
    base.self.push(own ? before * NS_PER_SAMPLE : 0);
    return columns.add({ name, module: 0, file: "a.c", line: 1, kind: own ? "native" : parent < 0 ? "root" : "group",
      self: own ? after * NS_PER_SAMPLE : 0, total: after * NS_PER_SAMPLE, parent });
  };
  const sum = (at) => FUNCTIONS.reduce((all, f) => all + f[at], 0);
  const group = add("api-server", sum(1), sum(2), add("all", sum(1), sum(2), -1, false), false);
  [...FUNCTIONS].sort((a, b) => b[2] - a[2]).forEach(([name, before, after]) => add(name, before, after, group, true));
  const minutes = isShort ? 2 : 10;
  const side = (at) => accounting({ value: sum(at) * NS_PER_SAMPLE, samples: sum(at), taken: sum(at) });
  const answer = columns.answer(side(2));
  const from = answer.until - minutes * MINUTE;
  const perSample = NS_PER_SAMPLE / (minutes * 60);
  const rows = (table) => bySize(table.map((known) => row(known, perSample, isShort)));
  return {
    ...answer, from, norm: "per_second", scale: 1, sort: "self", kinds: KINDS,
    base: { type: "on-cpu", from: from - minutes * MINUTE, until: from, moved: isShort, accounting: side(1) },
    nodes: { ...answer.nodes, base_self: base.self, base_total: base.total },
    statistics: { minutes, base_minutes: minutes, hosts: 2, tested: 6, recorded: 3, sustained: isShort ? null : 2, too_short: isShort, effective: 1 },
    processes: rows(PROCESSES), processes_left_out: 0,
    functions: rows(FUNCTIONS).map((f) => ({ ...f, file: "a.c", line: 1, module: MODULES[0].name, build_id: MODULES[0].build_id })),
    functions_left_out: 12,
    hosts_joined: [{ host: "web-3", value: 0.9e9 }], hosts_left: [],
  };
}
