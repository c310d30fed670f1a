// SPDX-License-Identifier: Apache-2.0
// The page beside speedscope and d3-flame-graph in the same Chromium on the same profile: first paint, zoom,
// hover, search, memory. A row a figure: what, ours, budget, peers, separated by tabs.
//
//   FARFLAME_BUILD=build node tests/bench/page.mjs    BENCH_PAGE_NODES=20000,1000000
//
// The peers come from npm into BUILD/bench/npm, where that can be had.

import { execFileSync } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import zlib from "node:zlib";
import { BUILD, fake, openBrowser, PAGE, Server } from "../browser/page.mjs";
import { asColumns, asNested, asSpeedscope, makeTree } from "./page_tree.mjs";

const NPM = path.join(BUILD, "bench/npm");
const PEERS = { speedscope: "1.25.0", "d3-flame-graph": "4.1.3", d3: "7.9.0" };
const SIZES = (process.env.BENCH_PAGE_NODES ?? "20000,1000000").split(",").map(Number);
const TIMES = 9; // of each measurement
const ZOOMS = 40; // for a percentile that one slow start does not decide
const PEER_NODES = { speedscope: 200_000, d3: 50_000 };

function row(what, ours, budget = "", peers = "") {
  console.log([what, ours, budget, peers].join("\t"));
}

function percentile(values, part) {
  const sorted = values.slice().sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
}

const ms = (value) => `${value.toFixed(0)} ms`;

// In the page, before its scripts: when the answer was there, when its picture was on the screen.
function watch() {
  window.bench = { presented: 0, events: [] };
  const presented = () => requestAnimationFrame(() => requestAnimationFrame((at) => (window.bench.presented = at)));
  addEventListener("DOMContentLoaded", () => {
    new MutationObserver(presented).observe(document.body, { attributeFilter: ["data-shown"] });
  });
  // From the event to the frame that shows what it did, as the browser has it.
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      window.bench.events.push({ name: entry.name, ms: entry.duration });
    }
  }).observe({ type: "event", durationThreshold: 16 });
}

async function newPage(browser) {
  return (await browser.newContext({ viewport: { width: 1600, height: 1000 } })).newPage();
}

async function firstPaint(page) {
  return page.evaluate(() => {
    const answers = performance.getEntriesByType("resource").filter(({ name }) => name.includes("/flamegraph"));
    return window.bench.presented - answers[answers.length - 1].responseEnd;
  });
}

// Durations of events of that name since the last call; those under 16 ms are not told and count as that.
async function eventTimes(page, name, count) {
  await page.waitForTimeout(300);
  const seen = await page.evaluate((wanted) => {
    const of = window.bench.events.filter((event) => event.name === wanted).map((event) => event.ms);
    window.bench.events.length = 0;
    return of;
  }, name);
  while (seen.length < count) {
    seen.push(16);
  }
  return seen;
}

// The renderer's memory that is nobody else's, with what its arrays hold.
function rendererMib(pid) {
  const text = fs.readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  const kib = [...text.matchAll(/^Private_\w+:\s+(\d+)/gm)].reduce((sum, match) => sum + Number(match[1]), 0);
  return kib / 1024;
}

function rendererOf() {
  const children = [];
  for (const name of fs.readdirSync("/proc").filter((entry) => /^\d+$/.test(entry))) {
    try {
      const command = fs.readFileSync(`/proc/${name}/cmdline`, "utf8");
      if (command.includes("--type=renderer")) {
        children.push([Number(name), rendererMib(name)]);
      }
    } catch {
      // It has ended meanwhile.
    }
  }
  return children.sort((a, b) => b[1] - a[1])[0]?.[0];
}

// Frames of half a pixel or more that lie on a pixel of the ground: none may be left out.
async function missing(page, tree) {
  return page.evaluate(({ x, width, level, levels }) => {
    const canvas = document.getElementById("flame-canvas");
    const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const high = 19 * (canvas.height / canvas.clientHeight);
    const ground = [...pixels.data.slice((canvas.height - 1) * canvas.width * 4, (canvas.height - 1) * canvas.width * 4 + 3)];
    let looked = 0;
    const lost = [];
    for (let i = 0; i < x.length; i++) {
      const wide = width[i] * canvas.width;
      const row = Math.floor((level[i] + 0.5) * high);
      if (wide < 0.5 || row >= canvas.height || level[i] >= levels) {
        continue;
      }
      looked++;
      const column = Math.min(canvas.width - 1, Math.floor(x[i] * canvas.width));
      const seen = [column, Math.min(canvas.width - 1, column + 1)].some((at) =>
        [0, 1, 2].some((channel) => pixels.data[(row * canvas.width + at) * 4 + channel] !== ground[channel]),
      );
      if (!seen && lost.length < 5) {
        lost.push([level[i], x[i], wide]);
      }
    }
    return { looked, lost };
  }, places(tree));
}

// Of frames that could be seen at all: left edge and width as parts of the whole.
function places({ parent, total, depth }) {
  const left = new Float64Array(parent.length);
  const next = new Float64Array(parent.length);
  const out = { x: [], width: [], level: [], levels: 40 };
  for (let i = 0; i < parent.length; i++) {
    if (i > 0) {
      left[i] = next[parent[i]];
      next[parent[i]] += total[i];
    }
    next[i] = left[i];
    if (depth[i] < out.levels && total[i] / total[0] > 1 / 4000) {
      out.x.push(left[i] / total[0]);
      out.width.push(total[i] / total[0]);
      out.level.push(depth[i]);
    }
  }
  return out;
}

async function ours(browser, tree) {
  const server = await fake();
  const columns = asColumns(tree);
  server.answers["/api/v1/flamegraph"] = () => ({
    status: 200,
    body: columns,
    headers: { "Content-Type": "application/vnd.farflame.columns" },
  });
  const found = { paint: [], json: 0 };
  let page = null;
  for (let i = 0; i < TIMES; i++) {
    await page?.close();
    page = await newPage(browser);
    await page.addInitScript(watch);
    await page.goto(`${server.url}/#page=graph&view=graph&max_nodes=1000000`);
    await page.waitForFunction(() => window.bench.presented > 0, null, { timeout: 60_000 });
    found.paint.push(await firstPaint(page));
  }
  found.missing = await missing(page, tree);
  found.again = await paintAgain(page);
  await page.waitForTimeout(500);
  await page.evaluate(() => (window.bench.events.length = 0));
  await interact(page, found);
  await page.waitForTimeout(1500);
  found.mib = rendererMib(rendererOf());
  server.stop();
  return found;
}

// The same answer for a page that is there already: without what a page's own start takes.
async function paintAgain(page) {
  const times = [];
  for (let i = 0; i < TIMES; i++) {
    await page.waitForTimeout(300);
    await page.evaluate(() => (window.bench.presented = 0));
    await page.keyboard.press("r");
    await page.waitForFunction(() => window.bench.presented > 0, null, { timeout: 60_000 });
    times.push(await firstPaint(page));
  }
  return times;
}

async function interact(page, found) {
  const box = await page.locator("#flame-canvas").boundingBox();
  for (let i = 0; i < ZOOMS; i++) {
    await page.mouse.click(box.x + box.width * (0.05 + (i * 0.37) % 0.9), box.y + 19 * (2 + (i % 5)) + 9);
    await page.waitForTimeout(120);
    await page.keyboard.press("Home");
    await page.waitForTimeout(60);
  }
  found.zoom = await eventTimes(page, "click", ZOOMS);
  found.hover = await hoverTimes(page, box);
  for (const text of ["method_12", "Class4.*method_3", "vector", "module7"]) {
    await page.fill("#search", text);
    await page.keyboard.press("Enter");
    await page.waitForTimeout(400);
  }
  found.search = await eventTimes(page, "keydown", 4);
  await page.fill("#search", "");
}

// Moves of the pointer to the frame after next: the browser tells no durations of these.
async function hoverTimes(page, box) {
  await page.evaluate(() => {
    window.bench.moves = [];
    document.getElementById("flame-scroller").addEventListener("mousemove", (e) => {
      const channel = new MessageChannel();
      channel.port1.onmessage = () => window.bench.moves.push(performance.now() - e.timeStamp);
      requestAnimationFrame(() => channel.port2.postMessage(0));
    });
  });
  for (let i = 0; i < 40; i++) {
    await page.mouse.move(box.x + 20 + ((i * 97) % (box.width - 40)), box.y + 40 + ((i * 31) % 400));
    await page.waitForTimeout(25);
  }
  return page.evaluate("window.bench.moves");
}

// --- the overview ---

// A real server with an hour of 50 services on 50 hosts, 10 processes each.
async function fiftyServices() {
  const server = await Server.start({ data: "overview" });
  const options = { agents: 50, apps: 50, processes: 10, stacks: 300, reports: 60, span: "1h", interval: "0ms", types: "on-cpu,off-cpu,mem-alloc" };
  const fleet = path.join(BUILD, "tests/tools/fleet/fleet");
  execFileSync(fleet, ["--server", server.url, ...Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)])], { timeout: 300_000 });
  return server;
}

// From the page's load to the frame with all of its answers, and from asking for the page.
function watchOverview() {
  window.bench = { presented: 0 };
  addEventListener("DOMContentLoaded", () => {
    new MutationObserver(() => {
      requestAnimationFrame(() => requestAnimationFrame((at) => (window.bench.presented ||= at)));
    }).observe(document.body, { attributeFilter: ["data-settled"] });
  });
}

async function overview(browser) {
  const server = await fiftyServices();
  const found = { load: [], all: [] };
  for (let i = 0; i < TIMES + 1; i++) {
    const page = await newPage(browser);
    await page.addInitScript(watchOverview);
    await page.goto(server.url);
    await page.waitForFunction(() => window.bench.presented > 0, null, { timeout: 60_000 });
    const [load, all] = await page.evaluate(() => [
      window.bench.presented - performance.getEntriesByType("navigation")[0].loadEventEnd,
      window.bench.presented,
    ]);
    found.load.push(load);
    found.all.push(all);
    found.rows = await page.locator(".overview-table tbody tr").count();
    await page.close();
  }
  await server.stop();
  return found;
}

async function overviewRows() {
  const browser = await openBrowser();
  const { load, all, rows } = await overview(browser);
  await browser.close();
  const text = (times) => `${ms(percentile(times, 0.5))} (${ms(Math.max(...times))})`;
  row(`overview of 50 services (${rows} rows): load to all answers shown`, text(load), "300 ms");
  row("  from asking for the page, a browser's first look in it", text(all));
}

// --- peers ---

function installPeers() {
  if (fs.existsSync(path.join(NPM, "node_modules/speedscope")) && fs.existsSync(path.join(NPM, "node_modules/d3-flame-graph"))) {
    return true;
  }
  fs.mkdirSync(NPM, { recursive: true });
  fs.writeFileSync(path.join(NPM, "package.json"), "{}");
  const wanted = Object.entries(PEERS).map(([name, version]) => `${name}@${version}`);
  try {
    execFileSync("npm", ["install", "--no-audit", "--no-fund", "--ignore-scripts", ...wanted], { cwd: NPM, stdio: "pipe", timeout: 300_000 });
    return true;
  } catch {
    return false;
  }
}

function serve(files) {
  const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".wasm": "application/wasm" };
  const server = http.createServer((request, response) => {
    const name = decodeURIComponent(new URL(request.url, "http://x").pathname);
    const body = files(name);
    response.writeHead(body === null ? 404 : 200, { "Content-Type": types[path.extname(name)] ?? "text/html" });
    response.end(body ?? "");
  });
  return new Promise((done) => server.listen(0, "127.0.0.1", () => done(server)));
}

// Until its picture is there: a canvas that is not of one colour any more.
async function speedscope(browser, tree) {
  const release = path.join(NPM, "node_modules/speedscope/dist/release");
  const profile = asSpeedscope(tree);
  const server = await serve((name) => {
    const file = path.join(release, name === "/" ? "index.html" : name);
    return name === "/profile.json" ? profile : fs.existsSync(file) && fs.statSync(file).isFile() ? fs.readFileSync(file) : null;
  });
  const page = await newPage(browser);
  const url = `http://127.0.0.1:${server.address().port}`;
  await page.goto(`${url}/#profileURL=${encodeURIComponent(url + "/profile.json")}`);
  await page.waitForFunction(() => document.querySelector("canvas") !== null && !document.body.innerText.includes("Loading"), null, { timeout: 300_000, polling: 50 });
  await page.waitForTimeout(50);
  const paint = await page.evaluate(() => {
    const answer = performance.getEntriesByType("resource").find(({ name }) => name.endsWith("profile.json"));
    return performance.now() - 50 - answer.responseEnd;
  });
  const mib = rendererMib(rendererOf());
  await page.close();
  server.close();
  return { paint, mib };
}

async function d3(browser, tree) {
  const folder = path.join(NPM, "node_modules");
  const scripts = ["d3/dist/d3.min.js", "d3-flame-graph/dist/d3-flamegraph.min.js"];
  const html = `<!doctype html><body><div id="c"></div><script src="/0.js"></script><script src="/1.js"></script><script>
    fetch("/p.json").then((r) => r.text()).then((text) => {
      const begin = performance.now();
      const chart = flamegraph().width(1600).cellHeight(18).transitionDuration(0).minFrameSize(1);
      d3.select("#c").datum(JSON.parse(text)).call(chart);
      requestAnimationFrame(() => requestAnimationFrame((at) => (window.paint = at - begin)));
    });</script>`;
  const profile = asNested(tree);
  const server = await serve((name) =>
    name === "/" ? html : name === "/p.json" ? profile : /^\/[01]\.js$/.test(name) ? fs.readFileSync(path.join(folder, scripts[Number(name[1])])) : null,
  );
  const page = await newPage(browser);
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  await page.waitForFunction(() => window.paint > 0, null, { timeout: 300_000 });
  const paint = await page.evaluate("window.paint");
  const mib = rendererMib(rendererOf());
  await page.close();
  server.close();
  return { paint, mib };
}

async function peerOf(measure, browser, count, most) {
  if (measure === null) {
    return null;
  }
  const nodes = Math.min(count, most);
  return { nodes, ...(await measure(browser, makeTree(nodes))) };
}

function peerText(name, peer, show) {
  return peer === null ? `${name} not here` : `${name} ${show(peer)}${peer.nodes === undefined ? "" : ` (${peer.nodes} frames)`}`;
}

async function size(count, hasPeers) {
  const tree = makeTree(count);
  const browser = await openBrowser();
  const found = await ours(browser, tree);
  await browser.close();
  const of = hasPeers ? await openBrowser() : null;
  const scope = hasPeers ? await peerOf(speedscope, of, count, PEER_NODES.speedscope) : null;
  const frames = hasPeers ? await peerOf(d3, of, count, PEER_NODES.d3) : null;
  await of?.close();
  const isLarge = count === 1_000_000;
  const both = (show) => `${peerText("speedscope", scope, show)}; ${peerText("d3", frames, show)}`;
  row(`page, ${tree.parent.length} frames: answer to picture, page's start in it`, `${ms(percentile(found.paint, 0.5))} (${ms(Math.max(...found.paint))})`,
    isLarge ? "200 ms" : "", both((peer) => ms(peer.paint)));
  row("  the same asked again, median (worst)", `${ms(percentile(found.again, 0.5))} (${ms(Math.max(...found.again))})`, isLarge ? "200 ms" : "");
  row("  frames of 0.5 pixels or more looked for, not drawn", `${found.missing.looked}, ${found.missing.lost.length}`, isLarge ? "0" : "");
  row("  zoom by a click, p95", ms(percentile(found.zoom, 0.95)), isLarge ? "33 ms" : "");
  row("  pointing, p95", ms(percentile(found.hover, 0.95)), isLarge ? "33 ms" : "");
  row("  search, worst of four", ms(Math.max(...found.search)), isLarge ? "150 ms" : "");
  row("  memory of the renderer", `${found.mib.toFixed(0)} MiB`, isLarge ? "250 MB" : "", both((peer) => `${peer.mib.toFixed(0)} MiB`));
  for (const [name, peer] of Object.entries({ speedscope: scope, "d3-flame-graph": frames })) {
    if (peer !== null) { // of as many frames at most
      console.log(["ratio", `page, ${count} frames: first picture beside ${name}'s of ${peer.nodes}`, percentile(found.paint, 0.5), peer.paint, 1].join("\t"));
    }
  }
}

const hasPeers = installPeers();
row("page's own code, gzip", `${(fs.statSync(PAGE).size / 1024).toFixed(1)} KiB`, "120 KB",
  hasPeers ? `speedscope's script ${speedscopeSize()}` : "");
await overviewRows();
for (const count of SIZES) {
  await size(count, hasPeers);
}
process.exit(0);

function speedscopeSize() {
  const release = path.join(NPM, "node_modules/speedscope/dist/release");
  const script = fs.readdirSync(release).filter((name) => name.endsWith(".js"));
  const bytes = script.reduce((sum, name) => sum + zlib.gzipSync(fs.readFileSync(path.join(release, name))).length, 0);
  return `${(bytes / 1024).toFixed(0)} KiB`;
}
