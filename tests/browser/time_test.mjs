// SPDX-License-Identifier: Apache-2.0
// The time line, what happened on it, and the heat map, against what was sent and the server's own sums.

import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { check, equal, openPage, ROOT, run, Server, WORK } from "./page.mjs";

// Ten minutes before now, whole; the builds are met now, when they are sent.
const FROM = Math.floor(Date.now() / 60_000) * 60_000 - 600_000;
const RANGE = { from: String(FROM), until: "now", page: "time" };
const server = await Server.start();
await send("old");
await send("new");
const page = await openPage(server.url);

async function send(build, from = FROM) {
  const file = path.join(WORK, build);
  execFileSync("/usr/bin/python3", ["-B", path.join(ROOT, "tests/browser/time_report.py"), build, String(from), file], {
    env: { ...process.env, FARFLAME_BUILD: process.env.FARFLAME_BUILD ?? "build" },
    stdio: ["ignore", 2, 2],
  });
  const answer = await server.post(fs.readFileSync(file));
  check(answer.status === 200, `the report of the ${build} build is taken`, answer.status);
}

async function opens() {
  check(await page.open(RANGE), "the time line opens", page.complaints);
  const answer = await server.json("timeline", { from: String(FROM), until: "now", group_by: "process" });
  equal(await page.texts(".time-page .time-legend li"), answer.series.map(({ labels }) => labels.process), "a series for each process");
}

async function brush() {
  await page.open(RANGE);
  const box = await page.page.locator(".time-page .plot").boundingBox();
  const [from, to] = [0.3, 0.6].map((part) => box.x + 64 + (box.width - 72) * part);
  await page.page.mouse.move(from, box.y + 60);
  await page.page.mouse.down();
  await page.page.mouse.move(to, box.y + 60, { steps: 5 });
  await page.page.mouse.up();
  check(await page.wait("/from=\\d{13}&until=\\d{13}/.test(location.hash)"), "a drag chooses a time", await page.run("location.hash"));
  const [, since, until] = /from=(\d+)&until=(\d+)/.exec(await page.run("location.hash"));
  check(since % 1000 === 0 && until % 1000 === 0 && until - since >= 180_000 && until - since <= 300_000, "of whole seconds, about as long", [since, until]);
  await page.key("u");
  check(await page.wait(`!location.hash.includes("from=${since}")`), "u: twice as much time");
  const [, wide, end] = /from=(\d+)&until=(\d+)/.exec(await page.run("location.hash"));
  check(Math.abs(end - wide - 2 * (until - since)) < 60_000, "which it is", [since, until, wide, end]);
  await page.page.goBack();
  await page.page.goBack();
  check(await page.wait("location.hash.includes('until=now')"), "Back undoes them", await page.run("location.hash"));
}

async function builds() {
  await page.open(RANGE);
  check(await page.waitText(".time-page [aria-label='New builds'] tbody", "libwork.so.1"), "a module's new build is listed");
  equal((await page.texts(".time-page [aria-label='New builds'] .what")), ["abababab12 → cdcdcdcd34"], "what came after what, and nothing besides");
  check((await page.count(".time-page .mark.build")) === 1, "and marked on the time line");
  check(await page.waitText(".time-page [aria-label='What changed'] tbody", "api"), "what a process did otherwise is listed");
  equal(await page.count(".time-page .mark.hot"), 2, "and marked, of each process");
  const href = await page.run("document.querySelector(`.time-page [aria-label='What changed'] a.what`).getAttribute('href')");
  check(/page=diff/.test(href) && /base=\d{13}(\.\.|%2E%2E)\d{13}/.test(href) && /process=/.test(href), "each leads to its comparison with before", href);
  const place = await page.page.evaluate(() => document.querySelector(".mark.build").getBoundingClientRect().right / document.documentElement.clientWidth);
  check(place > 0.8, "at its end: it came just now", place);
  await page.axe("axe: the time line");
  page.quiet("the time line");
}

// One CPU all of the time: also in a minute of which only twenty seconds were reported, and a third of that lost.
async function part_of_a_minute() {
  const from = FROM - 3_600_000;
  await send("whole", from);
  await send("part", from);
  const card = async (keys) => {
    await page.run("document.querySelector('.time-page .plot').focus()");
    for (const key of keys) {
      await page.key(key);
    }
    return page.text(".time-page .time-card");
  };
  page.forget();
  await page.open({ from: String(from), until: String(from + 120_000), page: "time", host: "two" });
  const part = await card(["ArrowRight"]);
  check(part.includes("0.67 CPUs"), "one that was reported in part is divided by that part", part);
  check(/lost besides\s*0.33 CPUs/.test(part), "and what was lost stands beside it", part);
  check((await card(["ArrowLeft"])).includes("1.00 CPUs"), "a whole minute", await page.text(".time-page .time-card"));
  equal(await page.count(".time-page .plot path.lost"), 1, "hatched in the chart");
  check((await page.texts(".time-page .time-legend li")).includes("lost"), "which the legend names");
  check((await page.text("#stat-value")).includes("avg 0.917 CPUs"), "means are of the time reported", await page.text("#stat-value"));
  check(await page.waitText(".time-page .heat", "--timestamps"), "samples without times of their own: what would give them", await page.text(".time-page .heat"));
  equal(page.complaints, [], "and nothing that failed on the way");
  await page.open({ from: String(from), until: String(from + 120_000), page: "time", process: "api" });
  await card(["ArrowRight"]);
  equal(await page.count(".time-page .plot path.lost"), 0, "losses of a host are not put to one of its processes");
  await page.open({ from: String(from), until: String(from + 120_000), page: "overview", host: "two", by: "host" });
  check((await page.text(".overview .types")).includes("0.92 CPUs"), "the overview's sum is of the time reported", await page.text(".overview .types"));
}

// Each view says why it has nothing, and what to do about it.
async function nothing_there() {
  for (const view of ["overview", "graph", "time", "modules", "wall"]) {
    const has = async (asked, words) => {
      await page.open({ from: RANGE.from, until: "now", page: view, ...asked });
      check(await page.waitText("#message", words), `${view}, ${JSON.stringify(asked)}: ${words}`, await page.text("#message"));
    };
    await has({ host: "doesnotexist" }, "No such host as 'doesnotexist'; known are: one");
    await has({ match: 'nonsense="1"' }, "No such label as 'nonsense'; known are: ");
    if (view !== "wall" && view !== "modules") {
      await has({ type: "mem-alloc" }, "No mem-alloc was ever recorded here; recorded are: on-cpu");
      equal(await page.text("#message .command code"), `sudo farflame-agent --server ${server.url} --profile on-cpu,mem-alloc`, "with the command that does");
    }
    if (view !== "modules") {
      await has({ from: String(FROM - 90_000_000), until: String(FROM - 89_000_000) }, "there are samples from");
    }
  }
  await page.open({ page: "graph", host: "one", from: String(FROM - 90_000_000), until: String(FROM - 89_000_000) });
  await page.click("#message button:has-text('last hour')");
  check(await page.waitText("#stat-samples", "1,200 samples"), "which a click leads to", await page.text("#status"));
  await page.open({ page: "graph", host: "doesnotexist", from: RANGE.from, until: "now" });
  await page.click("#message button:has-text('Clear all filters')");
  check(await page.waitText("#stat-samples", "1,200 samples"), "and another one away from what is not known", await page.text("#status"));
}

// From the flame graph: of a function that only one of the processes runs.
async function one_function() {
  await page.open({ ...RANGE, page: "graph", group_by: "process" });
  const { functions } = await server.json("top", { from: String(FROM), until: "now", sort: "total" });
  const { name } = functions.find((one) => one.name.endsWith("0xc0"));
  const exactly = `^${name.replaceAll(/[.+]/g, "\\$&")}$`;
  await page.page.fill("#search", exactly);
  await page.page.press("#search", "Enter");
  check(await page.wait(`document.body.dataset.selected === ${JSON.stringify(name)}`), "a function of one process is selected", await page.data("selected"));
  await page.run("document.getElementById('flame-scroller').focus()");
  await page.key("m");
  await page.page.getByRole("menuitem", { name: "When it runs" }).click();
  check(await page.wait("document.body.dataset.page === 'time' && /focus=/.test(location.hash)"), "its menu leads to its time line", await page.run("location.hash"));
  check(await page.waitText("#stat-samples", "400 samples"), "of its samples only", await page.text("#status"));
  const answer = await server.json("timeline", { from: String(FROM), until: "now", group_by: "process", focus: exactly });
  equal(answer.series.map(({ labels, samples }) => [labels.process, samples]), [["db", 400]], "as the server has it");
  check(await page.waitText(".time-page .heat", "samples of all functions"), "what is not narrowed says so");
  await page.click(".time-page .filter");
  check(await page.wait("!location.hash.includes('focus')"), "a click on the filter takes it away");
  check(await page.waitText("#stat-samples", "1,200 samples"), "for the time line of all", await page.text("#status"));
}

const FUNCTIONS = { from: String(FROM), until: String(FROM + 600_000) };
const rows = () => page.texts(".row-heat li");
const settled = (count) => page.wait(`document.body.dataset.functions === "${count}" && document.querySelector(".time-functions p").innerText !== "Loading…"`);

async function openFunctions(state) {
  await page.open({ ...FUNCTIONS, page: "time", ...state });
  return page.wait("document.querySelector('.row-heat li') !== null");
}

// A place in the cells, in rows and parts of the width.
async function place(row, part) {
  const box = await page.page.locator(".row-heat canvas").boundingBox();
  return [box.x + box.width * part, box.y + 20 * row + 10];
}

function rangeOf(hash) {
  return new URLSearchParams(hash.slice(1));
}

async function functions() {
  check(await openFunctions({}), "functions over time are shown", await page.text(".time-functions"));
  const own = await server.json("heatmap", { ...FUNCTIONS, by: "function", column: "1m" });
  equal(await rows(), own.functions.map(({ name }) => name), "a row for each function that has something itself");
  check((await page.colours(".row-heat canvas"))[0] >= 2, "with cells");
  await page.page.selectOption(".time-functions select", "total");
  check(await settled(4), "and for each that is on a stack, by total", await rows());
  const answer = await server.json("heatmap", { ...FUNCTIONS, by: "function", sort: "total", column: "1m" });
  equal(await rows(), answer.functions.map(({ name }) => name), "the heaviest first");
  await page.axe("axe: functions over time");

  const row = answer.functions.findIndex(({ name }) => name.endsWith("0xc0"));
  const cells = answer.cells.row.flatMap((of, i) => (of === row ? [[answer.cells.column[i], answer.cells.samples[i], answer.cells.value[i]]] : []));
  const [column, samples, value] = cells[2];
  await page.run("document.querySelector('.row-heat canvas').focus()");
  for (const key of [...Array(row + 1).fill("ArrowDown"), ...Array(column).fill("ArrowRight")]) {
    await page.key(key);
  }
  const card = await page.text(".row-card");
  check(card.includes("0xc0") && card.includes(`${samples} samples`) && card.includes("CPUs"), "arrows show what a function has in a step", [card, samples, value]);
  await page.key("Enter");
  check(await page.wait("document.body.dataset.page === 'graph' && document.body.dataset.shown >= 1"), "Enter leads to its flame graph");
  const hash = rangeOf(await page.run("location.hash"));
  equal([Number(hash.get("from")), Number(hash.get("until"))], [answer.first + column * answer.column_ms, answer.first + (column + 1) * answer.column_ms], "of that step");
  equal(hash.get("focus"), `^${answer.functions[row].name.replaceAll(/[.+]/g, "\\$&")}$`, "and of stacks through it");
  equal(await page.text("#stat-samples"), `${samples} samples`, "which are as many as the cell said");
  page.quiet("functions over time");
}

async function functions_by_hand() {
  await openFunctions({ sort: "total" });
  const answer = await server.json("heatmap", { ...FUNCTIONS, by: "function", sort: "total", column: "1m" });
  await page.page.mouse.move(...(await place(0, 0.05)));
  check(await page.waitText(".row-card", "of all then"), "pointing at a cell says what it has", await page.text(".row-card"));
  await page.page.mouse.down();
  await page.page.mouse.move(...(await place(1, 0.28)), { steps: 4 });
  await page.page.mouse.up();
  check(await page.wait("document.body.dataset.page === 'graph' && /focus=/.test(location.hash)"), "a drag along a row leads to the flame graph");
  const hash = rangeOf(await page.run("location.hash"));
  equal([Number(hash.get("from")), Number(hash.get("until"))], [FROM, FROM + 3 * 60_000], "of all its steps");
  const { accounting } = await server.json("flamegraph", { from: hash.get("from"), until: hash.get("until"), focus: hash.get("focus") });
  equal((await page.text("#stat-samples")).replaceAll(",", ""), `${accounting.samples} samples`, "with the server's sum");
  equal(accounting.samples, [0, 1, 2].reduce((sum, column) => sum + answer.cells.samples[answer.cells.row.findIndex((of, i) => of === 0 && answer.cells.column[i] === column)], 0), "which is that of the cells");

  await openFunctions({ sort: "total" });
  await page.page.mouse.click(...(await place(1, 0.5)), { button: "right" });
  check(await page.waitText("#frame-menu", "Sandwich"), "the right button opens the function's menu");
  equal(await page.text("#frame-menu .menu-title"), answer.functions[1].name, "of the row");
  await page.key("Escape");
  await page.page.locator(".row-heat li").nth(2).click({ button: "right" });
  equal(await page.text("#frame-menu .menu-title"), answer.functions[2].name, "also on its name");
  await page.key("Escape");
  await page.run("document.querySelector('.row-heat canvas').focus()");
  await page.key("ArrowDown");
  await page.key("m");
  equal(await page.text("#frame-menu .menu-title"), answer.functions[0].name, "m opens it at the cursor");
  await page.key("Escape");
  const [x, y] = await place(1, 0.5);
  await page.cdp.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: [{ x, y }] });
  check(await page.wait("!document.getElementById('frame-menu').hidden"), "a finger held still does so, too");
  await page.cdp.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
  equal(await page.text("#frame-menu .menu-title"), answer.functions[1].name, "of the row it is on");
  await page.key("Escape");
  await page.page.locator(".row-heat li a").first().click();
  check(await page.wait("document.body.dataset.page === 'graph' && /focus=/.test(location.hash)"), "a name leads to all of the function's stacks");
}

async function functions_chosen() {
  await openFunctions({ sort: "total" });
  await page.page.fill(".time-functions input", "0XC0");
  check(await settled(1), "the filter asks for functions of that name", await rows());
  equal((await rows()).at(-1), "stacks through none of these", "all else is a row of its own");
  check((await page.text(".time-functions p")).includes("66.7 %"), "and its share is said", await page.text(".time-functions p"));
  await page.page.mouse.click(...(await place(1, 0.5)));
  check(await page.wait("document.body.dataset.page === 'graph'"), "which leads to the flame graph of its time");
  check(!(await page.run("location.hash")).includes("focus"), "of all stacks", await page.run("location.hash"));
  await openFunctions({ sort: "total", function_find: "nosuch" });
  check(await page.waitText(".time-functions p", "No function matches."), "none matches: it is said");
  await openFunctions({ sort: "total", focus: "0xc0", hide: "0x80" });
  check(await settled(3), "filters of the flame graph hold here", await rows());
  await page.click(".time-functions .filter");
  check(await settled(4), "a click takes one away", await rows());
  check((await page.run("location.hash")).includes("focus"), "and only that");
  await page.page.mouse.click(...(await place(1, 0.2)));
  check(await page.wait("document.body.dataset.page === 'graph' && /focus=0xc0/.test(location.hash) && /search=/.test(location.hash)"), "where stacks are chosen already, a function is searched", await page.run("location.hash"));
  page.quiet("functions that are chosen");
}

async function heat() {
  await page.open({ ...RANGE, until: String(FROM + 60_000) });
  check(await page.waitText(".time-page", "A column is"), "the heat map is drawn");
  check((await page.colours(".heat-map canvas"))[0] >= 2, "with cells that have samples");
  await page.run("document.querySelector('.heat-map canvas').focus()");
  await page.key("ArrowDown");
  check((await page.text(".heat-card")).includes("samples"), "arrows show a cell's value", await page.text(".heat-card"));
  for (let i = 0; i < 4; i++) {
    await page.key("Shift+ArrowRight");
  }
  await page.key("Enter");
  check(await page.wait("document.body.dataset.page === 'graph' && document.body.dataset.shown >= 1"), "Enter leads to the flame graph of the cells");
  const hash = await page.run("location.hash");
  const [, since, until] = /from=(\d+)&until=(\d+)/.exec(hash) ?? [];
  check(hash.includes("exact=true") && until - since === 4020, "of exactly that time", hash);
  const answer = await server.json("flamegraph", { from: since, until, exact: "true" });
  equal((await page.text("#stat-samples")).replaceAll(",", ""), `${answer.accounting.samples} samples`, "with the server's sum of it");
  check(answer.accounting.samples > 0 && answer.accounting.samples < 600, "which is a part of all", answer.accounting.samples);
  await page.click("#filters .filter:has-text('times of their own')");
  check(await page.wait("!location.hash.includes('exact')"), "a click on the filter shows all samples of those minutes");
}

async function clean() {
  await page.open(RANGE);
  await page.shots("time");
}

await run(opens, brush, builds, nothing_there, part_of_a_minute, one_function, functions, functions_by_hand, functions_chosen, heat, clean);
