// SPDX-License-Identifier: Apache-2.0
// Sandwich, table and legend without a browser.

import assert from "node:assert/strict";
import test from "node:test";
import { bundle } from "./bundle.mjs";
import { answerOf, tree } from "./trees.mjs";

const { neighbours, sandwichOf, withoutRoot } = await bundle("views/flame/sandwich_trees.ts");
const { rowWindow, scrollTo } = await bundle("widgets/virtual_window.ts");
const { rowsOf, wanted, keyOf, ownerOf } = await bundle("views/flame/function_rows.ts");
const { legendMenu } = await bundle("views/flame/legend_menu.ts");
const { functionsBySelf, kindsBySelf, modulesBySelf } = await bundle("views/flame/frame_sums.ts");
const { languageOf } = await bundle("views/flame/languages.ts");
const { languageColouring, languageIn, legendOf } = await bundle("views/flame/frame_colours.ts");
const { detailRows } = await bundle("graph/details.ts");
const { treeItems } = await bundle("views/flame/frame_tree.ts");
const { whyUnknown } = await bundle("views/flame/why_unknown.ts");
const { Graph } = await bundle("graph/graph.ts");
const { DEFAULTS } = await bundle("shell/state.ts");

const sandwich = (callers, callees) => ({
  type: "on-cpu", unit: "nanoseconds", from: 0, until: 1, function: "f", total: 9, total_samples: 9, functions: [],
  callers: { ...answerOf(callers), cut: 0 }, callees: { ...answerOf(callees), cut: 0 }, accounting: { value: 20 },
});

test("the function is the root of both trees, its neighbours below", () => {
  const f = (callees) => tree("all", 0, [tree("f", 2, callees)], "root");
  const { callers, callees } = sandwichOf(sandwich(f([tree("a", 3), tree("b", 4, [tree("main", 0)])]), f([tree("x", 7)])));
  assert.deepEqual([callers.nameOf(0), callers.total[0], callers.count], ["f", 9, 4]);
  assert.deepEqual(neighbours(callers).map(({ name, value }) => [name, value]), [["b", 4], ["a", 3]]);
  assert.deepEqual(neighbours(callees).map(({ name, value }) => [name, value]), [["x", 7]]);
  assert.deepEqual(callers.pathOf(callers.find(["b", "main"])), ["b", "main"]);
});

test("functions of one name in several modules stay beside each other", () => {
  const nodes = answerOf(tree("all", 0, [tree("f", 2), tree("f", 3)], "root")).nodes;
  assert.equal(withoutRoot(nodes), nodes);
  const none = answerOf(tree("all", 0, [], "root")).nodes;
  assert.equal(withoutRoot(none), none);
});

test("rows on the screen, and some beside it", () => {
  assert.deepEqual(rowWindow(0, 100, 25, 1000, 2), { first: 0, end: 6 });
  assert.deepEqual(rowWindow(1000, 100, 25, 1000, 2), { first: 38, end: 46 });
  assert.deepEqual(rowWindow(25_000, 100, 25, 1000, 2), { first: 998, end: 1000 });
  assert.deepEqual(rowWindow(0, 100, 25, 0, 2), { first: 0, end: 0 });
  assert.deepEqual(rowWindow(90_000, 100, 25, 3, 2), { first: 3, end: 3 });
  assert.equal(scrollTo(2, 100, 100, 25, 30), 50);
  assert.equal(scrollTo(10, 100, 100, 25, 30), 205);
  assert.equal(scrollTo(4, 100, 100, 25, 0), 100);
});

test("the table's rows: filtered, sorted, unfolded", () => {
  const f = (name, self, total, module = "m") => ({ name, self, total, module, file: "", line: 0, build_id: "" });
  const all = [f("b", 1, 9), f("a", 5, 5, "libc.so"), f("C", 3, 7)];
  assert.deepEqual(wanted(all, "", "self", false).map(({ name }) => name), ["a", "C", "b"]);
  assert.deepEqual(wanted(all, "", "total", false).map(({ name }) => name), ["b", "C", "a"]);
  assert.deepEqual(wanted(all, "LIBC", "name", true).map(({ name }) => name), ["a"]);
  const init = { name: "__init__", module: "", file: "/srv/a.py" };
  assert.deepEqual([ownerOf(init), ownerOf({ ...init, file: "a.py" }), ownerOf({ ...init, module: "x.so" }), ownerOf({ module: "" })], ["a.py", "a.py", "x.so", ""]);
  assert.deepEqual(wanted([init], "A.PY", "name", true), [init], "a file is found where there is no module");
  const callers = Array.from({ length: 12 }, (_, i) => ({ name: `c${i}`, module: "", value: 12 - i }));
  const rows = rowsOf(all, new Map([[keyOf(all[0]), callers], [keyOf(all[1]), "Loading…"]]));
  assert.deepEqual(rows.map(({ kind }) => kind).join(" "), `function ${"caller ".repeat(10)}text function text function`);
});

test("the legend's menu writes filters of the API", () => {
  const changes = [];
  const pick = (name, by, state, text) => {
    const item = legendMenu(name, by, { ...DEFAULTS, ...state }, (change) => changes.push(change)).find((one) => one.text.startsWith(text));
    item?.run();
    return item === undefined ? null : changes.at(-1);
  };
  assert.deepEqual(pick("kernel", "kind", { hide_kind: "gpu" }, "Without"), { hide_kind: "gpu,kernel", zoom: "" });
  assert.deepEqual(pick("kernel", "kind", {}, "Only"), { hide_kind: "native,inline,interpreter,jit,gpu,runtime,unresolved", zoom: "" });
  assert.deepEqual(pick("libc.so.6", "module", {}, "Only"), { only_module: "^libc\\.so\\.6$", zoom: "" });
  assert.deepEqual(pick("a", "module", { hide_module: "(x|y)" }, "Without"), { hide_module: "(x|y)|^a$", zoom: "" });
  assert.equal(pick("incomplete", "kind", {}, "Without"), null);
  assert.equal(pick("C", "language", {}, "Only"), null);
  const items = legendMenu("C++", "language", DEFAULTS, (change) => changes.push(change), ["a.so", "b"]);
  items.find(({ text }) => text === "Only modules mostly in C++").run();
  assert.deepEqual(changes.at(-1), { only_module: "^a\\.so$|^b$", zoom: "" });
  assert.deepEqual(legendMenu("C++", "language", DEFAULTS, () => undefined, ["x".repeat(1000)]), [], "too long for the API");
});

test("a language that the sender told counts before one that is guessed", () => {
  const answer = answerOf(tree("all", 0, [tree("f", 1, [tree("g", 2, [], "interpreter")]), tree("h", 3)], "root"));
  answer.languages = { [answer.nodes.name[2]]: "Ruby" };
  answer.files = ["x.py"];
  answer.accounting = {};
  answer.nodes.file = answer.nodes.name.map(() => 0);
  assert.deepEqual([1, 2, 3].map((row) => languageIn(answer, row)), ["Python", "Ruby", "Python"]);
  const graph = new Graph(answer);
  const [f, g] = [graph.find(["f"]), graph.find(["f", "g"])];
  assert.deepEqual([graph.languageOf(f), graph.languageOf(g)], [undefined, "Ruby"]);
  const colour = languageColouring(false);
  assert.notEqual(colour(graph, f).split(",")[0], colour(graph, g).split(",")[0]);
  assert.ok(detailRows(graph, g).some(([term, text]) => term === "language" && text === "Ruby"));
  const part = (name, value) => ({ name: `n${value}`, file: "x.py", kind: "native", self: value, ...name });
  const sums = { functions: [part({ language: "Ruby" }, 5), part({}, 2)], own: { kinds: {}, modules: [] }, accounting: { value: 7 } };
  assert.deepEqual(legendOf(sums, "language", false, new Map()).map(({ name, value }) => [name, value]), [["Ruby", 5], ["Python", 2]]);
});

test("languages by file, else by name", () => {
  const cases = [
    ["native", "src/a.cc", "f", "C++"], ["native", "a.c", "f", "C"], ["inline", "vec.h", "std::vector::size", "C++"],
    ["kernel", "fs/read.c", "vfs_read", "Kernel"], ["interpreter", "app.py", "run", "Python"], ["native", "", "core::fmt::write", "Rust"],
    ["native", "", "<alloc::vec::Vec<T> as core::ops::Drop>::drop", "Rust"], ["native", "", "runtime.mallocgc", "Go"],
    ["native", "", "main.(*server).serve", "Go"], ["native", "", "ns::f", "C++"], ["native", "", "malloc", ""], ["group", "", "nginx", ""],
    ["native", "x.constructor", "f", ""],
  ];
  assert.deepEqual(cases.filter(([kind, file, name, want]) => languageOf(kind, file, name) !== want), []);
});

test("the tree for screen readers: the way, then callees by weight", () => {
  const graph = new Graph(answerOf(tree("all", 0, [tree("a", 1, [tree("x", 1), tree("y", 5, [tree("z", 1)])]), tree("b", 2)], "root")));
  const items = treeItems(graph, graph.find(["a"]));
  assert.deepEqual(items.map(({ level, position, siblings, expanded, text }) => [text.split(",")[0], level, position, siblings, expanded]), [
    ["all", 1, 1, 1, true], ["a", 2, 1, 2, true], ["y", 3, 2, 2, false], ["x", 3, 1, 2, null],
  ]);
  assert.equal(treeItems(graph, -1)[0].text.split(",")[0], "all");
});

test("why a frame has no name", () => {
  const answer = answerOf(tree("all", 0, [tree("lib+0x1", 1, [], "unresolved"), tree("[incomplete: no frame pointers]", 1, [], "incomplete")], "root"));
  answer.modules = [{ name: "lib", build_id: "ab" }];
  answer.nodes.module[1] = 0;
  answer.accounting = { incomplete_by: [{ reason: "no frame pointers", samples: 10, modules: [{ name: "libssl", build_id: "", samples: 5 }] }] };
  const graph = new Graph(answer);
  const state = { build_id: "ab", state: "missing", reason: "asked 3 sources" };
  assert.equal(whyUnknown(graph, 1, [state]), "no source has its names: asked 3 sources");
  assert.equal(whyUnknown(graph, 1, null), "");
  assert.match(whyUnknown(graph, 2, null), /stopped in libssl 50.0 %/);
  answer.nodes.module[1] = -1;
  assert.match(whyUnknown(graph, 1, []), /made at run time/);
  assert.equal(whyUnknown(graph, 0, null), "");
});

test("what samples are made of, by their frames' own value, listed or not", () => {
  const modules = [{ name: "x", build_id: "1", value: 3 }, { name: "", build_id: "2", value: 2 }, { name: "x", build_id: "3", value: 1 }];
  const functions = [{ name: "a", self: 3 }, { name: "b", self: 0 }, { name: "c", self: 2 }];
  const top = { own: { kinds: { kernel: 4, native: 6, incomplete: 1 }, modules }, functions, accounting: { value: 11 } };
  assert.deepEqual(kindsBySelf(top), [{ name: "native", value: 6 }, { name: "kernel", value: 4 }, { name: "incomplete", value: 1 }]);
  assert.deepEqual(modulesBySelf(top), [{ name: "x", value: 4 }]);
  const byName = functionsBySelf(top, ({ name }) => (name === "b" ? "" : name), "others");
  assert.deepEqual(byName, [{ name: "others", value: 5 }, { name: "a", value: 3 }, { name: "c", value: 2 }]);
});
