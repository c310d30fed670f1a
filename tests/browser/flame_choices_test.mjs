// SPDX-License-Identifier: Apache-2.0
// What the flame graph offers beside looking: sandwich, frames left out, recursion, leaves first, pinned
// details, zoom by wheel and keys, a table of ten thousand functions; in a real browser, on answers written
// for these tests.

import { Columns, accounting, NS_PER_SAMPLE, scene, topOf } from "./fake_answers.mjs";
import { check, equal, fake, openPage, run } from "./page.mjs";

const server = await fake();
const page = await openPage(server.url);
const GRAPH = { page: "graph" };

const last = (resource, ...keys) => {
  const asked = server.questions(resource).at(-1) ?? {};
  return Object.fromEntries(keys.map((key) => [key, asked[key]]));
};

async function zoomEnds(path, text) {
  check(await page.wait(`document.body.dataset.zoom?.endsWith(${JSON.stringify(path)})`), text, await page.data("zoom"));
}

async function state(key) {
  return new URLSearchParams((await page.run("location.hash")).slice(1)).get(key) ?? "";
}

async function shown(change) {
  const before = Number(await page.data("settled"));
  await change();
  return page.wait(`document.body.dataset.settled > ${before}`);
}

async function sandwich() {
  await page.open(GRAPH);
  await page.point(6, 0.45, "right");
  await shown(() => page.page.getByRole("menuitem", { name: "Sandwich" }).click());
  equal(await page.data("sandwich"), "malloc", "the menu leads to callers and callees");
  equal(last("sandwich", "function"), { function: "malloc" }, "asked of the server");
  check(await page.waitText(".sandwich-head", "total 980 ms · 9.55 %"), "with the function's total", await page.text(".sandwich-head"));
  check(await page.waitText(".sandwich-head", "self 313 ms · 3.05 %"), "and its own");
  equal(await state("sandwich"), "malloc", "it is in the address");
  await page.axe("sandwich");
  await page.page.focus("#callees-scroller");
  await page.key("ArrowDown");
  await page.key("ArrowDown");
  equal(await page.data("selected"), "_int_malloc", "down: a callee");
  await page.key("ArrowUp");
  await page.key("ArrowUp");
  await page.key("ArrowUp");
  equal(await page.data("selected"), "server::Connection::on_readable(server::Buffer const&)", "up past the function: its caller");
  await page.key("Enter");
  await page.key("Escape");
  equal(await state("sandwich"), "malloc", "Escape first ends a zoom");
  await shown(() => page.key("Escape"));
  equal(await state("sandwich"), "", "then leaves");
  await page.page.goBack();
  check(await page.wait("document.body.dataset.sandwich === 'malloc'"), "Back is there again");
  await page.open({ ...GRAPH, sandwich: "no such function" });
  check(await page.waitText(".sandwich-head", "No stack of this choice"), "a function that nobody calls is said to be none");
  page.quiet("sandwich");
}

async function left_out() {
  await page.open(GRAPH);
  await page.click("#hiding summary");
  await shown(() => page.click("#hide-kernel"));
  equal(last("flamegraph", "hide_kind"), { hide_kind: "kernel" }, "a preset asks the graph without the kernel");
  equal(last("top", "hide_kind"), { hide_kind: "kernel" }, "and the table");
  await shown(() => page.click("#hide-allocator"));
  check(/malloc/.test(last("flamegraph", "hide").hide) && /jemalloc/.test(last("flamegraph", "hide_module").hide_module), "presets add up");
  check(await page.waitText("#filters", "without Kernel"), "what is left out is said", await page.text("#filters"));
  await page.shot("presets");
  await page.axe("presets");
  await shown(() => page.click("#hide-allocator"));
  equal(last("flamegraph", "hide", "hide_module"), { hide: undefined, hide_module: undefined }, "and taken back");
  await page.key("Escape");
  await page.set("#colour", "module");
  await page.click("#legend button:has-text('libc.so.6')");
  await shown(() => page.page.getByRole("menuitem", { name: "Only these" }).click());
  equal(last("flamegraph", "only_module"), { only_module: "^libc\\.so\\.6$" }, "the legend: only one module");
  equal(await page.run("document.getElementById('only-module').value"), "libc.so.6", "as the choice says too");
  await shown(() => page.click("#filters button:has-text('only frames of libc')"));
  equal(last("flamegraph", "only_module", "hide_kind"), { only_module: undefined, hide_kind: "kernel" }, "a click on its chip ends it");
  await page.open({ ...GRAPH, colour: "language" });
  await page.click("#legend button:has-text('C++')");
  await shown(() => page.page.getByRole("menuitem", { name: "Only modules mostly in C++" }).click());
  check(last("flamegraph", "only_module").only_module.includes("^api-server$"), "by language: modules mostly in it", last("flamegraph", "only_module"));
  page.quiet("left out");
}

// Interpreters' own frames are left out unless somebody wants them.
async function interpreters_own() {
  await page.open(GRAPH);
  const checked = () => page.run("document.getElementById('hide-runtime').checked");
  equal([await checked(), last("flamegraph", "hide_runtime").hide_runtime], [true, undefined], "an interpreter's own frames are left out, as the server does unasked");
  await page.click("#hiding summary");
  await shown(() => page.click("#hide-runtime"));
  equal([await checked(), await state("hide_runtime")], [false, "false"], "a switch shows them");
  const asked = ["flamegraph", "top"].map((resource) => last(resource, "hide_runtime").hide_runtime);
  equal(asked, ["false", "false"], "in the graph and in the table");
  check(await page.waitText("#filters", "with interpreters’ own frames"), "which is said", await page.text("#filters"));
  await page.axe("interpreters' own frames");
  await page.open({ ...GRAPH, hide_runtime: "false", sandwich: "malloc" });
  equal([last("sandwich", "hide_runtime").hide_runtime, await checked()], ["false", false], "a link has them, in callers and callees too");
  await page.open({ ...GRAPH, hide_runtime: "false" });
  await shown(() => page.click("#filters button:has-text('own frames')"));
  equal([await checked(), last("flamegraph", "hide_runtime").hide_runtime], [true, undefined], "its chip takes them away again");
  page.quiet("interpreters' own frames");
}

async function overloads() {
  await page.open(GRAPH);
  const pressed = () => page.run("document.getElementById('join-overloads').getAttribute('aria-pressed')");
  equal([await pressed(), last("flamegraph", "collapse").collapse], ["false", undefined], "overloads are apart");
  await shown(() => page.click("#join-overloads"));
  equal([await pressed(), await state("collapse")], ["true", "name"], "a switch joins them");
  equal([last("flamegraph", "collapse"), last("top", "collapse")], [{ collapse: "name" }, { collapse: "name" }], "in the graph and in the table");
  check(await page.waitText("#filters", "overloads joined"), "which is said", await page.text("#filters"));
  await page.open({ ...GRAPH, collapse: "name", sandwich: "malloc" });
  equal(last("sandwich", "collapse"), { collapse: "name" }, "in callers and callees too");
  await page.open({ ...GRAPH, collapse: "name" });
  await shown(() => page.click("#filters button:has-text('overloads joined')"));
  equal([await pressed(), last("flamegraph", "collapse").collapse], ["false", undefined], "its chip parts them again");
  page.quiet("overloads");
}

// f → f → f → h → g, or its f as one.
function recursive({ recursion }) {
  const columns = new Columns();
  const add = (name, parent, self, total, kind = "native") =>
    columns.add({ name, parent, self: self * NS_PER_SAMPLE, total: total * NS_PER_SAMPLE, kind, module: kind === "native" ? 0 : -1 });
  add("all", -1, 0, 10, "root");
  const job = add("job", 0, 0, 10, "group");
  const inner = recursion === "direct" ? add("f", job, 4, 10) : add("f", add("f", add("f", job, 1, 10), 2, 9), 1, 7);
  add("g", add("h", inner, 0, 6), 6, 6);
  return columns.answer(accounting({ value: 10 * NS_PER_SAMPLE, samples: 10 }));
}

async function shapes() {
  await page.open(GRAPH);
  await shown(() => page.key("v"));
  equal(last("flamegraph", "invert"), { invert: "1" }, "v asks for leaves first");
  equal(await page.run("document.getElementById('invert').getAttribute('aria-pressed')"), "true", "its button says so");
  server.answers["/api/v1/flamegraph"] = recursive;
  await page.open(GRAPH);
  const items = () => page.texts("#flame-scroller [role=treeitem]");
  await page.key("ArrowDown");
  for (let i = 0; i < 4; i++) {
    await page.key("ArrowDown");
  }
  equal((await items()).map((text) => text.split(",")[0]), ["all", "job", "f", "f", "f", "h"], "recursion as it is");
  await page.key("k");
  check(await page.wait("location.hash.includes('recursion=direct') && document.body.dataset.shown === '2'"), "k collapses it");
  await page.key("Home");
  await page.key("ArrowDown");
  await page.key("ArrowDown");
  await page.key("ArrowDown");
  equal((await items()).map((text) => text.split(",")[0]), ["all", "job", "f", "h"], "into one frame");
  check((await items())[2].includes("40.0 % self"), "that has all of its own", (await items())[2]);
  equal([last("flamegraph", "recursion"), last("top", "recursion")], [{ recursion: "direct" }, { recursion: "direct" }], "as the server has it, in graph and table");
  check(last("flamegraph", "min_share").min_share > 0, "of as much as the screen can show", last("flamegraph", "min_share", "max_nodes"));
  delete server.answers["/api/v1/flamegraph"];
  await page.open({ ...GRAPH, service: "cut", recursion: "all" });
  server.asked.length = 0;
  await page.point(3, 0.3, "left");
  check(await page.wait("document.body.dataset.detail === '6'"), "what is cut comes when one zooms, also where recursion is collapsed", await page.data("zoom"));
  equal(last("flamegraph", "recursion", "root"), { recursion: "all", root: "job;outer;wide" }, "asked by the path of what is shown");
  page.quiet("shapes");
}

async function zoom() {
  await page.open(GRAPH);
  const box = await page.page.locator("#flame-canvas").boundingBox();
  const wheel = async (delta) => {
    await page.page.keyboard.down("Control");
    await page.page.mouse.wheel(0, delta);
    await page.page.keyboard.up("Control");
    await page.page.waitForTimeout(200);
  };
  await page.mouse(box.x + box.width * 0.9, box.y + 19 * 3 + 9);
  await page.mouse(box.x + box.width * 0.05, box.y + 19 * 7 + 9);
  await wheel(-100);
  await zoomEnds("api-server", "Ctrl and the wheel zoom one step towards the pointer");
  await wheel(-100);
  await zoomEnds("_start", "and another");
  await wheel(100);
  await zoomEnds("api-server", "and out");
  await page.page.mouse.wheel(0, 100);
  await page.page.waitForTimeout(100);
  await zoomEnds("api-server", "the wheel alone does not zoom");
  await page.open(GRAPH);
  await page.key("+");
  await zoomEnds("api-server", "+ zooms in");
  await page.key("w");
  await zoomEnds("_start", "so does w");
  await page.key("-");
  await zoomEnds("api-server", "- zooms out");
  page.quiet("zoom");
}

async function details() {
  await page.open(GRAPH);
  await page.point(6, 0.53, "right");
  await page.key("Escape");
  await page.key("i");
  check(await page.waitText("#frame-strip.pinned", "no source has its names: no source has it"), "i pins details, which say why there is no name",
    await page.text("#frame-strip"));
  check((await page.text("#frame-strip")).includes("about 58"), "and how many samples it stands for", await page.text("#frame-strip"));
  await page.page.focus("#flame-scroller");
  await page.key("ArrowUp");
  check((await page.text("#frame-strip")).startsWith("libstripped.so+0x1a2b3c"), "they stay when the selection moves");
  await page.key("Escape");
  check((await page.text("#frame-strip")).startsWith("server::Connection"), "Escape lets them go", await page.text("#frame-strip"));
  await page.click("#frame-strip .quiet, #frame-strip dt");
  check(await page.wait("document.querySelector('#frame-strip.pinned') !== null"), "a click in them pins them");
  const pinned = await page.text("#frame-strip .frame-name");
  check((await state("pinned")).length > 0, "the address has the pinned frame", await page.run("location.hash"));
  await page.page.reload();
  check(await page.waitText("#frame-strip.pinned .frame-name", pinned), "after a reload it is pinned again", await page.text("#frame-strip"));
  await page.key("Escape");
  equal(await state("pinned"), "", "let go: no longer");
  page.quiet("details");
}

async function reader() {
  await page.open(GRAPH);
  for (let i = 0; i < 4; i++) {
    await page.key("ArrowDown");
  }
  const active = await page.run(`(() => {
    const tree = document.getElementById("flame-scroller");
    const item = document.getElementById(tree.getAttribute("aria-activedescendant"));
    return [tree.getAttribute("role"), item.getAttribute("aria-level"), item.getAttribute("aria-expanded"), item.textContent.split(",")[0]];
  })()`);
  equal(active, ["tree", "4", "true", "main"], "screen readers have a tree that follows the selection");
  await page.axe("flame graph");
}

function thousands() {
  const answer = topOf(scene("small"));
  const functions = Array.from({ length: 12_000 }, (_, i) => ({
    name: `function_${String(i).padStart(5, "0")}`, file: "", line: 0, module: `lib${i % 7}.so`, build_id: "", self: 1e7 - i, total: 2e7 - i,
  }));
  return { ...answer, functions };
}

async function table() {
  server.answers["/api/v1/top"] = thousands;
  await page.open(GRAPH);
  check(await page.waitText("#top-note", "12,000 functions"), "twelve thousand functions", await page.text("#top-note"));
  check((await page.count("#top-body tr")) < 100, "of which those on the screen are rows", await page.count("#top-body tr"));
  await page.key("f");
  await page.key("ArrowDown");
  await page.key("End");
  const at = () => page.run("document.activeElement.querySelector('button.link')?.textContent ?? document.activeElement.outerHTML.slice(0, 80)");
  equal(await at(), "function_11999", "End: the last");
  await page.key("ArrowUp");
  equal(await at(), "function_11998", "up: the one before");
  await page.key("Home");
  equal(await at(), "function_00000", "Home: the first");
  await page.page.locator("#top-scroller").evaluate((e) => (e.scrollTop = 25 * 6000));
  check(await page.wait("document.querySelector('#top-body').innerText.includes('function_06003')"), "scrolling makes the rows there");
  check(!(await page.text("#top-body")).includes("function_00003"), "and drops others");
  await page.axe("table");
  delete server.answers["/api/v1/top"];
  await page.open(GRAPH);
  await page.set("#top-filter", "_int_malloc");
  equal(await state("function_find"), "_int_malloc", "the address has the table's filter");
  await page.page.reload();
  check(await page.waitText("#top-note", "1 function"), "after a reload it filters again", await page.text("#top-note"));
  await page.page.focus("#top-filter");
  await page.key("ArrowDown");
  await page.key("ArrowRight");
  check(await page.waitText("#top-body", "100 %667 ms"), "right unfolds to the callers", await page.text("#top-body"));
  equal(last("sandwich", "function", "module"), { function: "_int_malloc", module: "libc.so.6" }, "as the server knows them");
  await page.key("ArrowLeft");
  equal(await page.count("#top-body tr"), 1, "left folds again");
  await page.key("Enter");
  equal(await state("search"), "^_int_malloc$", "Enter searches");
  await shown(() => page.key("s"));
  equal(await page.data("sandwich"), "_int_malloc", "s opens the sandwich");
  page.quiet("table");
}

function exploding() {
  const columns = new Columns();
  columns.add({ name: "all", kind: "root", total: 10, parent: -1 });
  for (let i = 0; i < 10; i++) {
    columns.add({ name: "a".repeat(4000) + i, module: 0, self: 1, total: 1, parent: 0 });
  }
  return columns.answer(accounting({ value: 10, samples: 10 }));
}

async function hostile_search() {
  server.answers["/api/v1/flamegraph"] = exploding;
  await page.open(GRAPH);
  await page.key("/");
  const began = Date.now();
  await page.type("(a+)+b");
  check(await page.waitText("#search-result", "Stopped after"), "an expression without end is stopped", await page.text("#search-result"));
  check((await page.run("1 + 1")) === 2 && Date.now() - began < 20_000, "and the page lives");
  await page.set("#search", "(a+)+[0-9]");
  check(await page.waitText("#search-result", "10 frames"), "a like one that ends is answered", await page.text("#search-result"));
  delete server.answers["/api/v1/flamegraph"];
  page.quiet("hostile search");
}

await run(sandwich, left_out, interpreters_own, overloads, shapes, zoom, details, reader, table, hostile_search);
