// SPDX-License-Identifier: Apache-2.0
// Each view of the page on names that strangers chose: markup, marks that turn text around, letters that
// nobody sees, four kilobytes.

import { check, equal, openPage, run, Server } from "./page.mjs";
import { calm, openView, report, viewsOf } from "./views.mjs";

const server = await Server.start();
await server.post(report("marks"));
await server.post(report("hostile"));
const page = await openPage(server.url);
const views = await viewsOf(page);

// Text, or what a screen reader says, in which a mark still works; and elements that only data can have made.
const FOUND = `(() => {
  const marks = /[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u061c\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ufeff]/;
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    if (node.nodeType === Node.TEXT_NODE) {
      if (marks.test(node.data) && !["SCRIPT", "STYLE"].includes(node.parentElement.tagName)) found.push("text: " + node.data.slice(0, 60));
      continue;
    }
    for (const name of ["title", "aria-label", "placeholder"]) {
      if (marks.test(node.getAttribute(name) ?? "")) found.push(name + ": " + node.getAttribute(name).slice(0, 60));
    }
    if (["IMG", "IFRAME", "OBJECT"].includes(node.tagName) || [...node.attributes].some((a) => a.name.startsWith("on"))) {
      found.push("element: " + node.outerHTML.slice(0, 80));
    }
  }
  if (marks.test(document.title)) found.push("title of the page");
  if (document.querySelectorAll("script").length !== 1) found.push("a second script");
  if (window.pwned !== undefined) found.push("a name ran: " + window.pwned);
  return found;
})()`;

async function names() {
  for (const view of views) {
    await openView(page, view);
    equal(await page.run(FOUND), [], `${view.title}: names stay text, and turn nothing around`);
    await page.shot(`names-${view.page}`);
    for (const [width, height] of [[1400, 850], [400, 800]]) {
      await page.resize(width, height);
      await calm(page);
      equal(await page.run("document.documentElement.scrollWidth"), width, `${view.title}: endless names leave ${width} pixels`);
    }
    await page.shot(`names-${view.page}-narrow`);
    await page.resize(1400, 850);
    page.quiet(`${view.title}, names`);
  }
}

async function chosen() {
  const processes = (await server.json("labels/process", { from: "now-1h", until: "now" })).values;
  check(processes.length >= 8, "the server has the names", processes.length);
  for (const { value } of processes) {
    await page.open({ page: "graph", process: value });
    await page.click("#pick-process");
    const ticked = "[...document.querySelectorAll('#picker li')].filter((row) => row.querySelector('input').checked).map((row) => row.dataset.value)";
    await page.wait(`(${ticked}).length > 0`);
    equal(await page.run(ticked), [value], `a choice of ${JSON.stringify(value).slice(0, 30)} is kept`);
    equal(await page.run("document.querySelectorAll('#picker li').length"), processes.length, "in a list of all");
    equal(await page.run(FOUND), [], "and does nothing else");
    equal(await page.run("document.documentElement.scrollWidth"), 1400, "and leaves the page as wide as it was");
  }
}

await run(names, chosen);
