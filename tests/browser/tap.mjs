// SPDX-License-Identifier: Apache-2.0
// TAP for tests in JavaScript, as tests/system/harness.py has it for those in Python: a *_test.mjs is one
// program, its functions run one after the other, or only those named on the command line.

import { isDeepStrictEqual, inspect } from "node:util";

const tap = { count: 0, failed: 0 };
const atEnd = []; // newest first
const CLOSE_MS = 8000;

// What a test leaves behind is taken away also when the test is ended by a signal.
export function cleanUp(action) {
  atEnd.unshift(action);
}

// For what takes its time to leave nothing behind, as a browser does.
const closing = [];

export function closeAtEnd(action) {
  closing.push(action);
}

async function leave(status) {
  const late = setTimeout(() => process.exit(status), CLOSE_MS);
  await Promise.allSettled(closing.map((action) => action()));
  clearTimeout(late);
  process.exit(status);
}

process.on("exit", () => atEnd.forEach((action) => action()));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => void leave(1));
}

export function check(good, text, why = "") {
  tap.count++;
  tap.failed += good ? 0 : 1;
  console.log(`${good ? "ok" : "not ok"} ${tap.count} - ${text.replace(/[\n#]/g, " ")}`);
  if (!good) {
    const lines = (typeof why === "string" ? why : inspect(why, { depth: 6 })).split("\n");
    lines.slice(0, 40).forEach((line) => console.log("# " + line));
  }
  return Boolean(good);
}

export function equal(got, want, text) {
  return check(isDeepStrictEqual(got, want), text, `got:  ${inspect(got)}\nwant: ${inspect(want)}`);
}

export function note(text) {
  console.log("# " + text);
}

export function skip(why) {
  console.log(`ok ${++tap.count} # SKIP ${why}`);
}

export function skipAll(why) {
  console.log("1..0 # SKIP " + why);
  process.exit(0);
}

// The condition's first true value, or its last one when the time is over.
export async function waitFor(condition, seconds = 30) {
  const deadline = Date.now() + seconds * 1000;
  for (;;) {
    const value = await condition();
    if (value || Date.now() > deadline) {
      return value;
    }
    await new Promise((done) => setTimeout(done, 50));
  }
}

// A function that throws is a failure, the others still run.
export async function run(...tests) {
  const named = process.argv.slice(2);
  for (const test of tests) {
    if (named.length === 0 || named.includes(test.name)) {
      try {
        await test();
      } catch (error) {
        check(false, `${test.name} runs to its end`, String(error?.stack ?? error));
      }
    }
  }
  console.log(`1..${tap.count}`);
  await leave(tap.failed > 0 ? 1 : 0);
}
