// SPDX-License-Identifier: Apache-2.0
// What is picked is what every view shows, and what pickers say is what the server counts: on the recorded profile.

import { check, equal, openPage, run, startRecorded } from "./page.mjs";
import { calm, openView, viewsOf } from "./views.mjs";

const server = await startRecorded();
const page = await openPage(server.url);
const SELECTING = /\/api\/v1\/(flamegraph|top|timeline|diff|hotspots|heatmap|traces|modules)\?/;
const samplesOf = async (match) => (await server.json("flamegraph", { ...server.range, type: "on-cpu", ...(match === "" ? {} : { match }) })).accounting.samples;
const number = (text) => Number(text.replaceAll(",", "").split(" ")[0]);

async function pick(label, value, not = false) {
  await page.click(`[id="pick-${label}"]`);
  check(await page.wait("document.querySelector('#picker[open] li') !== null"), `${label}: opens`);
  await page.click(`#picker li[data-value="${value}"] ${not ? "button" : "label"}`);
  await page.key("Escape");
}

async function views() {
  const names = (await server.json("labels/process", server.range)).values.map(({ value }) => value);
  const one = await Promise.all(names.map((name) => samplesOf(`{process="${name}"}`)));
  const want = one[0] + one[1];
  check(one.every((count) => count > 0) && want < (await samplesOf("")), "two of three processes");
  for (const { page: name, title } of await viewsOf(page)) {
    if (name === "agents") {
      continue;
    }
    for (const not of [false, true]) {
      await openView(page, { page: name, title }, { ...server.range, base: "-0s" });
      await page.wait("document.querySelector('#pick-process .picked')?.innerText === 'all (3)'");
      page.requests.length = 0;
      await (not ? pick("process", names[2], true) : pick("process", names[0]).then(() => pick("process", names[1])));
      await calm(page);
      const asked = page.requests.filter((url) => SELECTING.test(url) && !url.includes("group_by=process%2Cservice"));
      const last = asked.slice(asked.findLastIndex((url) => !url.includes("match=")) + 1);
      const wanted = not ? `process!="${names[2]}"` : `process=~"${names[0]}|${names[1]}"`;
      check(last.length > 0 && last.every((url) => new URL(url).searchParams.get("match")?.includes(wanted)), `${title}: each question is for ${wanted}`, asked);
      if (name !== "modules") {
        equal(number(await page.text("#stat-samples")), want, `${title}: shows their samples${not ? ", by not the third" : ""}`);
      }
      if (name === "diff") {
        const { base } = await (await fetch(last.find((url) => url.includes("/diff?")))).json();
        equal(base.accounting.samples, want, `${title}: so does the other side`);
      }
    }
  }
  page.quiet("views");
}

async function shares() {
  await openView(page, { page: "graph", title: "Flame graph" }, { ...server.range, match: 'process!="shapes_cc"' });
  await page.wait("document.getElementById('labels') !== null");
  const known = (await server.json("labels", server.range)).labels.map(({ name }) => name);
  await page.click("#labels");
  const offered = await page.texts("#frame-menu [role=menuitem] span");
  equal([...offered, "process", "host"].sort(), known.filter((name) => name !== "service").sort(), "all labels that the server knows; services are the processes here");
  await page.click("#frame-menu [role=menuitem]:has-text('thread')");
  check(await page.wait("document.querySelector('#picker[open] li') !== null"), "threads have a picker");
  const { series, accounting } = await server.json("timeline", { ...server.range, type: "on-cpu", group_by: "thread", match: '{process!="shapes_cc"}' });
  const want = series.map(({ labels, value }) => [labels.thread, ((100 * value) / accounting.value).toPrecision(3)]);
  const got = (await page.texts("#picker li")).map((text) => text.split("\n")).map(([name, , share]) => [name, share.replace(" %", "")]);
  equal(got, want, "with the server's shares, of what else is chosen");
  await page.key("Escape");
  await page.set("#group_by", "thread");
  check(await calm(page), "and stacks are grouped by them");
  equal((await page.run("location.hash")).includes("group_by=thread"), true, "as the address says");
  await openView(page, { page: "overview", title: "Overview" }, server.range);
  check(await page.wait("!document.querySelector('.overview .tools select').hidden"), "and rows of the overview");
  await page.set(".overview .tools select", "thread");
  check(await calm(page), "by any label");
  const all = await server.json("timeline", { ...server.range, type: "on-cpu", group_by: "thread" });
  const names = (await page.texts(".overview-table tbody td.name")).slice(0, all.series.length);
  equal(names, all.series.map(({ labels }) => labels.thread), "each of its values");
  await page.click(".overview-table tbody td.name a");
  check(await calm(page), "a row leads to its graph");
  equal(number(await page.text("#stat-samples")), all.series[0].samples, "of its samples");
  await openView(page, { page: "overview", title: "Overview" }, { ...server.range, value: "samples", match: `thread="${all.series[0].labels.thread}"` });
  const tiles = await page.texts(".overview .tile");
  const reported = all.accounting.reported_ms / 1000;
  equal(tiles[0].split("\n")[1], `${Math.round(all.series[0].samples / reported)}/s`, "and the overview's sums are of what is picked");
  const { accounting: waits } = await server.json("timeline", { ...server.range, type: "off-cpu", match: `{thread="${all.series[0].labels.thread}"}` });
  equal(tiles[1].split("\n")[1], `${Math.round(waits.samples / reported)}/s`, "of every type");
}

async function wall() {
  await openView(page, { page: "wall", title: "Wall clock" }, server.range);
  await page.wait("document.querySelector('#pick-process .picked')?.innerText === 'all (3)'");
  await page.click("#pick-process");
  check(await page.wait("document.querySelector('#picker[open] li') !== null"), "opens");
  const sums = await Promise.all(["on-cpu", "off-cpu"].map((type) => server.json("timeline", { ...server.range, type, group_by: "process" })));
  const total = sums.reduce((sum, { accounting }) => sum + accounting.value, 0);
  const of = (name) => sums.reduce((sum, { series }) => sum + (series.find(({ labels }) => labels.process === name)?.value ?? 0), 0);
  const got = (await page.texts("#picker li")).map((text) => text.split("\n"));
  equal(got.map(([, , share]) => share), got.map(([name]) => ((100 * of(name)) / total).toPrecision(3) + " %"), "shares of both, on the CPU and waiting");
}

await run(views, shares, wall);
