// SPDX-License-Identifier: Apache-2.0
// What has to hold of the flame graph for every server with samples.

import { check } from "./page.mjs";

export async function holdsForAnyData(page, text, state = { from: "now-24h" }) {
  check(await page.open({ page: "graph", ...state }), `${text}: opens and draws`);
  check(page.complaints.length === 0, `${text}: no error on the console`, page.complaints);
  const [kinds, drawn] = await page.colours();
  check(kinds > 5 && drawn > 0.01, `${text}: the canvas has frames on it`, [kinds, drawn]);
  check((await page.count("#top-body tr")) > 0, `${text}: the table has functions`);
  check((await page.text("#stat-samples")).includes("samples"), `${text}: the accounting says samples`);
  for (const key of ["ArrowDown", "ArrowDown", "ArrowDown", "Enter"]) {
    await page.key(key);
  }
  check(await page.wait("document.body.dataset.zoom !== ''"), `${text}: keys select and zoom`);
  const path = await page.data("zoom");
  await page.key("Home");
  check(await page.wait("document.body.dataset.zoom === ''"), `${text}: Home shows all`);
  await page.key("/");
  await page.type(`^${path.split(";").at(-1).replace(/[^a-zA-Z0-9_]/g, ".")}$`);
  check(await page.waitText("#search-result", "%"), `${text}: a name of the graph is found`, await page.text("#search-result"));
  check(await page.run("location.hash.includes('search=')"), `${text}: the search is in the address`);
  await page.shot(text.replace(/ /g, "-"));
  page.quiet(text);
}
