// SPDX-License-Identifier: Apache-2.0
// The wall clock and requests, against the sums of who made the samples and the server's own.

import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { check, equal, fake, openBrowser, openPage, ROOT, run, Server, WORK } from "./page.mjs";

const FROM = Math.floor(Date.now() / 60_000) * 60_000 - 600_000;
const RANGE = { from: String(FROM), until: String(FROM + 120_000) };
const browser = await openBrowser();
const server = await Server.start();
const sums = await send();
const page = await openPage(server.url, browser);

async function send(from = FROM, ...which) {
  const file = path.join(WORK, "reports");
  const made = execFileSync("/usr/bin/python3", ["-B", path.join(ROOT, "tests/browser/wall_report.py"), String(from), file, ...which], {
    env: { ...process.env, FARFLAME_BUILD: process.env.FARFLAME_BUILD ?? "build" },
    stdio: ["ignore", "pipe", 2],
  });
  const bytes = fs.readFileSync(file);
  for (let at = 0; at < bytes.length; at += 4 + bytes.readUInt32LE(at)) {
    const answer = await server.post(bytes.subarray(at + 4, at + 4 + bytes.readUInt32LE(at)));
    check(answer.status === 200, "a report is taken", answer.status);
  }
  return JSON.parse(made);
}

const seconds = (ns) => ns / 1e9;

// Of a row whose name is that, the texts of its cells.
async function row(section, name) {
  const rows = await page.page.evaluate(
    (s) => [...document.querySelectorAll(s + " tbody tr")].map((tr) => [...tr.children].map((td) => td.innerText.trim())),
    section,
  );
  return rows.find(([first]) => first === name) ?? [];
}

// "12.3 s" or "2.05 min" within the digits shown.
function says(text, ns, what) {
  const [number, unit] = text.split(" ");
  const factor = { s: 1, ms: 1e-3, min: 60, h: 3600 }[unit];
  const got = Number(number) * factor;
  check(Math.abs(got - seconds(ns)) <= 0.006 * seconds(ns) + 0.005 * factor, what, `${text}, made: ${seconds(ns)} s`);
}

async function both_in_one() {
  check(await page.open({ ...RANGE, page: "wall" }), "the wall clock opens", page.complaints);
  check(await page.wait("document.querySelectorAll('.wall-table tbody tr').length >= 2"), "groups come");
  for (const process of ["api", "db"]) {
    const cells = await row(".wall-table", process);
    says(cells[1], sums[`on-cpu ${process}`], `${process}: on the CPU as long as was made`);
    says(cells[2], sums[`off-cpu ${process}`], `${process}: waited as long as was made`);
  }
  const [heads] = [await page.texts(".wall-table thead th")];
  equal(heads, ["process", "on CPU", "waited", "run queue", "still blocked", "mem-inuse", "mem-alloc"], "a column for each type there is");
  equal((await row(".wall-table", "api"))[5], "96.0 MiB", "memory in use in bytes");
  says((await page.text("#stat-value")).split(" · ")[0], sums["on-cpu api"] + sums["on-cpu db"], "the accounting of the one");
  says(await page.text("#stat-off-value"), sums["off-cpu api"] + sums["off-cpu db"], "and of the other");
  const [kinds, drawn] = await page.colours("#wall-canvas");
  check(kinds > 5 && drawn > 0.05, "the canvas has frames on it", [kinds, drawn]);
}

async function one_tree() {
  await page.open({ ...RANGE, page: "wall", zoom: "api;main;serve;handle" });
  const shown = "document.querySelector('.wall .diff-strip')?.innerText.includes('on CPU')";
  check(await page.wait(shown), "a frame has both", page.complaints);
  const strip = await page.text(".wall .diff-strip");
  const on = sums["on-cpu api"];
  const main = 20 * 2 * 10101010; // of that accept has
  check(strip.includes("waited"), "and its wait", strip);
  const [, text] = /on CPU\s+([\d.]+ \w+)/.exec(strip) ?? [];
  says(text ?? "? s", on - main, "the frame that both share has what both have");
  await page.key("ArrowDown");
  await page.key("ArrowDown");
  check(await page.wait("document.body.dataset.selected"), "arrows select", strip);
  const selected = () => page.page.getAttribute("#wall-scroller", "aria-activedescendant");
  const [before, settled] = [await selected(), Number(await page.data("settled"))];
  await page.key("r");
  check(await page.wait(`Number(document.body.dataset.settled) > ${settled}`), "another answer");
  await page.run("new Promise((done) => setTimeout(done, 200))");
  check(before !== null && (await selected()) === before, "the selection stays through it", [before, await selected()]);
}

async function widths() {
  await page.open({ ...RANGE, page: "wall" });
  const total = () => page.page.evaluate(() => document.querySelector(".wall .diff-strip").innerText);
  check(await page.wait("document.querySelector('.wall .diff-strip')?.innerText.includes('on CPU')"), "the whole is said");
  const both = await total();
  await page.key("w");
  check(await page.wait("location.hash.includes('wall=on')"), "w: widths of the time on the CPU");
  check((await page.colours("#wall-canvas"))[0] > 5, "which are drawn");
  equal(await total(), both, "and say the same of the whole");
  await page.key("w");
  check(await page.wait("location.hash.includes('wall=off')"), "then of waits");
  await page.page.goBack();
  await page.page.goBack();
  check(await page.wait("document.querySelector('[aria-label=\"Frames are as wide as\"]').value === 'both'"), "Back: of both");
}

async function keys_and_groups() {
  await page.open({ ...RANGE, page: "wall" });
  await page.key("b");
  check(await page.wait("location.hash.includes('group_by=process%2Cthread')"), "b: by thread too", await page.run("location.hash"));
  check(await page.waitText(".wall-table tbody", "api · worker"), "threads are rows");
  const cells = await row(".wall-table", "api · worker");
  const waits = sums["off-cpu api"] - 2 * 300 * 10 * 1e6; // less what main waited
  says(cells[2], waits, "a thread waited as long as was made");
  await page.click(".wall-table tbody tr:has-text('api · worker') td.name a");
  check(await page.wait("location.hash.includes('match=thread')"), "a click narrows to the thread");
  check(await page.wait("document.querySelectorAll('.wall-table tbody tr').length === 1"), "which is alone then");
  await page.page.goBack();
  check(await page.wait("!location.hash.includes('match=')"), "Back undoes it");
  await page.key("g");
  await page.key("w");
  check(await page.run("document.body.dataset.page === 'wall'"), "g w: the wall clock");
  await page.key("/");
  await page.type("futex");
  check(await page.waitText(".wall .diff-graph .tools", "%"), "the search finds");
  await page.key("?");
}

// What can be done with a frame of both, as with any other.
async function frames() {
  await page.open({ ...RANGE, page: "wall", zoom: "api;main;serve;handle" });
  const tree = "#wall-scroller";
  check(await page.waitText(`${tree} [role=treeitem][aria-selected=true]`, "waited"), "the tree for screen readers says both times");
  equal(await page.page.getAttribute(tree, "role"), "tree", "which is what the canvas is for them");
  await page.key("-");
  check(await page.wait("!location.hash.includes('handle')"), "-: one step out");
  await page.key("/");
  await page.type("futex");
  await page.key("Enter");
  check(await page.wait("/futex/.test(document.body.dataset.selected ?? '')"), "Enter: to the first match", await page.data("selected"));
  check(await page.waitText(".wall .search-result", "1 of"), "which is counted");
  await page.page.focus(tree);
  await page.key("n");
  check(await page.wait("/futex/.test(document.body.dataset.selected ?? '')"), "n: the next");
  await page.key("m");
  await page.page.getByRole("menuitem", { name: "Its waits as a flame graph" }).click();
  check(await page.wait("document.body.dataset.page === 'graph' && document.body.dataset.shown >= 1"), "its menu leads to its waits");
  check(await page.wait("location.hash.includes('type=off-cpu') && /futex/.test(document.body.dataset.zoom)"), "zoomed there", await page.run("location.hash"));
  await page.page.goBack();
  check(await page.wait("document.body.dataset.page === 'wall'"), "Back");
  check(await page.waitText(".wall .search-result", "frame"), "with what was searched");
  await page.key("n");
  await page.key("s");
  check(await page.wait("location.hash.includes('sandwich=')"), "s: the sandwich of the selected one");
}

// Frames that the screen cannot show come when one zooms, of both types; until then it is said what they may have.
async function narrow_frames() {
  const from = FROM - 3_600_000;
  const made = await send(from, "narrow");
  const range = { from: String(from), until: String(from + 60_000), page: "wall" };
  const trees = (...has) => page.requests.filter((url) => url.includes("/flamegraph?") && has.every((part) => url.includes(part)));
  page.forget();
  await page.open(range);
  equal([trees("min_share=").length, trees("max_nodes=").length], [2, 0], "as many frames are asked for as the screen shows");
  equal(await page.count("#status [id$=-cut]"), 0, "what is too narrow to draw is no cut");
  await page.page.fill(".wall .diff-graph input", "^t0");
  const share = ((100 * (10101010 + 1e7)) / (made["on-cpu"] + made["off-cpu"])) * 100;
  check(await page.waitText(".wall .search-result", `${share.toFixed(2)} %`), "a search is counted by the server, narrow frames too", [share, await page.text(".wall .search-result")]);
  await page.open({ ...range, zoom: "cuts;main;mixed" });
  check(await page.waitText(".wall .diff-strip", "at most 10.0 ms"), "what may have been cut of a frame's waits is said", await page.text(".wall .diff-strip"));
  await page.open({ ...range, zoom: "cuts;main;many" });
  check(await page.wait("document.body.dataset.detail !== undefined"), "zooming asks for finer frames");
  const whole = (...functions) => ["cuts", ...functions.map((name) => `${name} (/srv/app.py)`)].join(";");
  const root = String(new URLSearchParams({ root: whole("main", "many") }));
  equal([trees("type=on-cpu", root).length, trees("type=off-cpu", root).length], [1, 1], "of both types, below that one");
  const callee = "#wall-scroller [role=treeitem][aria-level='5']";
  check(await page.wait(`document.querySelector("${callee}")?.getAttribute("aria-setsize") === "300"`), "which are all there", await page.text("#wall-scroller"));
  check(/^t\d+, on CPU 10.1 ms ± [\d.]+ ms · 50.3 % of .* waited 10.0 ms ± [\d.]+ ms · 49.7 % of/.test(await page.text(callee)), "with what they have of each", await page.text(callee));
  await page.key("w");
  check(await page.wait("location.hash.includes('wall=on')") && (await page.wait(`document.querySelector("${callee}")?.getAttribute("aria-setsize") === "300"`)), "other widths have them, too");
  equal(trees(root).length, 2, "without another question");
  await page.key("Home");
  check(await page.wait("!location.hash.includes('zoom=') && document.body.dataset.zoom === ''"), "zooming out shows the whole picture", await page.data("zoom"));
  await page.open({ ...range, zoom: "cuts;main;many;t007" });
  check(await page.wait(`document.body.dataset.zoom === '${whole("main", "many", "t007")}'`), "an address leads to what only a finer answer has", await page.data("zoom"));
  for (const [view, scroller] of [["wall", "#wall-scroller"], ["graph", "#flame-scroller"]]) {
    await page.open({ ...range, page: view, zoom: "cuts;main;outer;inner" });
    const inmost = `${scroller} [role=treeitem][aria-level='6']`;
    check(await page.wait(`document.querySelector("${inmost}")?.getAttribute("aria-setsize") === "10"`), `${view}: what is cut in a finer answer comes as well`, await page.text(scroller));
  }
  page.quiet("narrow frames");
}

// Rows have the menu of all that they stand for: by the right button, by keys, by a finger; on the overview too.
async function row_menus() {
  const items = () => page.texts("#frame-menu [role=menuitem] span");
  const title = () => page.text("#frame-menu .menu-title");
  const opened = () => page.wait("!document.getElementById('frame-menu').hidden");
  const api = ".wall-table tbody tr:has(td.name bdi:text-is('api'))";
  await page.open({ ...RANGE, page: "wall" });
  await page.waitText(".wall-table tbody", "api");
  await page.page.locator(api).click({ button: "right" });
  check(await opened(), "the right button opens the menu of a row");
  equal([await title(), await items()], ["api", [
    "Only this", "Without this", "Its time on the CPU as a flame graph", "Its waits as a flame graph", "Where it is blocked",
    "When it runs: its time line", "Compare with the time before", "Copy name",
  ]], "with what can be done with it");
  await page.axe("axe: the menu of a row");
  await page.page.getByRole("menuitem", { name: "Its waits as a flame graph" }).click();
  check(await page.wait("document.body.dataset.page === 'graph' && document.body.dataset.shown >= 1"), "its waits");
  says((await page.text("#stat-value")).split(" ± ")[0].split(" · ")[0], sums["off-cpu api"], "which are all of it");
  await page.page.goBack();
  await page.waitText(".wall-table tbody", "api");
  await page.page.locator(`${api} td.name a`).focus();
  await page.key("m");
  check(await opened(), "m opens it where the focus is");
  await page.page.getByRole("menuitem", { name: "Without this" }).click();
  check(await page.wait("/match=process%21%3D%22api%22/.test(location.hash) && !document.querySelector('.wall-table tbody').innerText.includes('api')"), "without this: all others", await page.run("location.hash"));
  await page.open({ ...RANGE, page: "wall" });
  const woken = ".wall-list[aria-label='Who woke whom'] tbody tr:first-child";
  await page.waitText(".wall-list[aria-label='Who woke whom']", "kworker");
  const list = ".wall-list[aria-label='Longest requests'] tbody tr:first-child";
  await page.wait(`document.querySelector("${list}") !== null`); // all has its place then
  const [x, y] = await page.page.evaluate((row) => {
    const name = document.querySelector(row + " td.name");
    name.scrollIntoView({ block: "center" });
    const { left, top } = name.getBoundingClientRect();
    return [left + 12, top + 8];
  }, woken);
  await page.cdp.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: [{ x, y }] });
  check(await opened(), "a finger held on who waited opens it");
  await page.cdp.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
  check((await items()).includes("Only this") && (await page.data("page")) === "wall", "and lifting it is no click", await items());
  await page.key("Escape");
  await page.page.locator(list).click({ button: "right" });
  check((await items()).includes("Copy the trace’s id"), "a request has its own", await items());
  await page.key("Escape");
  await page.open({ ...RANGE, page: "overview", by: "process" });
  await page.waitText(".overview-table tbody", "api");
  await page.page.locator(".overview-table tbody tr:has-text('api')").first().click({ button: "right" });
  check((await items()).includes("When it runs: its time line"), "rows of the overview have it, too", await items());
  await page.page.getByRole("menuitem", { name: "When it runs" }).click();
  check(await page.wait("document.body.dataset.page === 'time' && /process=api/.test(location.hash)"), "for that row", await page.run("location.hash"));
  page.quiet("menus of rows");
}

async function endless_search() {
  await page.open({ ...RANGE, page: "wall", search: "^(([a-z_])+.)+[A-Z]([a-z])+$" });
  check(await page.wait("/stopped|no match|frame/.test(document.querySelector('.wall .search-result').innerText)", 15000), "an expression without end is stopped");
  await page.key("w");
  check(await page.wait("location.hash.includes('wall=on')"), "and the page goes on");
}

async function who_woke_whom() {
  await page.open({ ...RANGE, page: "wall" });
  check(await page.waitText(".wall-list[aria-label='Who woke whom']", "kworker"), "wakers come");
  const rows = await page.page.evaluate(() =>
    [...document.querySelectorAll(".wall-list[aria-label='Who woke whom'] tbody tr")].map((tr) => [...tr.children].map((td) => td.innerText.trim())),
  );
  const found = rows.find(([waiter, why, by]) => waiter === "api" && why === "socket" && by === "db · writer") ?? [];
  says((found[3] ?? "").split(/\s{2,}|(?<=s|n)(?=\d)/)[0].split("\n")[0], 2 * (2400 * 10 + 4 * 700) * 1e6, "api waited so long for db");
  check(rows.some(([waiter, why, by]) => waiter === "api" && why === "poll" && by === "not known"), "who is not known is said", rows);
  equal(await page.data("owned"), undefined, "a waker's name is no markup");
  await page.click(".wall-list[aria-label='Who woke whom'] td.by a[title*='writer did when it woke api']");
  check(await page.wait("document.body.dataset.page === 'graph' && document.body.dataset.shown >= 1"), "a waker leads to what it did");
  check((await page.run("location.hash")).includes("type=waker"), "by its stacks", await page.run("location.hash"));
  says(await page.text("#stat-value"), 2 * 2400 * 10 * 1e6, "of that thread for that process");
}

// Numbers have room beside names, and a chart's axis for what its values are called.
async function room() {
  for (const width of [1280, 1100]) {
    await page.resize(width, 800);
    await page.open({ ...RANGE, page: "wall" });
    check(await page.waitText(".wall-list[aria-label='Who woke whom']", "kworker"), "wakers come");
    const over = "(body => body.scrollWidth - body.clientWidth)(document.querySelector(\".wall-list[aria-label='Who woke whom'] .body\"))";
    equal(await page.run(over), 0, `${width} pixels: all columns of wakers are in sight`);
  }
  await page.resize(1400, 850);
  await page.open({ ...RANGE, page: "time", type: "off-cpu" });
  const outside = `(plot => [...plot.querySelectorAll("text.tick")].filter((text) => text.getBoundingClientRect().left < plot.getBoundingClientRect().left).map((text) => text.textContent))(document.querySelector(".time-chart .plot"))`;
  const axis = await page.run(`[...document.querySelectorAll(".time-chart .plot text.tick")].map((text) => text.textContent)`);
  check(axis.some((text) => text.endsWith(" threads")), "an axis of threads", axis.join(", "));
  equal(await page.run(outside), [], "whose values are whole");
}

async function blocked_now() {
  await page.open({ ...RANGE, page: "wall" });
  check(await page.waitText(".wall-list[aria-label='Blocked now']", "db"), "what is blocked is named");
  const cells = await row(".wall-list[aria-label='Blocked now']", "db");
  equal(cells[1], "1.0", "one thread was, for the whole minute");
}

async function requests() {
  await page.open({ ...RANGE, page: "wall" });
  const list = ".wall-list[aria-label='Longest requests']";
  check(await page.wait(`document.querySelectorAll("${list} tbody tr").length > 0`), "requests come");
  const made = Object.entries(sums.traces).sort(([, a], [, b]) => b["on-cpu"] + b["off-cpu"] - a["on-cpu"] - a["off-cpu"]);
  const [id, values] = made[0];
  const first = (await page.texts(`${list} tbody tr:first-child td`)).map((text) => text.trim());
  equal(first[0], id, "the longest first");
  says(first[2], values["on-cpu"], "with its time on the CPU");
  says(first[3], values["off-cpu"], "and waiting");
  await page.click(`${list} tbody tr:first-child a.trace`);
  check(await page.wait("document.body.dataset.page === 'graph' && document.body.dataset.shown >= 1"), "and leads to its stacks");
  says((await page.text("#stat-value")).split(" · ")[0], values["on-cpu"], "which are all of it, and no others");
  return id;
}

async function trace_typed() {
  const id = Object.keys(sums.traces)[3];
  await page.open({ ...RANGE, page: "graph" });
  await page.key("/");
  await page.type(` ${id.toUpperCase()} `);
  check(await page.wait(`location.hash.includes("trace_id=${id}")`), "a trace's id in the search leads to it", await page.run("location.hash"));
  check(await page.waitText("#filters", id), "and is a filter that can be taken away");
  check(await page.wait("document.body.dataset.shown >= 2"), "its stacks are asked for");
  says((await page.text("#stat-value")).split(" · ")[0], sums.traces[id]["on-cpu"], "with its value");
  equal(await page.page.inputValue("#search"), "", "the search is free again");
  await page.page.goBack();
  check(await page.wait("document.body.dataset.shown >= 3"), "Back shows everything again");
  check(await page.open({ ...RANGE, trace: id }), "#trace= does too");
  equal(await page.data("page"), "graph", "as a flame graph");
  says((await page.text("#stat-value")).split(" · ")[0], sums.traces[id]["on-cpu"], "of that trace");
  await page.click("#filters .filter");
  check(await page.wait("!location.hash.includes('trace')"), "a click takes the filter away");
}

async function without_waits() {
  const other = await fake();
  other.answers["/api/v1/timeline"] = () => ({ status: 503, body: JSON.stringify({ error: { message: "Too busy." } }) });
  other.answers["/api/v1/traces"] = () => ({ status: 501, body: JSON.stringify({ error: { message: "This store keeps no traces." } }) });
  const second = await openPage(other.url, browser);
  check(await second.open({ page: "wall" }), "without waits the wall clock opens too", second.complaints);
  check((await second.text(".wall .note")).includes("--profile"), "and says how to have them");
  check(await second.waitText(".wall-list[aria-label='Longest requests']", "keeps no traces"), "a list that does not come says why");
  check(await second.waitText(".wall-list[aria-label='Blocked now']", "Too busy"), "of what is blocked nothing is claimed either", await second.text(".wall-list[aria-label='Blocked now']"));
  await second.open({ page: "wall", service: "error" });
  check((await second.text("#message")).includes("a quote is missing"), "an error is the server's sentence", await second.text("#message"));
  equal(await second.data("owned"), undefined, "nothing of an answer is run");
  await second.open({ page: "wall", service: "hostile" });
  equal(await second.data("owned"), undefined, "nor of hostile names");
  second.quiet("without waits");
}

async function clean() {
  for (const state of [{}, { group_by: "process,thread" }]) {
    await page.open({ ...RANGE, page: "wall", ...state });
    await page.wait("document.querySelectorAll('.wall-list tbody tr').length > 3");
    await page.mouse(1, 1); // away from what has a tip
    await page.axe(`axe: ${JSON.stringify(state)}`);
    page.quiet(`quiet: ${JSON.stringify(state)}`);
  }
  await page.shots("wall");
}

await run(both_in_one, one_tree, widths, keys_and_groups, frames, narrow_frames, row_menus, endless_search, who_woke_whom, room, blocked_now, requests, trace_typed, without_waits, clean);
