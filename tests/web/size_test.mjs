// SPDX-License-Identifier: Apache-2.0
// The whole page, as the server sends it, is small: nobody waits for it on a bad line.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import test from "node:test";
import zlib from "node:zlib";
import { fileURLToPath } from "node:url";

const WEB = fileURLToPath(new URL("../../symbol-server/web/", import.meta.url));
const LIMIT = 120 * 1024; // bytes, compressed

test("scripts, styles and markup", (t) => {
  const built = ["main.ts", "style.css"].map((name) => {
    const made = spawnSync("esbuild", [WEB + name, "--bundle", "--minify", "--target=es2020", "--log-level=error"], { maxBuffer: 1 << 26 });
    assert.equal(made.status, 0, String(made.stderr));
    return made.stdout;
  });
  const whole = Buffer.concat([...built, fs.readFileSync(WEB + "index.html")]);
  const size = zlib.gzipSync(whole, { level: 9 }).length;
  t.diagnostic(`${size} bytes`);
  assert.ok(size <= LIMIT, `${size} bytes`);
  assert.equal(/https?:\/\/(?!www\.w3\.org\/|debuginfod\.[a-z.]+")/.exec(whole.toString()), null, "the page names no other host, but in commands that one may copy");
});
