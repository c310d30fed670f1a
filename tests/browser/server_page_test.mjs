// SPDX-License-Identifier: Apache-2.0
// The web page as farflame-server serves it, over samples that our agent took on this host.
//
//   node server_page_test.mjs [URL]    URL: look at a running server instead, with samples of the last day

import path from "node:path";
import { holdsForAnyData } from "./any_data.mjs";
import { BUILD, check, end, equal, openPage, run, Server, skipAll, start, waitFor, whyNoBpf } from "./page.mjs";

const SECONDS = 4;

// So that an idle host has something to show.
function burn(seconds) {
  let sum = 0;
  for (const until = Date.now() + seconds * 1000; Date.now() < until; ) {
    sum += Math.sqrt(sum + 1);
  }
  return sum;
}

async function own_samples() {
  const server = await Server.start();
  const page = await openPage(server.url);
  await page.open({ page: "graph" });
  check(await page.waitText("#message", "farflame-agent --server " + server.url), "without samples: says how to start an agent",
    await page.text("#message"));
  page.quiet("without samples");
  const args = ["--server", server.url, "--frequency", "199", "--report-interval", "1s"];
  const agent = start(path.join(BUILD, "farflame-agent"), args, "agent.log");
  const samples = async () => (await server.json("flamegraph")).accounting.samples;
  check(await waitFor(async () => burn(0.5) && (await samples()) > 0, 60), "an agent's samples arrive");
  burn(SECONDS);
  await end(agent);
  await holdsForAnyData(page, "our own samples");
  await page.click("#pick-process");
  check(await page.wait("document.querySelectorAll('#picker li').length > 1"), "processes to choose from");
  await page.key("Escape");
  await own_process(page, server);
  await page.open({ page: "graph", from: "now-24h" });
  const counted = (await server.json("flamegraph", { from: "now-24h" })).accounting;
  const shown = (await page.text("#stat-samples")).replaceAll(",", "");
  equal(shown, `${counted.samples} samples`, "the page shows the server's count of samples");
}

// This test by its pid, as somebody would who knows it.
async function own_process(page, server) {
  await page.open({ page: "graph", from: "now-24h" });
  await page.click("#labels");
  await page.click("#frame-menu [role=menuitem]:has-text('pid')");
  await page.wait("document.querySelector('#picker[open] li') !== null");
  await page.type(String(process.pid));
  const row = `#picker li[data-value="${process.pid}"]`;
  check(await page.wait(`document.querySelector('${row}') !== null`), "a pid can be looked for");
  await page.click(row + " label");
  await page.key("Escape");
  const { samples } = (await server.json("flamegraph", { from: "now-24h", match: `{pid="${process.pid}"}` })).accounting;
  check(samples > 0, "there are samples of that process", samples);
  check(await page.waitText("#stat-samples", samples.toLocaleString("en-US")), "and no others are shown", await page.text("#stat-samples"));
}

async function given_url() {
  await holdsForAnyData(await openPage(url.split("#")[0]), "given server");
}

const url = process.argv.at(-1).startsWith("http") ? process.argv.pop() : "";
if (url !== "") {
  await run(given_url);
} else {
  const why = whyNoBpf();
  if (why !== "") {
    skipAll(why);
  }
  await run(own_samples);
}
