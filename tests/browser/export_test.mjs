// SPDX-License-Identifier: Apache-2.0
// Links and files of what the page shows, on the recorded profile.

import fs from "node:fs";
import zlib from "node:zlib";
import { check, equal, openPage, run, startRecorded } from "./page.mjs";
import { calm } from "./views.mjs";

const server = await startRecorded();
const page = await openPage(server.url);

// What a file of each format begins with, or holds.
const LOOKS = {
  HTML: /^<!doctype html/i, SVG: /<svg\b/, speedscope: /"\$schema"/, folded: /^.+;.+ \d+$/m,
  CSV: /^[a-z_]+,[a-z_,]+\r?\n/, Markdown: /^#|\|/m, JSON: /^\{/,
};

async function files() {
  for (const view of ["graph", "diff", "time", "overview", "wall", "modules", "agents"]) {
    await page.open({ page: view, ...server.range });
    await calm(page);
    await page.click("#export summary");
    const names = await page.texts("#export .panel > button > span");
    for (const [i, name] of names.entries()) {
      if (name.startsWith("Copy")) {
        continue;
      }
      if (!(await page.run("document.getElementById('export').open"))) {
        await page.click("#export summary");
      }
      const coming = page.page.waitForEvent("download");
      await page.page.locator("#export .panel > button").nth(i).click();
      const download = await coming;
      await page.wait("!document.getElementById('export').open");
      const bytes = fs.readFileSync(await download.path());
      const text = (name === "pprof" ? zlib.gunzipSync(bytes) : bytes).toString();
      check(name === "pprof" ? text.length > 100 : LOOKS[name].test(text), `${view}: ${download.suggestedFilename()} is ${name}`, text.slice(0, 200));
    }
    await page.axe(`${view} after its downloads`);
  }
  await page.key("e");
  await page.wait("document.getElementById('export').open");
  await page.axe("export");
}

async function links() {
  await page.page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.open({ page: "graph", from: "now-1h", search: "x" });
  await calm(page);
  await page.key("y");
  check(await page.waitText("#notice", "Link copied"), "y copies a link");
  const still = new URLSearchParams(new URL(await page.run("navigator.clipboard.readText()")).hash.slice(1));
  const range = [Number(still.get("from")), Number(still.get("until"))];
  check(range[1] - range[0] >= 3_600_000 && range[1] - range[0] <= 3_660_000 && range.every((time) => time % 60_000 === 0),
    "its times stand still, those of the picture: an hour in whole minutes", range);
  equal(still.get("search"), "x", "and its search stays");
  await page.key("e");
  await page.click("#export button:has-text('Copy live link')");
  equal((await page.run("navigator.clipboard.readText()")).includes("until="), false, "a live one's move on");
  await page.key("e");
  await page.page.fill("#export input", "the slow build");
  await page.click("#export button:has-text('Copy link')");
  const shared = await page.run("navigator.clipboard.readText()");
  await page.go(shared);
  check(await page.waitText("#note", "the slow build"), "a note goes with a link", await page.text("#note"));
  check(await page.wait("/^the slow build · on-cpu · .* UTC · farflame$/.test(document.title)"), "and titles it, with its time", await page.run("document.title"));
  await page.axe("a shared view");
}

await run(files, links);
