// SPDX-License-Identifier: Apache-2.0
// The flame graph, its table, search, menu and keys, in a real browser on answers written for these tests.

import { holdsForAnyData } from "./any_data.mjs";
import { MODULES } from "./fake_answers.mjs";
import { check, equal, fake, openPage, run } from "./page.mjs";

const server = await fake();
const page = await openPage(server.url);
const GRAPH = { page: "graph" };

async function written_answers() {
  await holdsForAnyData(page, "written answers", {});
}

async function zoomIs(path, text) {
  check(await page.wait(`document.body.dataset.zoom === ${JSON.stringify(path)}`), text, await page.data("zoom"));
}

async function zoomEnds(path, text) {
  check(await page.wait(`document.body.dataset.zoom?.endsWith(${JSON.stringify(path)})`), text, await page.data("zoom"));
}

async function has(selector, text, what) {
  check(await page.waitText(selector, text, 5), what, await page.text(selector));
}

async function status() {
  await page.open(GRAPH);
  equal((await page.text("#stat-lost")).replace("\n", ""), "!lost 12 (1.17 %)", "losses are shown with a sign");
  await page.page.focus("#stat-lost");
  await has("#tip", "9: the kernel's ring buffer was full", "a tip says why samples were lost");
  await has("#tip", "3: the agent's queue", "by each reason");
  equal(await page.text("#stat-incomplete"), "incomplete 3.64 % mostly code without frame pointers",
    "incomplete share and the reason of most");
  await page.page.focus("#stat-incomplete");
  const modules = `2.95 % code without frame pointers — in libssl.so.3 80.0 %, ${"cd".repeat(20)} 20.0 %`;
  await has("#tip", modules, "a tip has all reasons and the modules behind each");
  await has("#tip", "0.69 % 32-bit process", "also those without modules");
  equal(await page.text("#stat-unsymbolized"), "unsymbolized 2.85 %", "time in functions without names");
  equal(await page.text("#stat-value"), "10.3 s · avg 0.003 CPUs", "value in human units");
  check(await page.waitText("#pick-process", "all (3)"), "processes to choose from");
  await has("#legend", "[k] kernel", "the legend names the kernel's mark");
}

async function zones() {
  await page.cdp.send("Emulation.setTimezoneOverride", { timezoneId: "Asia/Kolkata" });
  check(await page.open({ page: "graph", from: String(Date.UTC(2026, 10, 23, 23, 43)), until: String(Date.UTC(2026, 10, 23, 23, 48)) }), "opens far in the east");
  const shown = async () => [await page.text("#zone option:checked"), (await page.text("#stat-range")).split(" ").at(-1), await page.run("document.getElementById('custom-from').value")];
  equal(await shown(), ["local, UTC+05:30", "UTC+05:30", "2026-11-24T05:13"], "times are local, and say so");
  await page.set("#zone", "utc");
  check(await page.wait("document.getElementById('stat-range').innerText.endsWith(' UTC')"), "or UTC");
  equal(await shown(), ["UTC", "UTC", "2026-11-23T23:43"], "as are the fields that one fills in");
  check(await page.run("location.hash.includes('zone=utc')"), "and the link that others get");
  await page.cdp.send("Emulation.setTimezoneOverride", { timezoneId: "" });
}

// What is relative and does not end now is said in the fields as what it is now.
async function relative_times() {
  await page.open({ page: "graph", from: "now-17m", until: "now-2m" });
  const [from, until] = await page.run(`["custom-from", "custom-until"].map((id) => new Date(document.getElementById(id).value).getTime())`);
  equal(until - from, 15 * 60_000, "two relative times are as far apart as they say");
  check(Math.abs(Date.now() - until - 2 * 60_000) < 60_000, "and as long ago", new Date(until).toISOString());
}

async function hover() {
  await page.open(GRAPH);
  // The middle of level 8 under the left part: skip_space, inlined.
  await page.point(8, 0.05);
  await page.point(7, 0.05);
  const card = "#hover-card";
  await has(card, "skip_space() (inlined)", "hovering tells name and mark");
  await has(card, "src/json.cc:88", "line");
  await has(card, "28.6 %", "share of the caller");
  await has(card, MODULES[0].build_id, "and module and build-id");
  await page.point(8, 0.71);
  await has(card, "[k] tcp_sendmsg_locked", "kernel frames carry [k]");
  await page.shot("hover");
}

async function table() {
  await page.open(GRAPH);
  const first = () => page.run("document.querySelector('#top-body td.name button.link').title.split('\\n')[0]");
  const hottest = await first();
  check(hottest.startsWith("json::Parser") && hottest.endsWith("parse_value(int)"), "table: hottest by self first", hottest);
  await page.click("#top-by-total");
  check(["_start", "main"].includes(await first()), "table: sorts by total", await first());
  await page.set("#top-filter", "vmlinux");
  equal(await page.count("#top-body tr"), 5, "table: filters by module");
  page.quiet("table");
}

// Names and numbers have room on every screen, and no search makes the page wider than it.
async function widths() {
  for (const [width, height] of [[390, 844], [700, 800], [1280, 800], [1440, 900], [1920, 1080]]) {
    await page.resize(width, height);
    for (const search of ["", "parse", "("]) {
      await page.open({ ...GRAPH, search });
      await page.wait("document.querySelectorAll('#top-body tr').length > 3");
      const at = `${width} pixels, search "${search}"`;
      check((await page.run("document.querySelector('#top-body td.name').clientWidth")) >= 140, `${at}: functions have room for their names`,
        await page.run("document.querySelector('#top-body td.name').clientWidth"));
      const clipped = "[...document.querySelectorAll('#top-body td.number')].filter((cell) => cell.scrollWidth > cell.clientWidth + 1).length";
      equal(await page.run(clipped), 0, `${at}: no number is clipped`);
      equal(await page.run("document.documentElement.scrollWidth"), width, `${at}: the page is as wide as the screen`);
    }
    const end = "document.getElementById('stat-unsymbolized').getBoundingClientRect().right";
    check(width < 1280 || (await page.run(end)) <= width, `${width} pixels: the time without names is said in sight`, await page.run(end));
  }
  await page.resize(1400, 850);
  page.quiet("widths");
}

async function screens() {
  await page.open(GRAPH);
  await page.theme("dark");
  check(await page.wait("document.documentElement.dataset.theme === 'dark'"), "dark as the system is");
  await page.shot("dark");
  await page.theme("light");
  check(await page.wait("document.documentElement.dataset.theme !== 'dark'"), "and light again");
  await page.resize(1400, 850, 2); // which it is not told of: pointing at it has to do
  await page.point(8, 0.05);
  await page.point(7, 0.05);
  const dense = "(c => c.width === 2 * c.clientWidth)(document.getElementById('flame-canvas'))";
  check(await page.wait(dense), "sharp on a screen of twice the density");
  await page.shot("dense");
  await page.resize(900, 800);
  check(await page.wait("document.getElementById('flame-canvas').clientWidth > 700"), "narrow: the graph has the width");
  await page.shot("narrow");
  for (const width of [1400, 1000, 700]) {
    await page.resize(width, 800);
    equal(await page.run("document.getElementById('status').offsetHeight"), 31, `${width} pixels: what the picture contains has a line`);
  }
  check(await page.run("(s => s.scrollWidth > s.clientWidth)(document.getElementById('status'))"), "which can be longer than the window");
  await page.page.focus("#stat-unsymbolized");
  check(await page.wait("document.getElementById('stat-unsymbolized').getBoundingClientRect().right <= window.innerWidth"), "its end comes by Tab");
  await page.resize(1400, 850);
  page.quiet("screens");
}

async function choices() {
  await page.open(GRAPH);
  server.asked.length = 0;
  await page.click("#pick-process");
  await page.wait("document.querySelectorAll('#picker li').length === 3");
  await page.click("#picker li:last-child label");
  await page.key("Escape");
  await page.wait("document.body.dataset.shown >= 2");
  equal(server.questions("flamegraph").map(({ match }) => match), ['{process="worker;odd\\\\name"}'], "a process becomes a selector");
  await page.click("#more summary");
  check(await page.visible("#match"), "More opens");
  await page.shot("more");
  await page.key("Escape");
  check(!(await page.run("document.getElementById('more').open")), "Escape closes it");
  await page.set("#range", "custom");
  await page.set("#custom-from", "2026-01-02T03:04:05");
  await page.set("#custom-until", "2026-01-02T04:04:05");
  server.asked.length = 0;
  await page.shot("custom");
  await page.click("#custom-range button");
  await page.wait("document.body.dataset.shown >= 3");
  equal(server.questions("flamegraph").map(({ from, until }) => until - from), [3_600_000], "an hour of one's own");
  await page.open({ ...GRAPH, from: "now-2h" });
  equal(await page.run("document.getElementById('range').value"), "now-2h", "another relative time of the address is kept");
  check(!(await page.visible("#custom-range")), "and is no time of one's own");
  page.quiet("choices");
}

async function zoom() {
  await page.open(GRAPH);
  await page.point(6, 0.2, "left");
  await zoomEnds("parse_value(int)", "a click zooms");
  const address = await page.run("location.hash");
  check(address.includes("zoom="), "the zoom is in the address");
  await page.point(3, 0.9, "left");
  await zoomEnds("_start;main", "a click on a caller zooms out to it");
  await page.key("Escape");
  await zoomIs("api-server", "Escape goes to the next wider caller");
  await page.key("Escape");
  await zoomIs("", "and to all");
  await page.page.goBack();
  await zoomIs("api-server", "Back undoes it");
  await page.page.goForward();
  await zoomIs("", "Forward does it again");
  await page.go(page.base + address);
  await zoomEnds("parse_value(int)", "the address opens the same picture");
  await page.click("#trail button");
  await zoomIs("", "the trail leads back");
  await page.open({ ...GRAPH, zoom: "worker\\;odd\\\\name;spin" });
  await zoomIs("worker;odd\\name;spin", "';' and '\\' inside names survive the address");
  page.quiet("zoom");
}

// The address comes after the picture; Back does not wait for it.
async function back_at_once() {
  await page.open(GRAPH);
  await page.point(2, 0.2, "left");
  check(await page.wait("location.hash.includes('zoom=')"), "a zoom has an address");
  const first = await page.data("zoom");
  for (const frames of [0, 1, 2, 4]) {
    const box = await page.page.locator("#flame-canvas").boundingBox();
    const [x, y] = [box.x + box.width * 0.1, box.y + 19 * 5 + 9];
    await page.page.evaluate(async ([clientX, clientY, wait]) => {
      document.querySelector("#flame-scroller").dispatchEvent(new window.MouseEvent("click", { bubbles: true, clientX, clientY }));
      for (let i = 0; i < wait; i++) {
        await new Promise((done) => window.requestAnimationFrame(done));
      }
      window.history.back();
    }, [x, y, frames]);
    await page.page.waitForTimeout(400); // what a late zoom would undo
    await page.wait(`document.body.dataset.zoom === ${JSON.stringify(first)}`);
    equal(await page.data("zoom"), first, `Back ${frames} frames after a zoom leads to the one before`);
  }
}

async function search() {
  await page.open(GRAPH);
  const found = (words, text) => has("#search-result", words, text);
  await page.key("/");
  equal(await page.run("document.activeElement.id"), "search", "/ goes to the search");
  await page.type("entry_syscall");
  await found("17.6 % · 2 frames", "two frames, 179 of 1016 samples");
  await page.key("Escape");
  check(await page.wait("document.getElementById('search').value === ''"), "Escape ends the search");
  await page.key("/");
  await page.type("server::");
  await found("77.8 % · 2 frames", "a match inside a match counts once");
  await page.key("Enter");
  const selected = async (name, text) =>
    check(await page.wait(`document.body.dataset.selected?.startsWith('${name}')`), text, await page.data("selected"));
  await selected("server::EventLoop::run(int)", "Enter goes to the first match");
  await page.page.focus("#flame-scroller");
  await page.key("n");
  await selected("server::Connection", "n to the next");
  await found("2 of 2", "and says which");
  await page.key("N");
  await selected("server::EventLoop", "N to the one before");
  await page.open({ ...GRAPH, search: "(" });
  check(await page.run("document.getElementById('search').matches('[aria-invalid=true][aria-describedby=search-result]')"), "what is no expression is marked as none");
  check(await page.waitText("#search-result", "unterminated group"), "the reason stands beside it", await page.text("#search-result"));
  check(await page.waitText("#search-result", "letter by letter"), "and that it is looked for as it stands");
  await page.axe("an odd search");
  await page.open(GRAPH);
  await page.click("#top-body tr td.number");
  check(await page.wait("location.hash.includes('search=')"), "a click in the table searches the function");
  await found("41.2 % · 1 frame", "which has its share");
  await page.shot("search");
  page.quiet("search");
}

async function menu() {
  await page.open(GRAPH);
  await page.point(6, 0.2, "right");
  check(await page.visible("#frame-menu"), "the right button opens a menu");
  await page.key("ArrowDown");
  check((await page.run("document.activeElement.innerText")).startsWith("Sandwich"), "arrows move in it");
  await page.key("Escape");
  check(!(await page.visible("#frame-menu")), "Escape closes it");
  await page.point(6, 0.2, "right");
  server.asked.length = 0;
  await page.page.getByRole("menuitem", { name: "Hide" }).first().click();
  await page.wait("document.body.dataset.shown >= 2");
  equal(server.questions("flamegraph").map(({ hide }) => hide), ["^json::Parser<char, std::allocator<char> >::parse_value\\(int\\)$"],
    "Hide asks the server without the function");
  equal(await page.count("#filters button"), 1, "the filter is shown");
  await page.click("#filters button");
  await page.wait("document.body.dataset.shown >= 3");
  check(!("hide" in server.questions("flamegraph").at(-1)) && (await page.count("#filters button")) === 0, "and goes by a click");
  await page.key("?");
  check(await page.visible("#help-dialog"), "? explains");
  await page.shot("help");
  await page.click("#help-dialog form button");
  check(!(await page.visible("#help-dialog")), "its button closes it");
  page.quiet("menu");
}

// Rows have the frame's menu: by the right button, by a button of their own, by keys; and fingers have it too.
async function menus_everywhere() {
  await page.open(GRAPH);
  const items = "#frame-menu [role=menuitem]";
  await page.point(6, 0.2, "right");
  const ofFrame = (await page.texts(items)).map((text) => text.split("\n")[0]);
  await page.key("Escape");
  const first = "#top-body tr:first-child";
  await page.pointAt(`${first} .name button.link`, "right");
  check(await page.wait("document.querySelector('#frame-menu').hidden === false"), "the right button opens the menu of a row");
  const ofRow = (await page.texts(items)).map((text) => text.split("\n")[0]);
  check(ofRow.length > 5 && ofRow.every((text) => ofFrame.some((known) => known.split(" ")[0] === text.split(" ")[0])), "it is the frame's", [ofRow, ofFrame]);
  await page.key("Escape");
  await page.page.hover(first);
  await page.click(`${first} .more`);
  check(await page.visible("#frame-menu"), "so does its button");
  await page.key("Escape");
  await page.key("f");
  await page.key("ArrowDown");
  await page.key("m");
  check(await page.visible("#frame-menu"), "and a key");
  await page.page.getByRole("menuitem", { name: "Sandwich" }).click();
  check(await page.waitText(".sandwich", "Callers"), "it does what it says");
  await page.open(GRAPH);
  await page.cdp.send("Emulation.setTouchEmulationEnabled", { enabled: true });
  const box = await page.page.locator("#flame-canvas").boundingBox();
  const touch = async (x, y, held) => {
    await page.cdp.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: [{ x, y }] });
    await page.page.waitForTimeout(held);
    await page.cdp.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
  };
  await touch(box.x + box.width * 0.2, box.y + 19 * 6 + 9, 800);
  check(await page.visible("#frame-menu"), "a finger held on a frame opens it");
  await page.page.waitForTimeout(400);
  check(!(await page.run("location.hash.includes('zoom')")) && (await page.visible("#frame-menu")), "and does not zoom");
  await page.key("Escape");
  await touch(box.x + box.width * 0.2, box.y + 19 * 6 + 9, 30);
  check(await page.wait("location.hash.includes('zoom')"), "a short touch zooms");
  await page.cdp.send("Emulation.setTouchEmulationEnabled", { enabled: false });
}

async function keys() {
  await page.open(GRAPH);
  for (let i = 0; i < 3; i++) {
    await page.key("ArrowDown");
  }
  equal(await page.data("selected"), "_start", "down goes to the widest callee");
  await page.key("ArrowRight");
  check((await page.data("selected")).startsWith("[incomplete"), "right to the neighbour", await page.data("selected"));
  await has("#spoken", "incomplete frame", "its kind is spoken");
  await has("#spoken", "total 3.64 %", "and its share");
  await page.key("ArrowUp");
  equal(await page.data("selected"), "api-server", "up to the caller");
  await page.key("Enter");
  await zoomIs("api-server", "Enter zooms");
  await page.key("t");
  check(await page.wait("document.getElementById('graph-page').dataset.view === 'graph'"), "t: graph only");
  check(!(await page.visible("#table-side")), "without the table");
}

async function detail() {
  await page.open({ ...GRAPH, service: "cut" });
  equal(await page.count("#stat-cut, #max_nodes"), 0, "what is too narrow to draw is no cut, and asks for no number of frames");
  const [asked] = server.questions("flamegraph").slice(-1);
  check(asked.max_nodes === undefined && Number(asked.min_share) > 0 && Number(asked.min_share) < 0.001,
    "as many frames are asked for as the screen shows", asked);
  await page.point(4, 0.1);
  await has("#hover-card", "narrower than a pixel", "which is said where they are");
  await page.click("#search");
  await page.type("fine|wide");
  const exact = "document.getElementById('search-result').innerText === '60.0 % · 1 frame'";
  check(await page.wait(exact), "a search is counted by the server, narrow frames too", await page.text("#search-result"));
  check(server.questions("top").some(({ search }) => search === "(?i)fine|wide"), "which is asked", server.questions("top"));
  await page.key("Escape");
  server.asked.length = 0;
  await page.point(3, 0.3, "left");
  check(await page.wait("document.body.dataset.detail === '6'"), "zooming into a cut subtree loads it", await page.data("detail"));
  equal(server.questions("flamegraph").map(({ root }) => root), ["job;outer;wide"], "asked for by its path");
  await page.point(4, 0.3);
  await has("#hover-card", "fine_a", "which has its frames");
  await has("#hover-card", "45.0 % of all", "with shares of the whole picture, not of the subtree");
  await has("#hover-card", "75.0 % of its caller", "and of the caller");
  await page.key("Escape");
  await zoomIs("", "zooming out");
  await page.point(3, 0.8);
  await has("#hover-card", "other", "shows the whole picture again");
  await page.open({ ...GRAPH, service: "cut", zoom: "job;outer;wide;fine_b" });
  await zoomIs("job;outer;wide;fine_b", "an address leads to where only the finer answer reaches");
  await page.open({ ...GRAPH, service: "cut", max_nodes: "6" });
  equal(await page.text("#stat-cut"), "cut 60.0 %", "an old address asks for a number of frames, and is told what they lack");
  equal(server.questions("flamegraph").at(-1).max_nodes, "6", "as many");
}

await run(written_answers, status, zones, relative_times, hover, table, widths, screens, choices, zoom, back_at_once, search, menu, menus_everywhere, keys, detail);
