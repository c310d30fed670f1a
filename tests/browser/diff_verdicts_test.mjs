// SPDX-License-Identifier: Apache-2.0
// A comparison as a list: by the size of the change, with what is thought of it beside it and never in its way.

import { MODULE_STATES } from "./fake_answers.mjs";
import { check, equal, fake, openPage, run } from "./page.mjs";
import { diffAnswer } from "./fake_diff.mjs";

const server = await fake();
let isShort = false;
server.answers["/api/v1/diff"] = () => diffAnswer(isShort);
const page = await openPage(server.url);
const STATE = { page: "diff", from: "now-10m" };
const TIME = `.diff-sides select[aria-label="A's time"]`;

const cells = (body) =>
  page.run(`[...document.querySelectorAll(".diff-table tbody.${body} tr[title]")].map((row) =>
    [...row.cells].map((cell) => [...cell.children].map((line) => line.textContent)))`);
const names = async (body) => (await cells(body)).map(([[name]]) => name);
const words = async (body) => Object.fromEntries((await cells(body)).map(([[name], , , confidence]) => [name, confidence.filter((line) => line !== "")]));

async function rows() {
  check(await page.open(STATE), "a comparison opens", page.complaints);
  equal(await names("functions"), ["burst", "grown", "retired", "busy", "rare", "fresh", "steady"], "functions come by the size of the change");
  const found = Object.fromEntries((await cells("functions")).map(([[name], ...rest]) => [name, rest]));
  equal(found.grown.slice(0, 2), [["+0.010 CPUs", "0.017 → 0.027 CPUs"], ["+60.0 %", "+40 … +80 %"]], "each with both sides and the interval");
  equal(found.burst[1], ["new", "at least × 41.0"], "what is new is marked, with the least it may be");
  equal(found.retired[1], ["gone", "at least −97 %"], "as is what is gone");
  equal(found.fresh[1], ["new", ""], "also of four samples");
  equal(await words("functions"), {
    burst: ["recorded", "within the usual variation of minutes"],
    grown: ["recorded", "stands out from minute to minute"],
    retired: ["recorded", "stands out from minute to minute"],
    busy: ["less than 5 %"],
    rare: ["within sampling noise"],
    fresh: ["within sampling noise"],
    steady: ["the same"],
  }, "two verdicts, each in its words");
  equal(await page.text(".diff-table .summary"),
    "3 of 6 functions with enough samples changed by more than 5 % and more than sampling explains; " +
    "2 stand out from minute to minute. 1 host joined: web-3 (0.900 CPUs). They count in the sizes, not in the confidence.",
    "all of it in a sentence");
  check((await page.text(".diff-table tbody.functions tr.title")).includes("12 with the smallest"), "what is not listed is said");
  await page.click(".diff-table th.confidence button");
  equal((await names("functions")).slice(0, 3), ["grown", "retired", "burst"], "a click on the head: the surest first");
  check(!("noise" in server.questions("diff")[0]), "the server is asked for no other statistic");
}

async function processes() {
  check(await page.open(STATE), "a comparison opens", page.complaints);
  equal(await names("processes"), ["api-server", "cron", "old-worker", "p4", "p5"], "processes first, a few of them");
  check((await page.texts(".diff-table tbody")).findIndex((text) => text.startsWith("processes")) === 0, "above the functions");
  await page.click(".diff-table tbody.processes button");
  equal((await names("processes")).length, 7, "the others by a click");
  equal(await page.run("document.activeElement.innerText"), "p6", "which leads the focus on");
  await page.click(".diff-table tbody.processes a");
  check(await page.wait("/[#&]process=api-server/.test(location.hash)"), "a process opens: both sides of it alone", await page.run("location.hash"));
  check(await page.open({ ...STATE, base_match: 'host="web-2"' }), "with a selector of A", page.complaints);
  await page.click(".diff-table tbody.processes a");
  check(await page.wait(`new URLSearchParams(location.hash.slice(1)).get("base_match") === '{host="web-2",process="api-server"}'`), "which is narrowed too");
}

async function graph() {
  check(await page.open(STATE), "a comparison opens", page.complaints);
  check(await page.waitText(".diff-legend", "less than 5 %, or within sampling noise"), "grey has its words");
  const said = async (name) => {
    await page.key("/");
    await page.run("document.activeElement.select()");
    await page.type(`^${name}$`);
    await page.key("Enter");
    check(await page.wait(`document.body.dataset.selected === '${name}'`), `to ${name}`);
    return (await page.text(".diff-strip")).split("\n").at(-1);
  };
  equal(await said("grown"), "+60.0 %", "a frame's change");
  equal(await said("busy"), "+2.2 % — less than 5 %", "one that is small");
  equal(await said("rare"), "+25.0 % — within sampling noise", "one that sampling explains");
  await page.axe("axe: verdicts");
}

async function short() {
  isShort = true;
  check(await page.open({ ...STATE, from: "now-2m" }), "two minutes open", page.complaints);
  const found = await words("functions");
  equal([found.burst, found.rare], [["recorded", "too short to tell"], ["within sampling noise"]], "too short to tell, and said so");
  check((await page.text(".diff-table .summary")).includes("2 minutes are too short to tell what stands out"), "in the sentence too", await page.text(".diff-table .summary"));
  check((await page.text(".diff-sides")).includes("moved back to end where B begins"), "A was moved, and is told to be");
  isShort = false;
}

async function presets() {
  const now = Date.now();
  const build = (digit, first_seen, samples) => ({ ...MODULE_STATES[1], name: "painter", build_id: digit.repeat(40), first_seen, samples });
  server.modules = [build("a", now - 40 * 3_600_000, 0), build("b", now - 20 * 3_600_000, 50)];
  check(await page.open(STATE), "a comparison opens", page.complaints);
  equal((await page.texts(`${TIME} > option`)).slice(0, 6),
    ["just before, as long", "10 minutes earlier", "an hour earlier", "a day earlier", "a week earlier", "the same time"], "what A can be");
  await page.set(TIME, "-10m");
  check(await page.wait("/base=-10m/.test(location.hash)"), "ten minutes earlier");
  const asked = server.questions("diff").at(-1);
  check(Number(asked["base.until"]) <= Date.now() - 9.5 * 60_000, "are asked for", asked);
  check(await page.wait(`document.querySelectorAll('${TIME.replaceAll("'", "\\'")} optgroup option:not([disabled])').length === 1`), "a program with a build before is offered");
  await page.set(TIME, "previous " + "b".repeat(40));
  check(await page.wait("/base_build_id=aaaa/.test(location.hash)"), "the previous build", await page.run("location.hash"));
  const last = server.questions("diff").at(-1);
  equal([last.build_id, last["base.build_id"]], ["b".repeat(40), "a".repeat(40)], "one build against the other");
  check(Math.abs(Number(last["base.until"]) - (now - 20 * 3_600_000)) <= 60_000, "of the time before the new one came", last);
  server.modules = MODULE_STATES;
  await page.open(STATE);
  check(await page.wait(`document.querySelector('${TIME.replaceAll("'", "\\'")} optgroup').textContent === 'none is known'`), "where there is none it says so");
}

async function everywhere() {
  for (const [width, height, what] of [[400, 800, "a telephone"], [700, 425, "200 %"], [1400, 850, "a desk"]]) {
    await page.resize(width, height);
    check(await page.open(STATE), `opens on ${what}`, page.complaints);
    equal(await page.run("document.documentElement.scrollWidth - window.innerWidth"), 0, `${what}: nothing is too wide`);
    const wide = await page.run("(() => { const s = document.querySelector('.diff-table .scroller'); return s.scrollWidth - s.clientWidth; })()");
    check(wide <= 0, `${what}: nor is the table`, wide);
    await page.shots(`diff-verdicts-${width}`);
    await page.axe(`axe: ${what}`);
    page.quiet(what);
  }
}

await run(rows, processes, graph, short, presets, everywhere);
