// SPDX-License-Identifier: Apache-2.0
// Each view of the page on the recorded profile, by keyboard, and back and forth.

import { check, equal, openPage, run, startRecorded } from "./page.mjs";
import { calm, openView, viewsOf } from "./views.mjs";

const server = await startRecorded();
const page = await openPage(server.url);
const views = await viewsOf(page);

// Where Tab leads has to be seen: by an outline, or whatever else differs from when it has no focus.
const FOCUSED = `(() => {
  const at = document.activeElement;
  if (at === null || at === document.body) return null;
  const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(at);
  const seen = (outlineStyle !== "none" && parseFloat(outlineWidth) > 0) || boxShadow !== "none";
  const name = at.getAttribute("aria-label") ?? at.labels?.[0]?.innerText ?? (at.innerText || at.title);
  return { what: at.tagName + "#" + at.id + "." + at.className, seen, name: (name ?? "").trim() };
})()`;

async function focus() {
  for (const view of views) {
    await openView(page, view, server.range);
    const unseen = [];
    const nameless = [];
    const met = new Set();
    for (let i = 0; i < 60; i++) {
      await page.key("Tab");
      const at = await page.run(FOCUSED);
      if (at === null) {
        break;
      }
      met.add(at.what + at.name);
      if (!at.seen) unseen.push(at.what);
      if (at.name === "") nameless.push(at.what);
    }
    check(met.size >= 8, `${view.title}: Tab leads through it`, [...met]);
    equal(unseen, [], `${view.title}: the focus is seen`);
    equal(nameless, [], `${view.title}: what has the focus has a name`);
  }
}

async function keys() {
  await page.open({ page: views[0].page, ...server.range });
  for (const view of [...views.slice(1), views[0]]) {
    await page.key("g");
    await page.key(view.key);
    check(await page.wait(`document.body.dataset.page === '${view.page}'`), `g ${view.key}: ${view.title}`);
    await calm(page);
    await page.key("?");
    check(await page.visible("#help-dialog"), `${view.title}: ? lists its keys`);
    check((await page.text("#help-keys")).includes(view.title), `${view.title}: under its name`, await page.text("#help-keys"));
    await page.key("Escape");
    check(await page.wait("!document.getElementById('help-dialog').open"), `${view.title}: Escape closes the list`);
  }
  await page.key("?");
  await page.axe("help");
  await page.key("Escape");
}

async function history() {
  await page.open({ page: views[0].page, ...server.range });
  const walked = [views[0], ...views.slice(1)];
  for (const view of walked.slice(1)) {
    await page.click(`#pages a:has-text("${view.title}")`);
    check(await page.wait(`document.body.dataset.page === '${view.page}'`), `a click opens ${view.title}`);
    equal(await page.run("document.querySelector('#pages [aria-current=page]').innerText"), view.title, `${view.title}: its tab says so`);
  }
  for (const view of walked.slice(0, -1).reverse()) {
    await page.page.goBack();
    check(await page.wait(`document.body.dataset.page === '${view.page}'`), `Back leads to ${view.title}`, await page.data("page"));
  }
  for (const view of walked.slice(1)) {
    await page.page.goForward();
    check(await page.wait(`document.body.dataset.page === '${view.page}'`), `Forward leads to ${view.title}`, await page.data("page"));
  }
  await page.open({ page: "nonsense", ...server.range });
  check(await page.waitText("#notice", `no page “nonsense”`), "an address of no page says so", await page.text("#notice"));
  equal(await page.data("page"), views[0].page, "and shows the first");
  await calm(page);
  page.quiet("history");
}

await run(focus, keys, history);
