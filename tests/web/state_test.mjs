// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import test from "node:test";
import { bundle } from "./bundle.mjs";

const { DEFAULTS, exactly, flameParameters, hasFilters, moduleParameters, narrowBase, narrowTo, noFilters, readState, sampleParameters, searchChange, selectorOf, topParameters, traceIdOf, treeParameters, writeState, zoomParameters } =
  await bundle("shell/state.ts");

const of = (changed) => ({ ...DEFAULTS, ...changed });

test("no address is the defaults, and the defaults need no address", () => {
  assert.deepEqual(readState(""), DEFAULTS);
  assert.deepEqual(readState("#"), DEFAULTS);
  assert.equal(writeState(DEFAULTS), "");
});

test("only what differs is in the address", () => {
  assert.equal(writeState(of({ process: "api", from: "now-2h" })), "#from=now-2h&process=api");
});

test("each key comes back from the address as it was written", () => {
  for (const key of Object.keys(DEFAULTS)) {
    for (const value of ["x", "a b+c&d=e#f%20", "\u202eüñ\n<b>", 'a"\\b', "1"]) {
      const state = of({ [key]: value });
      assert.deepEqual(readState(writeState(state)), state, `${key}=${value}`);
    }
  }
});

test("a choice of nothing differs from no choice", () => {
  assert.equal(DEFAULTS.group_by, "process");
  assert.equal(readState("#group_by=").group_by, "");
  assert.equal(readState(writeState(of({ group_by: "" }))).group_by, "");
});

test("what nobody knows, broken escapes and endless values are left alone", () => {
  assert.deepEqual(readState("#nonsense=1&__proto__=x&constructor=y&toString=z"), DEFAULTS);
  assert.equal(readState("#process=%E0%A4%A").process.length > 0, true);
  assert.equal(readState("#process=" + "x".repeat(16_384)).process.length, 16_384);
  assert.equal(readState("#process=" + "x".repeat(16_385)).process, "");
});

test("choices become one selector", () => {
  assert.equal(selectorOf(DEFAULTS), "");
  assert.equal(selectorOf(of({ process: "api", host: "web-1" })), '{process="api",host="web-1"}');
  assert.equal(selectorOf(of({ service: "s", match: ' {pod!="x"} ' })), '{service="s",pod!="x"}');
});

test("a value cannot leave its quotes", () => {
  assert.equal(selectorOf(of({ process: 'a",host="b' })), '{process="a\\",host=\\"b"}');
  assert.equal(selectorOf(of({ process: "a\\" })), '{process="a\\\\"}');
  assert.equal(selectorOf(of({ process: "a\nb" })), '{process="a\\nb"}');
});

test("questions hold what was chosen and nothing besides", () => {
  assert.deepEqual(sampleParameters(DEFAULTS), { type: "on-cpu", from: "now-1h", until: "now" });
  const chosen = of({ type: "off-cpu", hide: "^x$", value: "samples", process: "p" });
  assert.deepEqual(flameParameters(chosen), {
    type: "off-cpu", from: "now-1h", until: "now", match: '{process="p"}', hide: "^x$", value: "samples",
    idle: "fold", group_by: "process",
  });
  assert.equal(flameParameters({ ...chosen, idle: "show" }).idle, undefined);
  assert.equal(flameParameters(of({ max_nodes: "5000" })).max_nodes, "5000");
  assert.deepEqual(zoomParameters(of({ zoom: "a;b", invert: "1" })), { group_by: "process", root: "a;b", invert: "1" });
  assert.deepEqual(zoomParameters(of({ zoom: "a;b", recursion: "all" })), { group_by: "process", root: "a;b", recursion: "all" }, "a path of what is collapsed");
  assert.equal(topParameters(of({ recursion: "direct" })).recursion, "direct", "the table is of the frames that are shown");
  assert.equal("recursion" in treeParameters(of({ recursion: "nonsense" })), false);
  assert.deepEqual(moduleParameters(chosen), { type: "off-cpu", from: "now-1h", until: "now", match: '{process="p"}' });
});

test("what narrows is a filter, what only draws is none", () => {
  assert.equal(hasFilters(of({ search: "x", zoom: "y", view: "table", from: "now-5m" })), false);
  for (const key of ["process", "service", "host", "match", "focus", "ignore", "hide", "trace_id"]) {
    assert.equal(hasFilters(of({ [key]: "x" })), true, key);
    assert.equal(hasFilters({ ...of({ [key]: "x" }), ...noFilters() }), false, key);
  }
});

test("an exact expression finds its name and no other", () => {
  for (const name of ["operator()(int) const", "a.b*c+d?", "[k] x|y", "^$", "{a}\\", "std::vector<char>"]) {
    const expression = new RegExp(exactly(name));
    assert.equal(expression.test(name), true, name);
    assert.equal(expression.test(name + "x"), false, name);
    assert.equal(expression.test("x" + name), false, name);
  }
  assert.equal(new RegExp(exactly("a.b")).test("axb"), false);
});

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";

test("a trace's id is 32 hexadecimal digits, not all of them 0", () => {
  assert.equal(traceIdOf(` ${TRACE.toUpperCase()}\n`), TRACE);
  for (const none of ["", "0".repeat(32), TRACE.slice(1), TRACE + "0", "g" + TRACE.slice(1), `${TRACE}|${TRACE}`]) {
    assert.equal(traceIdOf(none), null, none);
    assert.deepEqual(searchChange(none), { search: none });
  }
  assert.deepEqual(searchChange(TRACE), { page: "graph", trace_id: TRACE, search: "", zoom: "" });
});

test("#trace= leads to a trace's stacks", () => {
  assert.deepEqual(readState(`#trace=${TRACE}&from=now-6h`), of({ page: "graph", trace_id: TRACE, from: "now-6h" }));
  assert.deepEqual(readState("#trace=nonsense"), DEFAULTS);
});

test("a trace selects samples; listings, which know none, are not asked for it", () => {
  assert.equal(sampleParameters(of({ trace_id: TRACE })).match, `{trace_id="${TRACE}"}`);
  assert.equal(sampleParameters(of({ trace_id: TRACE, host: "h" })).match, `{host="h",trace_id="${TRACE}"}`);
  assert.equal(sampleParameters(of({ trace_id: 'x",host="y' })).match, '{trace_id="x\\",host=\\"y"}');
  assert.equal(moduleParameters(of({ trace_id: TRACE })).match, undefined);
});

test("a row's labels narrow the choice, its odd ones by the selector", () => {
  assert.deepEqual(narrowTo(DEFAULTS, { process: "api", thread: 'a"b' }), { process: "api", match: 'thread="a\\"b"' });
  assert.deepEqual(narrowTo(of({ match: '{pod="x"}' }), { waker: "" }), { match: 'pod="x",waker=""' });
  assert.deepEqual(narrowTo(DEFAULTS, { service: "" }), { match: 'service=""' });
});

test("a comparison's other side is narrowed where it has a selector of its own", () => {
  assert.deepEqual(narrowBase(of({ process: "api" }), { process: "db" }), {}, "else it is as the first");
  assert.deepEqual(narrowBase(of({ base_match: ' {host="b"} ' }), { process: 'd"b' }), { base_match: '{host="b",process="d\\"b"}' });
  assert.deepEqual(narrowBase(of({ base_match: "{}" }), { process: "db" }), { base_match: '{process="db"}' });
});
