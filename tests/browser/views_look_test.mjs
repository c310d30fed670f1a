// SPDX-License-Identifier: Apache-2.0
// Each view of the page on the recorded profile: readable by everybody (axe-core), on a telephone, at 200 %.

import { check, openPage, run, startRecorded } from "./page.mjs";
import { calm, openView, viewsOf } from "./views.mjs";

const server = await startRecorded();
const page = await openPage(server.url);
const views = await viewsOf(page);

// Wider than the screen is only what scrolls by itself.
async function fits(view, text) {
  const wide = await page.run("document.documentElement.scrollWidth - window.innerWidth");
  const culprits = await page.run(
    "[...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > window.innerWidth + 1)" +
      ".slice(0, 8).map((e) => `${e.tagName}#${e.id}.${e.className}`)",
  );
  check(wide <= 0, `${view.title}: ${text}`, `${wide} pixels too wide: ${culprits}`);
}

async function looks() {
  for (const view of views) {
    await openView(page, view, server.range);
    page.quiet(view.title);
    for (const theme of ["dark", "light"]) {
      await page.theme(theme);
      await page.page.waitForTimeout(250);
      await page.axe(`${view.title}, ${theme}`);
    }
    await page.resize(400, 800);
    await calm(page);
    await fits(view, "fits a telephone");
    await page.shot(`view-${view.page}-narrow`);
    await page.resize(700, 425, 2);
    await calm(page);
    await fits(view, "fits at 200 %");
    await page.shot(`view-${view.page}-zoomed`);
    await page.resize(1400, 850);
    await calm(page);
    await page.shot(`view-${view.page}`);
    page.quiet(`${view.title}, in other sizes`);
  }
}

await run(looks);
