// SPDX-License-Identifier: Apache-2.0
// The picture and the page of /flamegraph?format=svg and html in a real browser, opened as files without a
// network: zoom, search, figures, and names that would like to be scripts.

import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { check, equal, openPage, run, Server, WORK } from "./page.mjs";
import { report } from "./views.mjs";

const page = await openPage(null);

// Asks a server of its own for both; what they are as addresses.
async function files(what, data = what) {
  const server = await Server.start({ data });
  equal((await server.post(report(what))).status, 200, "the report is taken");
  const urls = [];
  for (const format of ["svg", "html"]) {
    const file = path.join(WORK, `${what}.${format}`);
    fs.writeFileSync(file, Buffer.from(await (await server.ask("/api/v1/flamegraph?format=" + format)).arrayBuffer()));
    urls.push(pathToFileURL(file).href);
  }
  return [server, ...urls];
}

async function opened(url, ready) {
  await page.go(url);
  check(await page.wait(ready), `${path.basename(url)} opens`, page.complaints);
}

const svgFrame = (name) => `[...document.querySelectorAll('#frames > g')].find((g) => g.querySelector('title').textContent.startsWith('${name}'))`;
const svgWidth = (name) => page.run(`Number(${svgFrame(name)}.querySelector('rect').getAttribute('width'))`);

async function clickFrame(name, button) {
  const [x, y] = await page.run(`((b) => [b.x + b.width / 2, b.y + b.height / 2])(${svgFrame(name)}.querySelector('rect').getBoundingClientRect())`);
  await page.mouse(x, y, button);
}

async function picture() {
  const [, url] = await files("plain");
  await opened(url, "document.querySelector('input')");
  await page.shot("svg");
  equal(await page.count("#frames > g"), 11, "svg: a frame for each node");
  check(Math.abs((await svgWidth("parse")) - 1180 * 0.8) < 0.01, "svg: 80 % of the value, 80 % of the width", await svgWidth("parse"));
  const details = () => page.run("document.getElementById('details').textContent");
  const says = async (words, text) =>
    check(await page.wait(`document.getElementById('details').textContent.includes('${words}')`), text, await details());
  await clickFrame("parse");
  await says("parse", "svg: what is under the pointer");
  check((await details()).includes("80.0 %") && (await details()).includes("/srv/parse.py:1"), "svg: with share and source", await details());
  await clickFrame("parse", "left");
  check(await page.wait("document.documentElement.dataset.zoom === 'parse (/srv/parse.py)'"), "svg: a click zooms");
  const widths = "[...document.querySelectorAll('#frames > g')].filter((g) => g.style.display !== 'none')" +
    ".map((g) => Math.round(g.querySelector('rect').getAttribute('width')))";
  equal(await page.run(widths), [1180, 1180, 1180, 1180, 1180, 295], "svg: the frame and its callers fill the width");
  equal(await page.run(svgFrame("tiny") + ".style.display"), "none", "svg: others are gone");
  await page.shot("svg-zoom");
  await page.key("Escape");
  check(await page.wait("document.documentElement.dataset.zoom === 'all'"), "svg: Escape zooms back");
  check(Math.abs((await svgWidth("parse")) - 944) < 0.01, "svg: to all of it");
  await page.key("/");
  await page.type("^read");
  await page.mouse(5, 5);
  await says("found: 35.0 % in 2 frames", "svg: search");
  equal(await page.count("#frames .hit"), 2, "svg: both stand out");
  await page.shot("svg-search");
  await page.key("Escape");
  check(await page.wait("!document.querySelector('.hit')"), "svg: Escape ends the search");
  const words = await page.run("document.documentElement.textContent");
  for (const told of ["100 samples of 1 host; taken 104, lost 4 (3.85 %)", "4 ring_full", "5 no end"]) {
    check(words.includes(told), "svg: the accounting is printed: " + told, words.slice(-900));
  }
  page.quiet("svg");
}

async function html() {
  const [, , url] = await files("plain", "again");
  await opened(url, "document.body.dataset.shown");
  await page.shot("html");
  const has = async (selector, words, text) => check(await page.waitText(selector, words), text, await page.text(selector));
  await has("#title", "1.01 s", "html: the total");
  for (const words of ["100", "ring_full", "no end"]) {
    await has("#accounting", words, "html: accounting: " + words);
  }
  equal((await page.texts("#functions .name")).slice(0, 2), ["parse", "read_it"], "html: functions, the hottest first");
  await page.click("#by-total");
  equal((await page.texts("#functions .name"))[2], "parse", "html: by what they call, too");
  await page.point(4, 0.1);
  await has("#hover-card", "parse", "html: what is under the pointer");
  await has("#hover-card", "80.0 %", "html: and its share");
  await page.point(4, 0.1, "left");
  check(await page.wait("document.body.dataset.zoom.endsWith('main (/srv/main.py);parse (/srv/parse.py)')"), "html: a click zooms", await page.data("zoom"));
  await page.key("/");
  await page.type("^read");
  await has("#search-result", "25.0 % of the zoom in 1 frame", "html: search in the zoom");
  await page.key("Escape");
  equal(await page.data("zoom"), "", "html: Escape zooms back");
  await page.key("/");
  await page.type("^read");
  await has("#search-result", "35.0 % in 2 frames", "html: search");
  equal(await page.count("#functions tr"), 1, "html: the table too");
  await page.shot("html-search");
  await keys();
  page.quiet("html");
}

// The flame graph's keys, with the search for ^read still there.
async function keys() {
  const has = async (name, want, text) => check(await page.wait(`document.body.dataset.${name} === ${JSON.stringify(want)}`), text, await page.data(name));
  const zoomed = async (end, text) => check(await page.wait(`document.body.dataset.zoom.split(";").pop().startsWith(${JSON.stringify(end)})`), text, await page.data("zoom"));
  await page.run("document.getElementById('search').blur()");
  await page.key("n");
  await has("selected", "read_it", "html: n goes to a match");
  await page.key("ArrowUp");
  await page.key("ArrowDown");
  await page.key("ArrowUp");
  await page.key("Enter");
  await zoomed(await page.data("selected"), "html: arrows select, Enter zooms");
  await page.key("-");
  await page.key("0");
  await has("zoom", "", "html: 0 shows all");
  await page.key("+");
  check(await page.wait("document.body.dataset.zoom !== ''"), "html: + zooms in", await page.data("zoom"));
  await page.key("Escape");
  await page.key("k");
  await has("recursion", "direct", "html: k collapses recursion");
  await page.key("k");
  await page.key("k");
  await has("recursion", "", "html: and shows it again");
  await page.key("r");
  check(await page.wait("document.getElementById('search').value === '' && document.body.dataset.zoom === ''"), "html: r resets");
  equal((await page.texts("#keys dt")).length, 17, "html: the keys are listed");
}

async function hostile() {
  const [server, ...urls] = await files("hostile");
  const ready = ["document.querySelector('input')", "document.body.dataset.shown"];
  for (const [i, what] of ["svg", "html"].entries()) {
    await opened(urls[i], ready[i]);
    await page.shot("hostile-" + what);
    equal(await page.run("typeof window.pwned"), "undefined", `${what}: no name became a script`);
    page.quiet("hostile " + what);
  }
  const shown = await page.run("JSON.parse(document.getElementById('profile').textContent).graph.names");
  const names = JSON.parse(report("names").toString());
  check(shown.includes(names[0]) && shown.includes(names[2]) && shown.join("").includes(names[13].slice(0, 2)),
    "html: the names are all there", shown.slice(0, 5));
  for (const format of ["svg", "html"]) {
    await page.go(`${server.url}/api/v1/flamegraph?format=${format}`);
    check(await page.wait("document.querySelector('input')"), `${format}: the policy that the server sends lets our script run`,
      page.complaints);
    equal([await page.run("typeof window.pwned"), page.complaints], ["undefined", []], `${format}: and no other`);
  }
}

await run(picture, html, hostile);
