// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import test from "node:test";
import { bundle } from "./bundle.mjs";

const { shown } = await bundle("text/shown.ts");

test("names stay as they are, in any script", () => {
  for (const name of ["main", "std::vector<int>", "функция", "פונקציה", "دالة", "関数", "👩\u200d💻", "می\u200cخواهم", "é", "a\tb\nc", ""]) {
    assert.equal(shown(name), name);
  }
});

test("what turns text around is shown, not obeyed", () => {
  assert.equal(shown("user\u202egnp.exe"), "user⟨U+202E⟩gnp.exe");
  for (const code of [0x061c, 0x200e, 0x200f, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069]) {
    assert.equal(shown(String.fromCodePoint(code)), `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`);
  }
});

test("control characters are named, also those for which few fonts have a picture", () => {
  assert.equal(shown("a\0b\x1b[31mc\x7f\x85"), "a⟨U+0000⟩b⟨U+001B⟩[31mc⟨U+007F⟩⟨U+0085⟩");
});

test("two names that look alike do not", () => {
  for (const hidden of ["\u200b", "\u2060", "\ufeff", "\u00ad", "\u{e0041}"]) {
    assert.notEqual(shown("ma" + hidden + "in"), shown("main"));
    assert.match(shown("ma" + hidden + "in"), /^ma⟨U\+[0-9A-F]{4,5}⟩in$/);
  }
});

test("each mark of Unicode's Bidi_Control, and nothing that is a letter", () => {
  for (let code = 0; code < 0x30000; code++) {
    const character = String.fromCodePoint(code);
    if (/\p{Bidi_Control}/u.test(character)) {
      assert.notEqual(shown(character), character, code.toString(16));
    } else if (/[\p{L}\p{N}\p{S}]/u.test(character) && !/\p{Default_Ignorable_Code_Point}/u.test(character)) {
      assert.equal(shown(character), character, code.toString(16));
    }
  }
});

test("what is broken stays broken", () => {
  assert.equal(shown("\ud800x\udc00"), "\ud800x\udc00");
});
