// SPDX-License-Identifier: Apache-2.0
// What servers may answer: nothing, late, too much, damaged, hostile; and what the page makes of it.

import { MODULE_STATES } from "./fake_answers.mjs";
import { check, equal, fake, note, openPage, run } from "./page.mjs";

const server = await fake();
const page = await openPage(server.url);
const of = (state) => ({ page: "graph", ...state });

async function has(selector, text, what) {
  check(await page.waitText(selector, text), what, await page.text(selector));
}

async function no_samples() {
  await page.open(of({ service: "empty" }));
  await has("#message", "filters", "empty with filters: says so");
  await page.open(of({ match: 'service="empty"' }));
  await page.click("#message button");
  check(await page.wait("document.body.dataset.shown >= 1"), "clearing the filters helps");
  await page.open(of({ match: 'service="empty"' }));
  await has("#message", "farflame-agent --server", "no agent known: says how to start one");
  check(await page.run(`(head => document.elementFromPoint(head.left + 9, head.top + 9)?.closest("#message") !== null)(
    document.querySelector("#top-scroller th").getBoundingClientRect())`), "it hides what there is nothing for");
  await page.shot("empty");
  page.quiet("no samples");
}

async function away() {
  server.broken = true;
  await page.open(of());
  await has("#message", "cannot be reached", "server away: says so");
  server.broken = false;
  await page.click("#message button");
  check(await page.wait("document.body.dataset.shown >= 1"), "Try again does");
  server.broken = true;
  await page.key("r");
  await has("#banner", "cannot be reached", "away later: a banner");
  check((await page.colours())[0] > 5, "and the picture stays");
  await page.shot("banner");
  server.broken = false;
  await page.click("#banner button");
  check(await page.wait("document.body.dataset.shown >= 2 && document.getElementById('banner').hidden"), "whose button tries again");
  page.quiet("away");
}

async function refused() {
  await page.open(of({ service: "error" }));
  await has("#message", "a quote is missing", "the server's own sentence is shown");
  check(await page.run("document.getElementById('match').getAttribute('aria-invalid') === 'true' && document.getElementById('match-why').textContent.includes('a quote is missing')"),
    "and beside the selector, which is marked");
  await page.open(of({ service: "html" }));
  await has("#message", "status 502", "a proxy's page is not");
  await page.open(of({ service: "damaged" }));
  await has("#message", "damaged: column parent, node 5", "a damaged answer is refused");
  page.quiet("refused");
}

async function slow() {
  await page.go(page.link(of({ service: "slow" })));
  check(await page.wait("document.getElementById('message').innerText === 'Loading…'", 5), "a slow answer: loading");
  check(await page.wait("document.body.dataset.shown >= 1"), "and then the picture");
  page.quiet("slow");
}

async function hostile() {
  await page.open(of({ service: "hostile" }));
  for (const key of ["ArrowDown", "ArrowDown", "ArrowDown", "Enter"]) {
    await page.key(key);
  }
  equal(await page.text("#stat-untold"), "!25.0 % of unknown processes", "of how many samples the process is not known");
  await page.page.focus("#stat-lost");
  await page.point(2, 0.5);
  await page.key("m");
  equal(await page.count("#main img, #main b, .card b, .card img, #status b"), 0, "names from strangers stay text");
  equal(await page.data("owned"), undefined, "and run nothing");
  check(await page.wait("document.body.dataset.zoom.includes('onerror')"), "and can be zoomed into");
  await page.key("Escape");
  await page.page.locator("#top-body tr").first().dispatchEvent("click");
  check(await page.wait("document.getElementById('search-result').innerText.startsWith('100 %')"), "and searched",
    await page.text("#search-result"));
  page.quiet("hostile");
}

// A page whose time the test moves on.
async function timed(state) {
  const own = await openPage(server.url, page.page.context().browser());
  await own.page.clock.install();
  await own.open(of(state));
  const shown = (times) => own.wait(`document.body.dataset.shown >= ${times}`, 10);
  return { own, shown, pass: (seconds) => own.page.clock.fastForward(seconds * 1000) };
}

async function names_coming() {
  server.modules = [{ ...MODULE_STATES[0], state: "converting" }];
  const { own, shown, pass } = await timed();
  check(await own.waitText("#stat-unsymbolized", "names are coming"), "while names are on their way: says so");
  await pass(5);
  check(await shown(2), "and asks again by itself");
  server.modules = MODULE_STATES;
  await pass(5);
  check(await shown(3), "once more");
  check(await own.wait("document.getElementById('stat-unsymbolized').innerText === 'unsymbolized 2.85 %'"), "says when they are there");
  server.asked.length = 0;
  await pass(600);
  await own.click("#stat-unsymbolized");
  check(await own.waitText("#modules-body", "no source has it"), "modules without names, and why");
  equal(server.questions("flamegraph"), [], "until none is coming any more");
  await own.shot("modules");
  own.quiet("names coming");
  await own.page.close();
}

async function refresh() {
  const { own, shown, pass } = await timed({ refresh: "60", zoom: "api-server;_start;main" });
  await pass(30);
  equal(await own.data("shown"), "1", "does not refresh early");
  await pass(31);
  check(await shown(2), "refreshes by itself");
  equal(await own.data("zoom"), "api-server;_start;main", "and keeps the zoom");
  await own.page.close();
}

async function big() {
  check(await page.open(of({ service: "big", max_nodes: "1000000" }), 120), "a million frames open", page.complaints);
  equal(await page.data("nodes"), "1000001", "all of them");
  note(`first paint after data: ${await page.data("paintMs")} ms`); // make bench measures
  const times = [];
  for (let level = 1; level <= 6; level++) {
    const before = await page.data("zoom");
    await page.point(level, 0.3, "left");
    if (await page.wait(`document.body.dataset.zoom !== ${JSON.stringify(before)}`, 5)) {
      times.push(Number(await page.data("zoomMs")));
    }
  }
  check(times.length >= 3, "clicks zoom", times);
  note(`zooms: ${times.join(", ")} ms`);
  await page.shot("big");
  await page.key("Home");
  await page.wait("document.body.dataset.zoom === ''");
  await page.key("/");
  await page.type("method_12[0-9]");
  await has("#search-result", "%", "a search over all of them");
  await page.shot("big-search");
  page.quiet("big");
}

await run(no_samples, away, refused, slow, hostile, names_coming, refresh, big);
