// SPDX-License-Identifier: Apache-2.0
// Two builds of a program that run at the same time, compared: by choosing, by the address, swapped, against
// the server's own answer and hand-made sums.

import { check, equal, openPage, run, Server } from "./page.mjs";
import { report } from "./views.mjs";

const OLD = "0a".repeat(20);
const NEW = "0b".repeat(20);
const A = `.diff-sides select[aria-label="A's build"]`;
const B = `.diff-sides select[aria-label="B's build"]`;
const MS = 10.10101; // of a sample

const server = await Server.start();
equal((await server.post(report("builds"))).status, 200, "a report is taken");
const page = await openPage(server.url);

async function row(name) {
  const rows = await page.texts(".diff-table tbody tr");
  return rows.find((text) => text.startsWith(name))?.split(/\s*\t\s*|\n/) ?? [];
}

const seconds = (samples) => ((samples * MS) / 1000).toFixed(2);

async function shows(before, after, what) {
  const sums = `${seconds(before)} → ${seconds(after)} s`;
  check(
    await page.wait(`[...document.querySelectorAll(".diff-table tbody tr")].some((row) => row.innerText.startsWith("draw") &&
      row.innerText.includes(${JSON.stringify(sums)}))`),
    `${what}: draw ${sums}`,
    await row("draw"),
  );
}

const STATE = { page: "diff", from: "now-1h", norm: "raw", base: "-0s", group_by: "" };

async function chooses() {
  check(await page.open(STATE), "the same time opens", page.complaints);
  check(await page.wait(`document.querySelectorAll(${JSON.stringify(B + " optgroup")}).length === 1`), "a program with two builds is offered");
  equal(await page.count(`${A} option`), 3, "each of them, and that of B");
  await page.set(B, NEW);
  await shows(200, 200, "one build on both sides");
  await page.set(A, OLD);
  await shows(100, 200, "one against the other");
  const answer = await server.json("diff", { type: "on-cpu", from: "now-1h", norm: "raw", group_by: "", build_id: NEW, "base.build_id": OLD });
  const draw = answer.functions.find(({ name }) => name === "draw");
  equal([draw.before, draw.after], [100 * 10_101_010, 200 * 10_101_010], "as the server says");
  check((await page.text(".diff .filters")).includes("only stacks with the build"), "the filter is told");
  await page.page.goBack();
  await shows(200, 200, "Back");
  await page.page.goForward();
  await shows(100, 200, "forward");
}

async function swaps() {
  await page.key("x");
  await shows(200, 100, "x: the other way round");
  equal([await page.page.inputValue(A), await page.page.inputValue(B)], [NEW, OLD], "and so the choices");
  await page.click(".diff .filters button");
  check(await page.wait("!location.hash.includes('&build_id=')"), "a click on the chip takes B's away");
  await shows(200, 300, "all of them against one");
}

async function linked() {
  check(await page.open({ ...STATE, build_id: NEW, base_build_id: OLD }), "a link opens", page.complaints);
  await shows(100, 200, "by the address");
  check(await page.open({ ...STATE, build_id: "cc".repeat(20) }), "a build that nobody has", page.complaints);
  equal(await page.page.inputValue(B), "cc".repeat(20), "stays chosen");
  await page.open({ ...STATE, build_id: "nonsense" });
  check(await page.waitText("#message", "build_id"), "what is no build-id: the server's sentence");
  page.quiet("diff");
}

const chosen = () => page.run("[location.hash.match(/from=(\\d+)/)?.[1], location.hash.match(/until=(\\d+)/)?.[1], decodeURIComponent(location.hash.match(/base=([^&]*)/)?.[1] ?? '')]");

// Shift, arrows and Enter on the time line, or a drag.
async function brushes() {
  check(await page.open({ ...STATE, base: "before" }), "the time before opens", page.complaints);
  check(await page.wait("document.querySelectorAll('.diff-times .range').length === 2"), "both ranges stand on one time line");
  equal(await page.run("[...document.querySelectorAll('.diff-times .range text')].map((e) => e.textContent)"), ["A", "B"], "by their names");
  await page.key("a");
  check(await page.run("document.activeElement.classList.contains('plot')"), "a: the time line has the focus");
  for (const key of ["ArrowLeft", "ArrowLeft", "Shift+ArrowLeft", "Shift+ArrowLeft", "Enter"]) {
    await page.key(key);
  }
  check(await page.wait("/base=\\d{13}\\.\\.\\d{13}/.test(decodeURIComponent(location.hash))"), "arrows and Enter set A", await page.run("location.hash"));
  const [, , a] = await chosen();
  const [from, until] = a.split("..").map(Number);
  equal((until - from) % 60_000, 0, "to whole steps");
  const box = await page.page.locator(".diff-times .plot").boundingBox();
  await page.click(".diff-times button:has-text('B')");
  await page.page.mouse.move(box.x + box.width * 0.5, box.y + 30);
  await page.page.mouse.down();
  await page.page.mouse.move(box.x + box.width * 0.7, box.y + 30);
  await page.page.mouse.up();
  check(await page.wait("/[#&]from=\\d{13}/.test(location.hash)"), "a drag sets B", await page.run("location.hash"));
  equal((await chosen())[2], a, "and A stays where it is");
  await page.page.goBack();
  check(await page.wait("!/[#&]from=\\d{13}/.test(location.hash)"), "Back undoes it");
  await page.axe("axe: two ranges");
}

// The frames of the change are as those of any graph.
async function of_frames() {
  check(await page.open({ ...STATE, build_id: NEW, base_build_id: OLD }), "a link opens", page.complaints);
  check(await page.waitText("#diff-scroller [role=treeitem]", "A before"), "the tree for screen readers says both sides");
  await page.key("/");
  await page.type("draw");
  await page.key("Enter");
  check(await page.wait("document.body.dataset.selected === 'draw'"), "Enter: to the first match");
  await page.page.focus("#diff-scroller");
  await page.key("+");
  check(await page.wait("location.hash.includes('zoom=')"), "+: a step towards it");
  await page.key("m");
  await page.axe("axe: the menu of a frame of the change");
  await page.page.getByRole("menuitem", { name: "Focus" }).click();
  check(await page.wait("location.hash.includes('focus=') && document.body.dataset.page === 'diff'"), "its menu narrows both sides");
  check(await page.waitText(".diff .filters", "draw"), "which is told", await page.text(".diff .filters"));
  check(await page.open({ ...STATE, build_id: NEW, base_build_id: OLD }), "the same once more", page.complaints);
  const row = page.page.locator(".diff-table .functions tr:not(.title)", { hasText: "draw" }).first();
  await row.click({ button: "right" });
  await page.page.getByRole("menuitem", { name: "Focus" }).click();
  check(await page.wait("location.hash.includes('focus=') && document.body.dataset.page === 'diff'"), "a row has the same menu");
  check(await page.waitText(".diff .filters", "draw"), "of its function", await page.text(".diff .filters"));
}

async function from_a_frame() {
  await page.open({ page: "graph", from: "now-1h", group_by: "host" });
  await page.point(1, 0.2, "right");
  await page.key("Escape");
  await page.point(2, 0.2, "right");
  await page.page.getByRole("menuitem", { name: "Only stacks with this build of painter" }).click();
  check(await page.wait("/build_id=0[ab]/.test(location.hash)"), "a frame's menu narrows to its build");
  check(await page.wait("document.querySelector('#filters').innerText.includes('only stacks with the build')"), "which is told");
}

await run(chooses, swaps, linked, brushes, of_frames, from_a_frame);
