// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import test from "node:test";
import { bundle } from "./bundle.mjs";

const { alternatives, isOn, presetNames, PRESETS, toggled } = await bundle("views/flame/frame_presets.ts");
const { DEFAULTS, exactly, plain } = await bundle("shell/state.ts");

const preset = (name) => PRESETS.find((one) => one.name === name);

test("alternatives are those outside of parentheses and classes", () => {
  assert.deepEqual(alternatives("a|(b|c)|d[|(]e|f\\|g|\\(h"), ["a", "(b|c)", "d[|(]e", "f\\|g", "\\(h"]);
  assert.deepEqual(alternatives(""), []);
});

test("on, and off again, whatever else is hidden", () => {
  for (const one of PRESETS) {
    const before = { ...DEFAULTS, hide: "^mine$|a(b|c)", hide_kind: "gpu", hide_module: "^own" };
    assert.equal(isOn(before, one), false);
    const on = { ...before, ...toggled(before, one, true) };
    assert.equal(isOn(on, one), true, one.name);
    assert.deepEqual({ ...on, ...toggled(on, one, true) }, on, "twice is once");
    assert.deepEqual({ ...on, ...toggled(on, one, false) }, before);
  }
});

test("all together fit into what the API takes", () => {
  let state = { ...DEFAULTS };
  PRESETS.forEach((one) => (state = { ...state, ...toggled(state, one, true) }));
  assert.ok(PRESETS.every((one) => isOn(state, one)));
  for (const key of ["hide", "hide_kind", "hide_module"]) {
    assert.ok(state[key].length <= 1024, `${key}: ${state[key].length}`);
    assert.doesNotThrow(() => new RegExp(state[key]));
    assert.doesNotMatch(state[key], /\(\?/, "RE2 has no such groups");
  }
  assert.deepEqual(presetNames("hide_kind", state.hide_kind), { names: ["Kernel", "Inlined functions"], rest: [] });
});

test("what they match, and what they do not", () => {
  const cases = {
    libc: ["hide_module", ["libc.so.6", "libc-2.31.so", "libm.so.6", "libpthread-2.31.so", "ld-linux-x86-64.so.2", "ld-musl-x86_64.so.1"],
      ["libcrypto.so.3", "libcurl.so.4", "libmysql.so", "app", "libc++.so.1"]],
    allocator: ["hide", ["malloc", "__libc_malloc", "_int_malloc", "free", "operator new(unsigned long)", "je_malloc", "mi_free", "__rust_alloc"],
      ["my_malloc_wrapper", "freeze", "Parser::free_all", "operator==(A, B)", "mallocator"]],
    interpreter: ["hide_module", ["python3.11", "libpython3.11.so.1.0", "node", "libjvm.so", "ruby", "perl"],
      ["python_app", "libnodejob.so", "rubyfrontend", "libssl.so.3"]],
    gc: ["hide", ["runtime.gcBgMarkWorker", "runtime.scanobject", "runtime.(*sweepLocked).sweep", "G1ParScanThreadState_Evac", "v8::internal::Scavenger::Process", "_PyGC_Collect", "gc_collect_main"],
      ["runtime.mallocgc", "runtime.main", "main.gcd", "v8::internal::Compiler::Compile", "scan"]],
  };
  for (const [name, [key, yes, no]] of Object.entries(cases)) {
    const pattern = new RegExp(preset(name).filters[key]);
    assert.deepEqual(yes.filter((text) => !pattern.test(text)), [], `${name} is said to match`);
    assert.deepEqual(no.filter((text) => pattern.test(text)), [], `${name} is said not to match`);
  }
});

test("an expression for one text is shown as that text", () => {
  for (const text of ["main", "operator()(int)", "a|b", "C:\\x", "^", ""]) {
    assert.equal(plain(exactly(text)), text);
  }
  assert.equal(plain("^a.*"), "^a.*");
  assert.equal(plain("a|b"), "a|b");
});
