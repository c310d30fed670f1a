// SPDX-License-Identifier: Apache-2.0
// A file of symbol-server/web as a module: `const { joinPath } = await bundle("graph/path.ts")`. Types are taken
// away by esbuild, as when the page is built; nothing else is needed.

import { spawnSync } from "node:child_process";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const WEB = fileURLToPath(new URL("../../symbol-server/web/", import.meta.url));
const OUT = path.resolve(process.env.FARFLAME_BUILD ?? "build", "tests/web");

export async function bundle(name) {
  const out = path.join(OUT, name.replace(/\.ts$/, ".mjs"));
  const made = spawnSync(
    "esbuild",
    [path.join(WEB, name), "--bundle", "--format=esm", "--target=es2020", "--log-level=error", `--outfile=${out}`],
    { encoding: "utf8" },
  );
  if (made.status !== 0) {
    throw new Error(`esbuild ${name}: ${made.error?.message ?? made.stderr}`);
  }
  return import(pathToFileURL(out).href);
}
