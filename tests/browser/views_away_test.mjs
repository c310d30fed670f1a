// SPDX-License-Identifier: Apache-2.0
// Each view of the page when the server is empty, or goes away.

import { check, openPage, run, Server, startRecorded } from "./page.mjs";
import { openView, sameWords, viewsOf, wordsOf } from "./views.mjs";

const server = await startRecorded();
const page = await openPage(server.url);
const views = await viewsOf(page);
const AWAY = "cannot be reached";

async function empty() {
  const nothing = await Server.start({ data: "empty" });
  const own = await openPage(nothing.url, page.page.context().browser());
  for (const view of views) {
    await openView(own, view);
    const command = "farflame-agent --server " + nothing.url;
    check(await own.waitText("#main", command, 10), `${view.title}: empty, says how to start an agent`, await wordsOf(own));
    await own.axe(`${view.title}, empty`);
    await own.shot(`empty-${view.page}`);
    own.quiet(`${view.title}, empty`);
  }
  await own.page.close();
  await nothing.stop();
}

async function gone() {
  for (const view of views) {
    await openView(page, view, server.range);
    const before = await wordsOf(page);
    await server.kill();
    await page.key("r");
    check(await page.waitText("#banner", AWAY), `${view.title}: the server goes away, a banner says so`, await page.text("#banner"));
    await sameWords(page, before, `${view.title}: what was there stays`, 12);
    await page.shot(`gone-${view.page}`);
    await page.axe(`${view.title}, server gone`);
    await server.again();
    const settled = Number(await page.data("settled"));
    await page.click("#banner button");
    check(await page.wait(`document.body.dataset.settled > ${settled} && document.getElementById('banner').hidden`),
      `${view.title}: Try again does, when it is back`, await page.text("#banner"));
  }
  page.quiet("gone and back");
}

await run(empty, gone);
