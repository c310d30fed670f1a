// SPDX-License-Identifier: Apache-2.0
// The overview and the comparison on the recorded profile, against the server's own sums.

import { check, equal, fake, openPage, run, startRecorded } from "./page.mjs";

const server = await startRecorded();
const page = await openPage(server.url);
const RANGE = server.range;

async function sums() {
  check(await page.open({ ...RANGE }), "the overview is the first page", page.complaints);
  equal(await page.data("page"), "overview", "and is told so");
  const answer = await server.json("timeline", { ...RANGE, group_by: "process", limit: "1000" });
  const names = await page.texts(".overview-table td.name a");
  equal(names[0], answer.series[0].labels.process, "where nothing is called a service, the process with most CPU comes first");
  equal(names.length, Math.min(100, answer.series.length), "every process has a row");
  check(await page.wait("document.querySelectorAll('.overview .lists td.name').length > 0"), "hottest functions come");
  const top = await server.json("top", { ...RANGE, sort: "self", limit: "1" });
  check((await page.texts(".overview .lists td.name a"))[0].startsWith(top.functions[0].name.slice(0, 10)), "the hottest first");
  const samples = (await page.text("#stat-samples")).replaceAll(",", "");
  equal(samples, `${top.accounting.samples} samples`, "the accounting is the server's");
  check(await page.waitText(".overview [aria-label='What changed']", "too short to tell"), "of so short a time nothing is said to change or not");
}

async function leads_on() {
  await page.open({ ...RANGE });
  const name = (await page.texts(".overview-table td.name a"))[0];
  await page.click(".overview-table td.name a");
  check(await page.wait("document.body.dataset.page === 'graph' && document.body.dataset.shown >= 1"), "a click leads to its graph");
  check((await page.run("location.hash")).includes(encodeURIComponent(name).replaceAll("%20", "+")), "of that process");
  await page.page.goBack();
  check(await page.wait("document.body.dataset.page === 'overview'"), "Back leads back");
  check(await page.wait("document.querySelector('[data-by=process]').getAttribute('aria-pressed') === 'true'"), "the rows' label is marked");
  await page.key("b");
  check(await page.wait("document.querySelector('.overview-table td.name a')?.innerText === '(no service)'"), "b: rows are services, none of which has a name");
  check((await page.run("document.querySelector('.overview-table td.name a').href")).includes("match=service%3D%22%22"), "and leads to those");
  await page.key("b");
  check(await page.wait("document.querySelector('[data-by=host]').getAttribute('aria-pressed') === 'true'"), "b again: rows are hosts");
  await page.key("g");
  await page.key("d");
  check(await page.wait("document.body.dataset.page === 'diff'"), "g d: the comparison");
}

// What is wrong with an expression stands beside the field that has it, in the server's own words.
async function in_place() {
  const why = async (field, reason) => [await page.run(`document.querySelector("${field}").getAttribute("aria-invalid")`), await page.run(`document.querySelector("${reason}").textContent`)];
  const BASE = "[aria-describedby=base-match-why]";
  for (const [match, said] of [["pid=~\"(\"", "missing )"], ["host=\"nobody\"", "no such host as 'nobody'"], ["shelf", "expected at character"]]) {
    await page.open({ ...RANGE, page: "graph", match });
    check(await page.wait("document.getElementById('match').getAttribute('aria-invalid') === 'true'"), `${match}: the field is marked`);
    const [, sentence] = await why("#match", "#match-why");
    check(sentence.includes(said), `${match}: with the reason beside it`, sentence);
    await page.open({ ...RANGE, page: "diff", base: "-0s", base_match: `{${match}}` });
    check(await page.wait(`document.querySelector("${BASE}").getAttribute("aria-invalid") === "true"`), `${match}: so is A's in a comparison`);
    check((await why(BASE, "#base-match-why"))[1].includes(said), `${match}: with the reason`, await why(BASE, "#base-match-why"));
    equal(await why("#match", "#match-why"), ["false", ""], `${match}: and the other one is not`);
  }
  await page.open({ ...RANGE, page: "diff", base: "-0s" });
  equal([await why(BASE, "#base-match-why"), await why("#match", "#match-why")], [["false", ""], ["false", ""]], "what is right takes the marks away");
  page.requests.length = 0;
}

// Names end where the numbers begin, on every screen.
async function names_end() {
  const made = await openPage((await fake()).url);
  for (const width of [390, 950, 1100, 1280]) {
    await made.resize(width, 850);
    await made.open({});
    check(await made.wait("document.querySelector('.overview-list .nameless') !== null"), `${width} pixels: time without names is listed`);
    await made.run("document.querySelector('.overview-list .nameless').textContent += ' and of further ones'"); // as of many
    const over = await made.run(`[...document.querySelectorAll(".overview-list td.name > a")].filter((a) =>
      a.scrollWidth > a.clientWidth && getComputedStyle(a).overflowX === "visible").map((a) => a.innerText)`);
    equal(over, [], `${width} pixels: nothing is written over numbers`);
  }
}

async function keyboard_range() {
  await page.open({ ...RANGE });
  await page.run("document.querySelector('.overview .plot').focus()");
  await page.key("ArrowLeft");
  check(await page.visible(".overview .time-card"), "arrows show a step's values");
  await page.key("Shift+ArrowLeft");
  await page.key("Enter");
  check(await page.wait("/from=\\d{13}/.test(location.hash)"), "Shift, arrows and Enter choose a range", await page.run("location.hash"));
}

async function compares() {
  check(await page.open({ ...RANGE, page: "diff", base: "-0s", norm: "raw" }), "a profile against itself opens", page.complaints);
  check((await page.text(".diff-table .summary")).startsWith("0 of"), "nothing changed", await page.text(".diff-table .summary"));
  check((await page.text(".diff-strip")).includes("the same"), "and the whole says so", await page.text(".diff-strip"));
  equal(await page.count(".diff-table tr.more, .diff-table tr.less"), 0, "nor does any row differ");
  await page.set(".diff-sides select[aria-label=\"A's time\"]", "-7d");
  check(await page.wait("document.querySelector('.diff-strip').innerText.includes('new')"), "against a week before, without data: all is new");
  await page.key("x");
  check(await page.wait("document.querySelector('.diff-strip').innerText.includes('gone')"), "x: the other way round all is gone");
  check(await page.wait("document.body.dataset.nodes > 1"), "and what is gone is seen");
}

async function clean() {
  for (const state of [{}, { page: "diff", base: "-0s" }]) {
    await page.open({ ...RANGE, ...state });
    await page.axe(`axe: ${JSON.stringify(state)}`);
    page.quiet(`quiet: ${JSON.stringify(state)}`);
  }
}

await run(sums, leads_on, in_place, names_end, keyboard_range, compares, clean);
