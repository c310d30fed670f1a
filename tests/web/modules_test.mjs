// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import test from "node:test";
import { bundle } from "./bundle.mjs";

const { adviceOn, nextStep } = await bundle("views/modules/modules_advice.ts");
const { isListed, listOf, shownOf } = await bundle("views/modules/modules_rows.ts");
const { nextOrder, orderOf, sorted, byText, byFalling } = await bundle("widgets/list_order.ts");

const ORIGIN = "https://profiles.example";
const of = (changed) => ({
  build_id: "0123456789abcdef", name: "libfoo.so", state: "missing", reason: "no source has it", source: "", quality: "none",
  missing: [], unsymbolized_share: 0.5, unsymbolized: 10, samples: 20, functions: 0, file_bytes: 0, first_seen: 0, updated: 0,
  retry_at: 0, sources: [], ...changed,
});
const commands = (module) => adviceOn(module, ORIGIN).map(({ command }) => command).filter((text) => text !== "");

test("what is missing has ways to it, of this server and this build-id", () => {
  const all = commands(of({}));
  assert.ok(all.some((text) => text.startsWith("curl") && text.endsWith(`${ORIGIN}/api/v1/modules/0123456789abcdef`)));
  assert.ok(all.some((text) => text.includes("/.build-id/01/23456789abcdef.debug")));
  assert.ok(all.some((text) => text.includes("--debuginfod")));
  const asked = of({ sources: [{ source: "https://debuginfod.example", answer: "not_found", detail: "", bytes: 0, ms: 1, at: 1 }] });
  assert.ok(!commands(asked).some((text) => text.includes("--debuginfod")), "not where one is asked already");
});

test("what the server works on needs nothing done, what has all names neither", () => {
  for (const state of ["wanted", "fetching", "converting"]) {
    assert.deepEqual(commands(of({ state })), []);
    assert.match(nextStep(of({ state })), /^wait/);
  }
  const ready = of({ state: "ready", quality: "dwarf", unsymbolized: 0, unsymbolized_share: 0 });
  assert.deepEqual(adviceOn(ready, ORIGIN), []);
  assert.equal(nextStep(ready), "");
});

test("the kernel's names come from kallsyms", () => {
  assert.ok(commands(of({ name: "vmlinux" }))[0].includes("kptr_restrict"));
  assert.ok(commands(of({ name: "ext4.ko" }))[0].includes("kptr_restrict"));
});

test("a module's name cannot leave the command line that is to be copied", () => {
  for (const name of ["a; rm -rf ~", "$(reboot)", "`reboot`", "a'b", "-T/etc/passwd", "x\ny", "\u202etxt.so", "../../a b", "[vdso]"]) {
    const [curl] = commands(of({ name })).filter((text) => text.startsWith("curl"));
    const file = /^curl --fail-with-body -T ((?:[\w@%+=:,./-]+|'(?:[\x20-\x26\x28-\x7e]|'\\'')*')) https:/.exec(curl)?.[1];
    assert.ok(file !== undefined, curl);
    assert.ok(!file.startsWith("-"), curl);
  }
});

test("lists: without names, of the picture, all; words are looked for everywhere", () => {
  const rows = [
    of({ name: "a" }),
    of({ name: "b", unsymbolized: 0, unsymbolized_share: 0, state: "ready", quality: "dwarf" }),
    of({ name: "c", unsymbolized: 0, unsymbolized_share: 0, samples: 0 }),
  ];
  const names = (which, text) => listOf(rows, which, text).map(({ name }) => name).join("");
  assert.equal(names("nameless", ""), "a");
  assert.equal(names("used", ""), "ab");
  assert.equal(names("all", ""), "abc");
  assert.equal(names("all", "  DWARF ready "), "b");
  assert.equal(names("all", "(?"), "");
  assert.equal(shownOf("nonsense"), "nameless");
  assert.equal(isListed(rows[2], "used"), false);
});

test("orders come from the address, whatever stands there", () => {
  const columns = [
    { key: "share", order: byFalling(({ share }) => share) },
    { key: "name", order: byText(({ name }) => name) },
  ];
  const rows = [{ name: "b", share: 1 }, { name: "a", share: 2 }, { name: "c", share: 2 }];
  const names = (order) => sorted(rows, columns, order).map(({ name }) => name).join("");
  assert.equal(names("share"), "acb");
  assert.equal(names("-share"), "bac");
  assert.equal(names("name"), "abc");
  assert.equal(names("-name"), "cba");
  assert.equal(names("__proto__"), "acb");
  assert.equal(orderOf(columns, "").column.key, "share");
  assert.equal(nextOrder("share", "share"), "-share");
  assert.equal(nextOrder("-share", "share"), "share");
  assert.equal(nextOrder("share", "name"), "name");
  assert.deepEqual(rows.map(({ name }) => name), ["b", "a", "c"], "the rows given are left as they are");
});
