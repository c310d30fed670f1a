// SPDX-License-Identifier: Apache-2.0
// The web page in the words of its tests, in Debian's Chromium.
//
//   import { check, fake, openPage, run } from "./page.mjs";
//   const server = await fake();
//   const page = await openPage(server.url);
//   run(async function looks() { check(await page.open({ page: "graph" }), "opens"); });
//
// SHOTS=DIR leaves screenshots there.

import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { startFake } from "./fake_server.mjs";
import { PAGE, ROOT } from "./servers.mjs";
import { check, cleanUp, closeAtEnd, equal, skipAll } from "./tap.mjs";

export * from "./servers.mjs";
export * from "./tap.mjs";

const CHROMIUM = "/usr/bin/chromium";
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-component-update", "--disable-background-networking"];
const tools = createRequire(path.join(ROOT, "symbol-server/web/package.json"));

// Before a test has said anything.
function browserTools() {
  if (!fs.existsSync(CHROMIUM)) {
    skipAll("chromium is not installed");
  }
  try {
    return tools("playwright-core");
  } catch {
    skipAll("playwright-core is not there: sh tests/web/packages.sh fetches it");
  }
}

const playwright = browserTools();

export async function fake() {
  const server = await startFake(PAGE);
  cleanUp(() => server.stop());
  return server;
}

export async function openBrowser() {
  const handled = { handleSIGINT: false, handleSIGTERM: false, handleSIGHUP: false }; // by tap.mjs
  const browser = await playwright.chromium.launch({ executablePath: CHROMIUM, args: FLAGS, ...handled });
  closeAtEnd(() => browser.close());
  return browser;
}

// base: the server's URL; null: for files, see go().
export async function openPage(base, browser = null) {
  const context = await (browser ?? (await openBrowser())).newContext({ viewport: { width: 1400, height: 850 } });
  const page = await context.newPage();
  return new Page(base, page, await context.newCDPSession(page));
}

class Page {
  constructor(base, page, cdp) {
    this.base = base === null ? "" : base.replace(/\/*$/, "/");
    this.page = page; // Playwright's own, for what is not here
    this.cdp = cdp;
    this.complaints = [];
    this.requests = [];
    this.waiting = new Set(); // requests without an answer
    page.on("request", (request) => {
      this.requests.push(request.url());
      this.waiting.add(request);
    });
    page.on("requestfinished", (request) => this.waiting.delete(request));
    page.on("requestfailed", (request) => this.waiting.delete(request));
    page.on("pageerror", (error) => this.complaints.push(String(error?.stack ?? error)));
    page.on("console", (message) => {
      if (message.type() === "error") {
        const network = message.text().startsWith("Failed to load resource");
        this.complaints.push((network ? "network: " : "") + message.text());
      }
    });
  }

  // Loads the page with this state in its address; true when its view has shown an answer.
  async open(state = {}, seconds = 20) {
    await this.go(this.link(state));
    await this.wait("document.body?.dataset.settled >= 1 || document.querySelector('#message.error:not([hidden])')", seconds);
    return this.run("document.body.dataset.settled >= 1");
  }

  link(state) {
    const choice = new URLSearchParams(state).toString();
    return this.base + (choice === "" ? "" : "#" + choice);
  }

  // Leaving first makes it a load even where only the part after '#' differs.
  async go(url) {
    await this.page.goto("about:blank");
    this.forget();
    await this.page.goto(url);
  }

  // Of an expression in the page: its value, or what its promise comes to.
  run(expression) {
    return this.page.evaluate(expression);
  }

  // True as soon as the expression is; false when it never was.
  async wait(expression, seconds = 20) {
    const deadline = Date.now() + seconds * 1000;
    do {
      if (await this.run(`Boolean(${expression})`).catch(() => false)) {
        return true;
      }
      await new Promise((done) => setTimeout(done, 30));
    } while (Date.now() < deadline);
    return false;
  }

  waitText(selector, text, seconds) {
    const of = `document.querySelector(${JSON.stringify(selector)})`;
    return this.wait(`${of} !== null && ${of}.innerText.includes(${JSON.stringify(text)})`, seconds);
  }

  data(name) {
    return this.page.evaluate((key) => document.body.dataset[key], name);
  }

  text(selector) {
    return this.page.evaluate((s) => document.querySelector(s)?.innerText, selector);
  }

  texts(selector) {
    return this.page.evaluate((s) => [...document.querySelectorAll(s)].map((e) => e.innerText), selector);
  }

  count(selector) {
    return this.page.evaluate((s) => document.querySelectorAll(s).length, selector);
  }

  visible(selector) {
    return this.page.evaluate((s) => (document.querySelector(s)?.getClientRects().length ?? 0) > 0, selector);
  }

  // As KeyboardEvent.key names it, "Shift+Tab" for two.
  key(key) {
    return this.page.keyboard.press(key);
  }

  // Into what has the focus, at once as a paste does.
  type(text) {
    return this.page.keyboard.insertText(text);
  }

  click(selector, options = {}) {
    return this.page.locator(selector).first().click(options);
  }

  // Chooses in a <select>, or fills a field, and tells the page.
  async set(selector, value) {
    const field = this.page.locator(selector);
    if (await field.evaluate((e) => e instanceof HTMLSelectElement)) {
      await field.selectOption(value);
    } else {
      await field.fill(value);
    }
  }

  // Points at the middle of the first element, with a button of the mouse if given.
  async pointAt(selector, button = null) {
    const box = await this.page.locator(selector).first().boundingBox();
    await this.mouse(box.x + box.width / 2, box.y + box.height / 2, button);
  }

  // Points at the flame graph: so many levels below its root, at this part of its width.
  async point(level, share, button = null) {
    const box = await this.page.locator("#flame-canvas").boundingBox();
    await this.mouse(box.x + box.width * share, box.y + 19 * level + 9, button);
  }

  async mouse(x, y, button = null) {
    await this.page.mouse.move(x, y);
    if (button !== null) {
      await this.page.mouse.click(x, y, { button });
    }
  }

  // scale: of a dense screen. 200 % zoom is half the width and height at scale 2.
  async resize(width, height, scale = 1) {
    await this.page.setViewportSize({ width, height });
    await this.cdp.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: scale, mobile: false });
  }

  theme(colorScheme) {
    return this.page.emulateMedia({ colorScheme });
  }

  // How many different colours a canvas has, and the share of pixels unlike the ground.
  colours(selector = "#flame-canvas") {
    return this.page.evaluate((s) => {
      const canvas = document.querySelector(s);
      const d = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
      const seen = new Map();
      d.forEach((pixel) => seen.set(pixel, (seen.get(pixel) ?? 0) + 1));
      return [seen.size, 1 - seen.get(d[d.length - 1]) / d.length];
    }, selector);
  }

  async shot(name) {
    if (process.env.SHOTS) {
      await this.page.screenshot({ path: path.join(process.env.SHOTS, name + ".png") });
    }
  }

  // Light and dark, wide and as narrow as a telephone; leaves it light and wide.
  async shots(name) {
    for (const [width, height, look] of [[400, 800, "narrow"], [1400, 850, "wide"]]) {
      for (const theme of process.env.SHOTS ? ["dark", "light"] : []) {
        await this.resize(width, height);
        await this.theme(theme);
        await this.page.waitForTimeout(300);
        await this.shot(`${name}-${look}-${theme}`);
      }
    }
  }

  // Fails by what axe-core finds: roles, names, contrast, order.
  async axe(text) {
    if (await this.run("typeof axe === 'undefined'")) {
      // Not as a <script>: the page's policy has no room for one.
      await this.cdp.send("Runtime.evaluate", { expression: fs.readFileSync(tools.resolve("axe-core/axe.min.js"), "utf8") });
    }
    const found = await this.run("axe.run(document, { resultTypes: ['violations'] }).then((r) => r.violations)");
    const lines = found.map(
      ({ id, help, nodes }) =>
        `${id}: ${help}\n` + nodes.slice(0, 5).map((n) => `  ${n.target.join(" ")}: ${n.any[0]?.message ?? n.failureSummary}`).join("\n"),
    );
    check(lines.length === 0, `${text}: axe finds nothing`, lines.join("\n"));
  }

  // Fails by errors on the console, exceptions, and requests to anybody but the server; failing requests,
  // which tests provoke, are none.
  quiet(text) {
    equal(this.complaints.filter((line) => !line.startsWith("network:")), [], `${text}: no complaints`);
    const own = (url) => url.startsWith("data:") || url.startsWith("about:") || url.startsWith("blob:");
    const strange = this.requests.filter((url) => !own(url) && (this.base === "" ? !url.startsWith("file:") : !url.startsWith(this.base)));
    equal(strange, [], `${text}: asks no other host`);
  }

  forget() {
    this.complaints.length = 0;
    this.requests.length = 0;
  }
}
