// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import test from "node:test";
import { bundle } from "./bundle.mjs";

const { contentsOf, isPicked, matchersIn, picksIn, withPicks } = await bundle("shell/selector.ts");
const { DEFAULTS, isOfHosts, narrowTo, pick, picksOf, readState, selectorOf, without, writeState } = await bundle("shell/state.ts");

const of = (changed) => ({ ...DEFAULTS, ...changed });
const ODD = ["a|b", 'a"b', "a\\b", "a.b*(c)+[d]{e}^$?", "", "\u202eü\n", "a,b", "{}", "x=~y", "\\|"];

test("matchers are read as the server reads them", () => {
  assert.deepEqual(matchersIn("").length, 0);
  const read = matchersIn(` {a="1", "http.route"=~'x\\'y',b!~\`\\d"\`, c != "\\\\\\n" ,} `);
  assert.deepEqual(read.map(({ label, op, value }) => [label, op, value]), [["a", "=", "1"], ["http.route", "=~", "x'y"], ["b", "!~", '\\d"'], ["c", "!=", "\\\n"]]);
  for (const broken of ['a="1', "a=1", 'a="1" b="2"', '="x"', 'a="\\x"', "a~'x'", 'a="1",,b="2"']) {
    assert.equal(matchersIn(broken), null, broken);
  }
});

test("what is picked comes back, whatever it is called", () => {
  const cases = [...ODD.map((value) => [[value], []]), ...ODD.map((value) => [[], [value]]), [ODD, []], [[], ODD], [["a"], ["b", ""]]];
  for (const [only, not] of cases) {
    const text = withPicks('pod=~"x.*"', "process", { only, not });
    assert.deepEqual(picksIn(text, "process"), { only, not }, text);
    assert.deepEqual(contentsOf(text), { labels: ["process"], others: ['pod=~"x.*"'] }, text);
    assert.equal(withPicks(text, "process", { only: [], not: [] }), 'pod=~"x.*"', "and goes without a trace");
  }
});

test("several are one regular expression, which matches these and no others", () => {
  const text = withPicks("", "process", { only: ODD, not: [] });
  const pattern = new RegExp(`^(?:${matchersIn(text)[0].value})$`);
  ODD.forEach((value) => assert.equal(pattern.test(value), true, value));
  ["a", "b", "axb", "x"].forEach((value) => assert.equal(pattern.test(value), false, value));
});

test("what somebody wrote stays as it was written", () => {
  for (const written of ['process=~"web.*"', "process!~`db\\d+`", 'host = "a"', 'broken="']) {
    const text = withPicks(written, "process", { only: ["a", "b"], not: ["c"] });
    assert.ok(text.startsWith(written + ","), text);
  }
  assert.deepEqual(picksIn('process=~"web.*"', "process"), { only: [], not: [] });
  assert.deepEqual(contentsOf('process=~"web.*",broken='), { labels: [], others: ['process=~"web.*",broken='] });
});

test("one value has the address that it always had", () => {
  assert.deepEqual(pick(DEFAULTS, "process", { only: ["api"], not: [] }), { process: "api", match: "" });
  assert.deepEqual(picksOf(readState("#process=api"), "process"), { only: ["api"], not: [] });
  assert.deepEqual(pick(of({ process: "api" }), "process", { only: [], not: ["api"] }), { process: "", match: 'process!="api"' });
  assert.deepEqual(pick(of({ match: 'process=~"a|b"' }), "process", { only: ["b"], not: [] }), { process: "b", match: "" });
  assert.deepEqual(pick(DEFAULTS, "pid", { only: ["1"], not: [] }), { match: 'pid="1"' });
  assert.deepEqual(pick(DEFAULTS, "service", { only: [""], not: [] }), { service: "", match: 'service=""' }, "none is a value too");
});

test("picks survive the address", () => {
  const chosen = of({ ...pick(of({ host: "h" }), "process", { only: ODD, not: ["z"] }) });
  assert.deepEqual(picksOf(readState(writeState(chosen)), "process"), { only: ODD, not: ["z"] });
});

test("a row's label takes the place of what was picked of it", () => {
  const several = of({ match: 'process=~"a|b",pod="x",process!="c"' });
  assert.deepEqual(narrowTo(several, { process: "a" }), { process: "a", match: 'pod="x"' });
  assert.deepEqual(narrowTo(of({ match: 'pid=~"1|2"' }), { pid: "1" }), { match: 'pid="1"' });
});

test("labels are taken out of a choice", () => {
  const state = of({ process: "a", match: 'pid!="3",service!="s",host="h"' });
  assert.equal(selectorOf(without(state, ["process", "pid", "service"])), '{host="h"}');
});

test("losses are of hosts, however these were chosen", () => {
  assert.equal(isOfHosts(of({ host: "a" })), true);
  assert.equal(isOfHosts(of({ match: 'host=~"a|b",host!="c"' })), true);
  assert.equal(isOfHosts(of({ match: 'host="a",pod="p"' })), false);
  assert.equal(isOfHosts(of({ match: "host=" })), false, "who knows");
});

test("picked is what is ticked, or all, without what is not wanted", () => {
  assert.equal(isPicked({ only: [], not: [] }, "a"), true);
  assert.equal(isPicked({ only: ["b"], not: [] }, "a"), false);
  assert.equal(isPicked({ only: [], not: ["a"] }, "a"), false);
});
