// SPDX-License-Identifier: Apache-2.0
// Now: the newest minutes by the second, live, and a burst that a drag takes to the second.

import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { check, equal, openPage, ROOT, run, Server, WORK } from "./page.mjs";

const REPORT = 5000;
const FROM = Math.floor(Date.now() / 60_000) * 60_000 - 240_000 + 2000; // two seconds into a minute
const BURST = [30, 34]; // of 20 s
const server = await Server.start();
await send(FROM, 46, BURST, "api");
const page = await openPage(server.url);

async function send(from, count, [first, last], name) {
  const directory = path.join(WORK, `live-${name}`);
  const tool = path.join(ROOT, "tests/browser/live_report.py");
  execFileSync("/usr/bin/python3", ["-B", tool, String(from), String(count), String(first), String(last), name, directory], {
    env: { ...process.env, FARFLAME_BUILD: process.env.FARFLAME_BUILD ?? "build" },
    stdio: ["ignore", 2, 2],
  });
  for (let i = 0; i < count; i++) {
    const answer = await server.post(fs.readFileSync(path.join(directory, String(i))));
    check(answer.status === 200, "a report is taken", answer.status);
  }
}

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const timelines = () => page.requests.filter((url) => url.includes("/timeline?"));

// The burst has ten times the height of what is around it, and lasts as long as it did.
async function burst() {
  const from = FROM - 2000;
  const until = from + 240_000;
  check(await page.open({ page: "time", from: String(from), until: String(until) }), "the time line opens", page.complaints);
  check(timelines().some((url) => url.includes("step=1s")), "by the second", timelines());
  const box = await page.page.locator(".time-page .plot").boundingBox();
  const width = box.width - 72;
  const { step_ms, reported } = await server.json("timeline", { from: String(from), until: String(until), step: "1s" });
  const last = reported.findLastIndex(([, ms]) => ms > 0);
  const shown = Math.min(240, last + REPORT / step_ms) * step_ms; // what is still on its way is not
  const x = (ms) => box.x + 64 + (width * (ms - from)) / shown;
  const card = async (ms) => {
    await page.page.mouse.move(x(ms + 500), box.y + 60);
    return page.text(".time-page .time-card");
  };
  const begin = FROM + BURST[0] * REPORT;
  const end = FROM + BURST[1] * REPORT;
  check((await card(begin - 1000)).includes("0.20 CPUs"), "just before it", await card(begin - 1000));
  for (const at of [begin, begin + 7000, end - 1000]) {
    check((await card(at)).includes("2.00 CPUs"), "in each of its seconds", await card(at));
  }
  check((await card(end)).includes("0.20 CPUs"), "and just after it", await card(end));
  await page.page.mouse.move(x(begin + 500), box.y + 60);
  await page.page.mouse.down();
  await page.page.mouse.move(x(end - 500), box.y + 60, { steps: 5 });
  await page.page.mouse.up();
  check(await page.wait(`location.hash.includes("from=${begin}&until=${end}")`), "a drag takes it to the second", await page.run("location.hash"));
  await page.page.goto(page.link({ page: "graph", from: String(begin), until: String(end) }));
  check(await page.waitText("#stat-samples", "4,000 samples"), "its flame graph has its samples", await page.text("#status"));
  check(await page.waitText("#top-body", "storm"), "of what it was");
  check(!(await page.text("#top-body")).includes("api"), "and of nothing else", await page.text("#top-body"));
  page.quiet("a burst");
}

async function live() {
  await page.open({ page: "time", from: "now-1h" });
  equal((await page.texts("#range option")).slice(0, 2), ["last minute", "last 5 min"], "presets");
  await page.set("#range", "now-5m");
  check(await page.wait("location.hash.includes('from=now-5m')"), "five minutes", await page.run("location.hash"));
  equal(await page.page.getAttribute("#live", "aria-pressed"), "false", "which does not follow");
  await page.click("#live");
  check(await page.wait("location.hash.includes('refresh=5') && location.hash.includes('from=now-5m')"), "Live follows, which the address keeps", await page.run("location.hash"));
  equal(await page.page.getAttribute("#live", "aria-pressed"), "true", "and the button says");
  await send(Date.now() - REPORT, 1, [9, 9], "newcomer");
  check(await page.waitText(".time-page .time-legend", "newcomer"), "what comes is shown by itself", await page.text(".time-page .time-legend"));
  await page.axe("axe: live");
}

// Not while somebody chooses a range or looks elsewhere.
async function pauses() {
  const asked = async () => {
    const before = timelines().length;
    await sleep(7000);
    return timelines().length - before;
  };
  check((await asked()) > 0, "it asks by itself");
  const box = await page.page.locator(".time-page .plot").boundingBox();
  await page.page.mouse.move(box.x + 200, box.y + 60);
  await page.page.mouse.down();
  await sleep(1000); // a question may be on its way
  await page.page.mouse.move(box.x + 300, box.y + 60, { steps: 3 });
  equal(await asked(), 0, "not during a drag");
  await page.page.mouse.move(box.x + 200, box.y + 60, { steps: 3 });
  await page.page.mouse.up();
  check((await asked()) > 0, "but after it");
  await page.run("Object.defineProperty(document, 'hidden', { configurable: true, get: () => true })");
  await sleep(1000);
  equal(await asked(), 0, "not in a tab that nobody sees");
  await page.run("delete document.hidden");
  check((await asked()) > 0, "but in one that is seen again");
  await page.page.mouse.move(box.x + 200, box.y + 60);
  await page.page.mouse.down();
  await page.page.mouse.move(box.x + 400, box.y + 60, { steps: 5 });
  await page.page.mouse.up();
  check(await page.wait("/from=\\d{13}&until=\\d{13}/.test(location.hash) && !location.hash.includes('refresh')"), "a drag ends it", await page.run("location.hash"));
  equal(await page.page.getAttribute("#live", "aria-pressed"), "false", "which the button says");
  await page.page.goBack();
  check(await page.wait("location.hash.includes('refresh=5')"), "Back follows again", await page.run("location.hash"));
  await page.click("#live");
  check(await page.wait("!location.hash.includes('refresh')"), "and a click ends it", await page.run("location.hash"));
  page.quiet("live");
}

// What the profiler itself takes stands below what it was put there to look at, and can be left out.
async function own() {
  const from = FROM - 60_000;
  await send(from, 2, [99, 99], "farflame-agent");
  const choice = { from: String(from - 2000), until: String(FROM + 178_000), by: "process" };
  check(await page.open({ ...choice }), "the overview opens", page.complaints);
  const names = () => page.texts(".overview-table td.name a");
  equal(await names(), ["api", "farflame-agent"], "the profiler's own process comes last");
  const answer = await server.json("timeline", { from: choice.from, until: choice.until, group_by: "process" });
  const all = answer.series.reduce((sum, { value }) => sum + value, 0);
  const itself = answer.series.find(({ labels }) => labels.process === "farflame-agent").value;
  const said = await page.text(".overview-table tr.own");
  check(said.includes(`farflame itself, ${((100 * itself) / all).toFixed(1)}`), "with its share", [said, itself, all]);
  await page.click(".overview-table tr.own button");
  check(await page.wait("!document.querySelector('.overview-table tr.own') && document.querySelector('.overview-table td.name a')"), "it is left out on demand");
  equal(await names(), ["api"], "and only it");
}

await run(burst, live, pauses, own);
