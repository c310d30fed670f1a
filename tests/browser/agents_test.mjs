// SPDX-License-Identifier: Apache-2.0
// The list of agents: a real server's, and a thousand made-up ones, some of them ill.

import { check, equal, fake, openBrowser, openPage, run, startRecorded } from "./page.mjs";

const browser = await openBrowser();
const HOSTILE = '<img src=x onerror="document.body.dataset.owned=1">\u202eevil';

function agent(number, changed = {}) {
  return {
    host: `web-${String(number).padStart(4, "0")}`, version: "1.0.0", kernel: "6.1.0-37-amd64", rate_hz: 19, last_seen: Date.now() - 4000,
    taken: 100_000 + number, lost: 0, lost_by: {}, stacks: { complete: 99_000, no_table: 1000 }, lag_ms: 250, skew_ms: 2, ...changed,
  };
}

function fleet() {
  const agents = Array.from({ length: 1000 }, (_, number) => agent(number));
  Object.assign(agents[700], { last_seen: Date.now() - 300_000 });
  Object.assign(agents[800], { last_seen: Date.now() - 86_400_000 });
  Object.assign(agents[900], { lost: 5000, lost_by: { ring_full: 4000, odd_reason: 1000 } });
  Object.assign(agents[500], { skew_ms: -7000, version: "0.9.0", kernel: "5.10.0" });
  Object.assign(agents[300], { host: HOSTILE });
  return agents;
}

async function real() {
  const server = await startRecorded();
  const page = await openPage(server.url, browser);
  const { agents, now } = await server.json("agents");
  check(Math.abs(now - Date.now()) < 60_000, "the server tells its time", now);
  check(await page.open({ ...server.range, page: "agents" }), "opens", page.complaints);
  equal(await page.count(".agents-page tr[data-id]"), agents.length, "each agent has a row");
  const row = await page.text(".agents-page tr[data-id]");
  check(row.includes(agents[0].host) && row.includes(agents[0].taken.toLocaleString("en")), "with the server's numbers", row);
  check(row.includes(agents[0].version) && row.includes(agents[0].kernel), "its version and kernel", row);
  await page.key("ArrowDown");
  check(await page.waitText(".list-details h2", agents[0].host), "details");
  const { accounting } = await server.json("top", { ...server.range, match: `{host="${agents[0].host}"}`, limit: "1" });
  for (const { reason, modules } of accounting.incomplete_by.slice(0, 3)) {
    check(await page.waitText(".agents-page .stops", reason), `where stacks stop: ${reason}`, await page.text(".agents-page .stops"));
    check(modules.length === 0 || (await page.text(".agents-page .stops")).includes(modules[0].name || modules[0].build_id), "in which module");
  }
  await page.shots("agents-details");
  await page.axe("a real server's agents");
  page.quiet("agents");
}

const stand = await fake();
const page = await openPage(stand.url, browser);
const first = (column) => page.run(`document.querySelector('.agents-page tr[data-id] .col-${column}').innerText.trim()`);

async function thousand() {
  stand.agents = fleet();
  check(await page.open({ page: "agents" }), "a thousand agents open", page.complaints);
  check((await page.count(".agents-page tr[data-id]")) < 100, "only rows in sight are made", await page.count(".agents-page tr[data-id]"));
  equal(await page.run("document.querySelector('.agents-page table').getAttribute('aria-rowcount')"), "1001", "and the table says how many there are");
  equal((await page.texts(".agents-page tr[data-id] .col-state")).slice(0, 4).map((text) => text.replace("!", "").trim()), ["silent", "late", "look", "look"], "what is wrong comes first");
  check((await page.text(".agents-page .tools")).includes("2 late or silent"), "and is counted");
  equal(await page.run("document.body.dataset.owned"), undefined, "a host's name is no markup");
  const gap = await page.run(`(reason => {
    const before = document.createRange();
    before.setStart(reason.parentElement, 0);
    before.setEndBefore(reason);
    return reason.getBoundingClientRect().left - before.getBoundingClientRect().right;
  })(document.querySelector(".agents-page td.col-incomplete .reason"))`);
  check(gap >= 3, "the share of incomplete stacks and the reason stand apart", gap);
  await page.shots("agents");
  await page.key("End");
  check(await page.waitText(".list-details h2", "web-0999"), "End: the last one");
  check(await page.wait("document.querySelector('tr[data-id=\"web-0999\"]')?.getAttribute('aria-current') === 'true'"), "is in sight");
  const box = await page.run("(() => { const r = document.querySelector('tr[data-id=\"web-0999\"]').getBoundingClientRect(); return [r.top > 0, r.bottom <= innerHeight + 1]; })()");
  equal(box, [true, true], "wholly");
  await page.axe("a thousand agents");
}

async function orders_and_finds() {
  stand.agents = fleet();
  await page.open({ page: "agents", agent_order: "lost" });
  equal(await first("host"), "web-0900", "by lost samples");
  await page.click(".agents-page th.col-host button");
  check(await page.wait("location.hash.includes('agent_order=host')"), "the order is in the address");
  await page.key("/");
  await page.type("0.9.0");
  check(await page.wait("document.querySelectorAll('.agents-page tr[data-id]').length === 1"), "a version finds its hosts");
  equal(await first("skew"), "!−7.00 s", "a clock that is off has a sign");
  await page.set(".agents-page input", "ring_full");
  check(await page.wait("document.querySelector('.agents-page tr[data-id]')?.dataset.id === 'web-0900'"), "so does a reason");
  await page.key("Enter");
  await page.key("j");
  check(await page.waitText(".list-details", "ring buffer was full"), "reasons are in words", await page.text(".list-details"));
  check((await page.text(".list-details")).includes("odd_reason"), "unknown ones by their names");
  await page.set(".agents-page input", "nobody");
  check(await page.waitText(".agents-page .nothing", "No agent has these words"), "nothing found is said");
  await page.open({ page: "agents", host: "web-0042" });
  equal(await page.count(".agents-page tr[data-id]"), 1, "the host chosen above is the only one");
}

async function leads_on() {
  stand.agents = fleet();
  await page.open({ page: "agents", agent: "web-0900" });
  await page.page.getByRole("link", { name: "Flame graph" }).last().click();
  check(await page.wait("document.body.dataset.page === 'graph' && location.hash.includes('host=web-0900')"), "to the host's flame graph");
  await page.page.goBack();
  check(await page.wait("document.body.dataset.page === 'agents' && !document.querySelector('.list-details').hidden"), "and back");
}

async function keeps_up() {
  stand.agents = fleet();
  await page.open({ page: "agents" });
  stand.agents = [agent(1, { host: "newcomer" })];
  check(await page.waitText(".agents-page", "newcomer", 15), "the list follows by itself");
  stand.answers["/api/v1/agents"] = () => ({ status: 500, body: { error: { code: "x", message: "The agents cannot be read." } } });
  check(await page.waitText(".agents-page .tools", "The agents cannot be read.", 15), "what it cannot have is said");
  check((await page.text(".agents-page")).includes("newcomer"), "and the old list stays");
  delete stand.answers["/api/v1/agents"];
}

async function none_yet() {
  stand.agents = [];
  await page.go(page.link({ page: "agents" }));
  check(await page.waitText("#message", "sudo farflame-agent --server " + stand.url), "no agent: the command line to start one");
  await page.axe("no agents");
  await page.page.getByRole("button", { name: /^Copy: sudo farflame-agent/ }).click();
  check(await page.waitText("#message .command button", "Copied"), "is copied by a button", await page.text("#message"));
  stand.agents = [agent(1)];
  check(await page.waitText(".agents-page tr[data-id]", "web-0001", 15), "the first one appears by itself");
  page.quiet("agents");
}

await run(real, thousand, orders_and_finds, leads_on, keeps_up, none_yet);
