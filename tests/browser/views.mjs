// SPDX-License-Identifier: Apache-2.0
// What holds for each view of the page, whichever there are: they are read from its tabs.

import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { check, openPage, ROOT, WORK } from "./page.mjs";

// [{ page, title, key }] in the order of their tabs; key: after g.
export async function viewsOf(page) {
  await page.open({ page: "graph" });
  const tabs = await page.run("[...document.querySelectorAll('#pages a')].map((a) => [a.getAttribute('href'), a.innerText, a.title])");
  return tabs.map(([href, title, keys]) => {
    const state = new URLSearchParams(href.split("#")[1] ?? "");
    return { page: state.get("page") ?? "overview", title, key: keys.split(" ").at(-1) };
  });
}

// What a reader sees, without what only time changes.
export async function wordsOf(page) {
  const words = await page.run("document.getElementById('status').innerText + '\\n' + document.getElementById('main').innerText");
  return words.replace(/\d[\d.]* (s|min|h|d) ago/g, "… ago");
}

// Hidden: lines that may have gone, because a message takes their place.
export async function sameWords(page, before, text, hidden = 0) {
  const [was, is] = [before, await wordsOf(page)].map((words) => words.split("\n"));
  const lines = [...was.filter((line) => !is.includes(line)).map((line) => "- " + line), ...is.filter((line) => !was.includes(line)).map((line) => "+ " + line)];
  const gone = was.length - is.length;
  check(hidden > 0 ? gone <= hidden && is.every((line) => was.includes(line)) : was.join() === is.join(), text, lines.length > 0 ? lines.join("\n") : "the same lines in another order");
}

// All that a view asks for has come and is drawn: nothing is waited for, and nothing has changed for a moment.
export async function calm(page, seconds = 30) {
  const deadline = Date.now() + seconds * 1000;
  let before = null;
  while (Date.now() < deadline) {
    const busy = page.waiting.size > 0 || (await page.run("document.body.classList.contains('loading')"));
    const now = busy ? null : await wordsOf(page);
    if (now !== null && now === before) {
      return true;
    }
    before = now;
    await page.page.waitForTimeout(200);
  }
  return false;
}

export async function openView(page, view, state = {}) {
  const opened = await page.open({ page: view.page, ...state });
  check(opened && (await calm(page)), `${view.title}: opens`, page.complaints);
}

// A body for /v1development/profiles, see reports.py.
export function report(what) {
  const file = path.join(WORK, what + ".report");
  execFileSync("/usr/bin/python3", ["-B", "tests/browser/reports.py", what, file], { cwd: ROOT, stdio: ["ignore", 2, 2] });
  return fs.readFileSync(file);
}

export async function second(page) {
  return openPage(page.base, page.page.context().browser());
}
