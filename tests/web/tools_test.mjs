// SPDX-License-Identifier: Apache-2.0
// Type check and lint of the page, and of the tests in JavaScript.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import path from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const WEB = "symbol-server/web";
const fetched = spawnSync("sh", ["tests/web/packages.sh"], { cwd: ROOT, encoding: "utf8" });

if (fetched.status !== 0) {
  test("types and rules of the page", { skip: fetched.stdout.trim() || "the tools cannot be had here" });
} else {
  check(createRequire(path.join(ROOT, WEB, "package.json")));
}

function check(tools) {
  const { ESLint } = tools("eslint");
  const eslint = new ESLint({ cwd: ROOT, overrideConfigFile: path.join(ROOT, WEB, "eslint.config.mjs") });

  test("the page has the types it says", () => {
    const { status, stdout } = spawnSync(process.execPath, [tools.resolve("typescript/bin/tsc"), "-p", WEB], { cwd: ROOT, encoding: "utf8" });
    assert.equal(status, 0, stdout.split("\n").slice(0, 30).join("\n"));
  });

  test("the page and the tests keep the rules", async () => {
    const found = (await eslint.lintFiles([WEB, "tests/browser", "tests/web"])).flatMap(({ filePath, messages }) =>
      messages.map(({ line, ruleId, message }) => `${path.relative(ROOT, filePath)}:${line}: ${message} (${ruleId})`),
    );
    assert.equal(found.length, 0, found.slice(0, 30).join("\n"));
  });

  // Rules that find nothing in what they are made to find would be no rules.
  test("markup from data, lost promises and types that say nothing would be found", async () => {
    const planted = 'export function show(name: any): void { document.body.innerHTML = String(name); fetch("x"); }';
    const [{ messages }] = await eslint.lintText(planted, { filePath: path.join(ROOT, WEB, "main.ts") });
    const rules = messages.map(({ ruleId }) => ruleId);
    for (const rule of ["no-restricted-properties", "no-floating-promises", "no-explicit-any"]) {
      assert.ok(rules.some((found) => found?.endsWith(rule)), `${rule}: ${rules}`);
    }
  });
}
