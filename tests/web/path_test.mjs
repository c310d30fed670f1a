// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import test from "node:test";
import { bundle } from "./bundle.mjs";

const { joinPath, splitPath } = await bundle("graph/path.ts");

test("names are joined by ';'", () => {
  assert.equal(joinPath(["api", "main", "run()"]), "api;main;run()");
  assert.deepEqual(splitPath("api;main;run()"), ["api", "main", "run()"]);
});

test("the root is the empty text", () => {
  assert.equal(joinPath([]), "");
  assert.deepEqual(splitPath(""), []);
});

test("names with ';' and '\\' come back as they were", () => {
  for (const names of [
    ["worker;odd\\name", "spin"],
    ["\\"],
    ["\\\\;"],
    [";;", "a\\", ";b"],
    ["a", "", "b"],
    ["\u202ereversed", "<script>", "a\nb", "\ud800"],
  ]) {
    assert.deepEqual(splitPath(joinPath(names)), names);
  }
});

test("the text is the one that the API takes: '\\' before ';' and '\\' only", () => {
  assert.equal(joinPath(["a;b", "c\\d"]), "a\\;b;c\\\\d");
});

test("a '\\' that protects nothing stays, and so does a last one", () => {
  assert.deepEqual(splitPath("a\\b;c\\"), ["a\\b", "c\\"]);
});

test("ends of ';' are names without letters", () => {
  assert.deepEqual(splitPath(";a;"), ["", "a", ""]);
});
