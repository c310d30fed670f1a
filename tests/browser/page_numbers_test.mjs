// SPDX-License-Identifier: Apache-2.0
// The page over a host as it is in earnest (tests/tools/big_host.py): each number it shows is the one that a sum made
// by other means says.

import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { check, equal, openPage, ROOT, run, Server, WORK } from "./page.mjs";

execFileSync("/usr/bin/python3", ["-B", "tests/tools/big_host.py", "reports", WORK], { cwd: ROOT, stdio: ["ignore", 2, 2] });
const { from, until, samples } = JSON.parse(fs.readFileSync(path.join(WORK, "truth.json"), "utf8"));
const NAME = 1; // of a frame
const server = await Server.start();
for (const minute of [0, 1, 2]) {
  const answer = await server.post(fs.readFileSync(path.join(WORK, `${minute}.otlp`)));
  if (!answer.ok) {
    throw new Error(await answer.text());
  }
}
const page = await openPage(server.url);
const range = { from: String(from), until: String(until) };

// The sum over the samples of a type that this is true of.
function sum(type, what, isMeant = () => true) {
  return samples.reduce((all, s) => all + (s.type === type && isMeant(s) ? s[what] : 0), 0);
}

const goesThrough = (name) => (s) => s.frames.some((frame) => frame[NAME] === name);
const endsIn = (name) => (s) => s.frames.at(-1)[NAME] === name;

// "7.13 %" as the page writes a share.
function percent(part, whole) {
  const value = (100 * part) / whole;
  return `${value.toFixed(value >= 9.995 ? 1 : 2)} %`;
}

// Rows of the table: name → [own share, share].
async function table() {
  await page.wait("document.querySelectorAll('#top-body tr').length > 3");
  const rows = await page.run(`[...document.querySelectorAll("#top-body tr")].map((row) =>
    [row.querySelector(".name button.link").innerText, ...[...row.querySelectorAll("td.number")].map((cell) => cell.firstChild.data)])`);
  return Object.fromEntries(rows.map(([name, own, all]) => [name, [own, all]]));
}

async function by_samples() {
  for (const type of ["on-cpu", "off-cpu"]) {
    await page.open({ page: "graph", type, value: "samples", ...range });
    const all = sum(type, "samples");
    equal((await page.text("#stat-samples")).replaceAll(",", ""), `${all} samples`, `${type}: samples are the truth's`);
    equal(await page.count("#stat-value"), 0, `${type} by samples: said once`);
    const rows = await table();
    const fault = "exc_page_fault";
    equal(rows[fault], [percent(sum(type, "samples", endsIn(fault)), all), percent(sum(type, "samples", goesThrough(fault)), all)],
      `${type} by samples: shares of the table`);
    const cells = await page.run(`[...document.querySelectorAll("#top-body td.number")].map((cell) => cell.scrollWidth - cell.clientWidth)`);
    const all_off = await said(all, rows);
    check(all_off.length > 3 && all_off.every(([got, want]) => got === want), `${type} by samples: ± of each row, which all weigh the same`, JSON.stringify(all_off.slice(0, 4)));
    const [title, parts] = await page.run(`(cell => [cell.title, [...cell.childNodes].map((part) => part.textContent)])(document.querySelector("#top-body td.number"))`);
    equal(title, `${parts[0]} ${parts[1]} · ${parts[2]}`, `${type} by samples: a number's tooltip has all of it, where the table is narrow`);
    check(cells.every((over) => over <= 1), `${type} by samples: no number is clipped`, cells.join(" "));
  }
}

// What the table says of chance in counts, and what it should: 1.96 √(n (1 − p) + …), of p n samples (openapi.yaml, "Errors").
async function said(all, rows) {
  const off = await page.run(`[...document.querySelectorAll("#top-body tr")].map((row) =>
    [row.querySelector(".name button.link").innerText, ...[...row.querySelectorAll("td.number")].map((cell) =>
      [cell.querySelector(".off").innerText, cell.querySelector(".quiet").innerText])])`);
  return off.flatMap(([name, ...cells]) =>
    cells.map(([got, count], i) => {
      const n = Number(count.replaceAll(",", ""));
      const share = n / all;
      const error = (m) => Math.round(1.959964 * Math.sqrt(m + 1));
      const squares = error(n) ** 2 * (1 - 2 * share) + share ** 2 * error(all) ** 2;
      const digits = rows[name][i].split(" ")[0].split(".")[1]?.length;
      const want = n === 0 || digits === undefined ? "" : `± ${(Math.ceil((100 * Math.sqrt(squares) * 10 ** digits) / all) / 10 ** digits).toFixed(digits)}`;
      return [got, want];
    }),
  );
}

const KINDS = { native: "native", kernel: "[k] kernel", jvm: "(jit)", cpython: "interpreted" };

// Entries of the legend: text → share.
async function legend() {
  await page.wait("document.querySelectorAll('#legend .legend-entry').length > 0");
  const entries = await page.run(`[...document.querySelectorAll("#legend .legend-entry")].map((entry) =>
    [entry.childNodes[1].data, entry.querySelector(".share").innerText])`);
  return Object.fromEntries(entries);
}

function sharesBy(part, isMeant = () => true) {
  const sums = {};
  for (const s of samples.filter((s) => s.type === "on-cpu" && isMeant(s))) {
    const name = part(s.frames.at(-1));
    sums[name] = (sums[name] ?? 0) + s.value;
  }
  const all = sum("on-cpu", "value", isMeant);
  return Object.fromEntries(Object.entries(sums).filter(([name]) => name !== "").map(([name, value]) => [name, percent(value, all)]));
}

const language = ([type, , file]) => (type === "kernel" ? "Kernel" : file.endsWith(".py") ? "Python" : file.endsWith(".cc") ? "C++" : file.endsWith(".java") ? "Java" : "not told");

async function legends() {
  for (const invert of ["", "1"]) {
    const state = { page: "graph", ...range, ...(invert && { invert }) };
    await page.open(state);
    equal(await legend(), sharesBy(([type]) => KINDS[type]), `legend of kinds${invert && ", leaf first"}: shares of everything`);
    await page.open({ ...state, colour: "module" });
    equal(await legend(), sharesBy((frame) => frame[4]), `legend of modules${invert && ", leaf first"}`);
  }
  await page.open({ page: "graph", ...range, colour: "language" });
  equal(await legend(), sharesBy(language), "legend of languages");
  equal(await page.count("#stat-cut, #max_nodes"), 0, "nothing is said to be cut, and no number of frames to choose");
  check(Number(await page.data("nodes")) < 20_000, "no more frames come than the screen shows", await page.data("nodes"));
}

async function searches() {
  for (const name of ["exc_page_fault", "walk", "leaf_3_12"]) {
    await page.open({ page: "graph", ...range, search: `^${name}$` });
    const share = percent(sum("on-cpu", "value", goesThrough(name)), sum("on-cpu", "value"));
    check(await page.wait(`document.getElementById("search-result").innerText.replace(/ ± [\\d.]+/g, "").startsWith("${share} · ")`), `${name}: the search's share is of everything`,
      `${await page.text("#search-result")}, not ${share}`);
    check(await page.wait(`/ % ± [\\d.]+ · /.test(document.getElementById("search-result").innerText)`), `${name}: with ±`, await page.text("#search-result"));
    if (name === "exc_page_fault") {
      const rows = await table();
      equal(rows[name][1], share, `${name}: the table's, too`);
    }
  }
  await page.open({ page: "graph", ...range, search: "^exc_page_fault$", zoom: "worker07" });
  const isIn = (s) => s.process === "worker07";
  const of = percent(sum("on-cpu", "value", goesThrough("exc_page_fault")), sum("on-cpu", "value"));
  const inZoom = percent(sum("on-cpu", "value", (s) => isIn(s) && goesThrough("exc_page_fault")(s)), sum("on-cpu", "value", isIn));
  check(await page.wait(`document.getElementById("search-result").innerText.replace(/ ± [\\d.]+/g, "").startsWith("${of} of all, ${inZoom} of the zoom · ")`),
    "zoomed it says what each share is of", await page.text("#search-result"));
}

// Zoomed: table, legend, chips, sandwich and exports are of the zoomed frame, and say so.
async function zoomed() {
  const isIn = (s) => s.process === "worker07";
  const all = sum("on-cpu", "value", isIn);
  const fault = "exc_page_fault";
  await page.open({ page: "graph", ...range });
  await table();
  await page.run(`location.hash += "&zoom=worker07"`);
  check(await page.waitText("#top-note", "in worker07"), "the table says whose functions they are", await page.text("#top-note"));
  const shares = [percent(sum("on-cpu", "value", (s) => isIn(s) && endsIn(fault)(s)), all), percent(sum("on-cpu", "value", (s) => isIn(s) && goesThrough(fault)(s)), all)];
  equal((await table())[fault], shares, "a zoom: the table's shares are of it");
  equal(await legend(), sharesBy(([type]) => KINDS[type], isIn), "the legend's are");
  equal((await page.text("#stat-samples")).replaceAll(",", ""), `${sum("on-cpu", "samples", isIn)} samples`, "and the samples");
  await page.run(`location.hash += "&sandwich=${fault}"`);
  check(await page.waitText(".sandwich-head", "within worker07"), "the sandwich is of it, and says so", await page.text(".sandwich-head"));
  check((await page.text(".sandwich-head")).includes(` · ${shares[1]}`), "with the same share", await page.text(".sandwich-head"));
  check(/total [\d.]+ \S+ ± [\d.]+ \S+ · [\d.]+ % ± [\d.]+/.test(await page.text(".sandwich-head")), "with ± of both", await page.text(".sandwich-head"));
  await page.click("#export summary");
  const [download] = await Promise.all([page.page.waitForEvent("download"), page.click("#export button:has-text('folded')")]);
  const lines = fs.readFileSync(await download.path(), "utf8").trim().split("\n");
  equal(lines.reduce((value, line) => value + Number(line.slice(line.lastIndexOf(" "))), 0), all, "an export is of it, whole");
}

// A relative time is one time for all that a view asks.
async function one_time() {
  const asked = () => page.requests.filter((url) => /api\/v1\/(flamegraph|top|sandwich|modules)\?/.test(url)).map((url) => new URL(url).searchParams);
  await page.open({ page: "graph", from: "now-15m", until: "now" });
  await table();
  const [first, ...others] = asked();
  equal(first.get("from"), "now-15m", "the server says which time now is");
  await page.click("#top-body .unfold");
  check(await page.wait("document.querySelectorAll('#top-body tr.caller').length > 0 && !document.querySelector('#top-body tr.caller').innerText.includes('Loading')"), "callers unfold");
  await page.click("#invert");
  await page.wait("document.querySelector('#invert').getAttribute('aria-pressed') === 'true'");
  await page.run(`location.hash += "&zoom=worker59"`);
  await page.waitText("#top-note", "in worker59");
  await page.run(`location.hash = location.hash.replace("&invert=1", "") + "&sandwich=memcpy"`);
  await page.waitText(".sandwich-head", "within worker59");
  const times = new Set([...others, ...asked().slice(1)].map((query) => `${query.get("from")} ${query.get("until")}`));
  equal(times.size, 1, "table, callers, inverted, zoom and sandwich are about one time");
  check([...times].every((text) => /^\d+ \d+$/.test(text)), "which is a fixed one", [...times].join(", "));
  page.quiet("all of it");
}

await run(by_samples, legends, searches, zoomed, one_time);
