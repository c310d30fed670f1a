// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import test from "node:test";
import { bundle } from "./bundle.mjs";

const { adviceOn, cureOf, isWhole, nextStep, stateText } = await bundle("views/modules/modules_advice.ts");
const { distributionOf, UNKNOWN } = await bundle("views/modules/distribution.ts");
const { isListed, listOf, shownOf } = await bundle("views/modules/modules_rows.ts");
const { nextOrder, orderOf, sorted, byText, byFalling } = await bundle("widgets/list_order.ts");

const ORIGIN = "https://profiles.example";
const ID = "0123456789abcdef0123456789abcdef01234567";
const DEBIAN = distributionOf([{ kernel: "6.1.0-13-amd64" }]);
const from = (changed = {}) => ({ origin: ORIGIN, debuginfod: [], hasDirectories: false, distribution: UNKNOWN, ...changed });
const of = (changed) => ({
  build_id: ID, name: "libfoo.so", state: "missing", reason: "no source has it", source: "", quality: "none",
  missing: [], nameless_share: 0.25, nameless_value: 5, unsymbolized_share: 0.5, unsymbolized: 10, samples: 20, functions: 0, file_bytes: 0, uploaded_files: 0, uploaded_bytes: 0, first_seen: 0, updated: 0,
  retry_at: 0, sources: [], ...changed,
});
const commands = (module, changed) => adviceOn(module, from(changed)).map(({ command }) => command).filter((text) => text !== "");

test("what is missing has ways to it, of this server and this build-id", () => {
  const all = commands(of({}), { distribution: distributionOf([{ kernel: "6.5.6-300.fc39.x86_64" }]) });
  assert.ok(all.some((text) => text.startsWith("curl") && text.endsWith(`${ORIGIN}/api/v1/modules/${ID}`)));
  assert.ok(all.some((text) => text.includes(`/.build-id/01/${ID.slice(2)}.debug`)));
  assert.ok(all.some((text) => text.includes("--debuginfod")));
  const asked = of({ sources: [{ source: "https://debuginfod.example", answer: "not_found", detail: "", bytes: 0, ms: 1, at: 1 }] });
  assert.ok(!commands(asked, { debuginfod: ["https://debuginfod.example"] }).some((text) => text.includes("--debuginfod")), "not where one is asked already");
});

test("one command a row: the likeliest way to names of what hosts run", () => {
  assert.equal(cureOf(of({}), from()), "farflame-server --debuginfod https://debuginfod.elfutils.org");
  assert.equal(cureOf(of({}), from({ distribution: DEBIAN })), "farflame-server --debuginfod https://debuginfod.debian.net");
  const read = from({ distribution: DEBIAN, hasDirectories: true });
  assert.equal(cureOf(of({}), read), `sudo apt install $(find-dbgsym-packages ${ID})`);
  const denied = of({ sources: [{ source: "https://debuginfod.debian.net", answer: "not_found", detail: "", bytes: 0, ms: 1, at: 1 }] });
  assert.match(cureOf(denied, read), /^curl/, "who has every package's file has not this one");
  assert.match(cureOf(of({ build_id: "ab".repeat(16) }), read), /^curl/, "no distribution's build-id");
  assert.match(cureOf(of({ name: "vmlinux" }), read), /kptr_restrict/);
  assert.equal(cureOf(of({ working: 1, state: "symbols" }), read), "");
  assert.equal(cureOf(of({ state: "ready", quality: "dwarf" }), read), "");
});

test("distributions by their kernels, that of most hosts", () => {
  const name = (...kernels) => distributionOf(kernels.map((kernel) => ({ kernel }))).name;
  assert.equal(name("6.1.0-13-amd64"), "Debian");
  assert.equal(name("6.12.9+deb13-cloud-amd64"), "Debian");
  assert.equal(name("5.15.0-88-generic", "6.1.0-13-amd64", "6.8.0-1014-aws"), "Ubuntu");
  assert.equal(name("5.14.0-427.el9.x86_64"), "Enterprise Linux");
  assert.equal(name("6.9.1-arch1-1"), "Arch Linux");
  assert.equal(name("6.4.0-150600.21-default"), "openSUSE");
  assert.equal(name("6.18.5", ""), "");
});

test("a tick only where every frame has its name", () => {
  assert.equal(isWhole(of({ state: "ready", unsymbolized: 0 })), true);
  const partly = of({ state: "symbols", quality: "dynsym", unsymbolized: 5, samples: 20 });
  assert.equal(isWhole(partly), false);
  assert.match(stateText(partly), /75/);
  assert.equal(stateText(of({ state: "symbols", working: 1 })), "being looked for");
  assert.match(stateText(of({ state: "fetching", working: 1, download: { source: "https://d", bytes: 3_000_000, ms: 9 } })), /^2\.86 MiB have come$/);
});

test("what the server works on needs nothing done, what has all names neither", () => {
  for (const state of ["wanted", "fetching", "converting"]) {
    assert.deepEqual(commands(of({ state })), []);
    assert.match(nextStep(of({ state })), /^wait/);
  }
  const ready = of({ state: "ready", quality: "dwarf", unsymbolized: 0, unsymbolized_share: 0 });
  assert.deepEqual(adviceOn(ready, from()), []);
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
