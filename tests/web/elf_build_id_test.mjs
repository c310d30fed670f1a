// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { bundle } from "./bundle.mjs";

const { buildIdOfNotes, readElf } = await bundle("server/elf_build_id.ts");
const RECORDED = fileURLToPath(new URL("../../deploy/recorded/debug", import.meta.url));

// Reads like a browser's File: no byte beyond the end, nothing for what is no offset.
function readerOf(bytes, asked = []) {
  return async (offset, length) => {
    asked.push(length);
    const isSafe = Number.isSafeInteger(offset) && Number.isSafeInteger(offset + length) && offset < bytes.length;
    const part = isSafe ? bytes.subarray(offset, offset + length) : bytes.subarray(0, 0);
    return new DataView(part.buffer, part.byteOffset, part.byteLength);
  };
}

const read = (bytes, asked) => readElf(readerOf(bytes, asked));

function readelf(...args) {
  const { status, stdout } = spawnSync("readelf", args, { encoding: "utf8", maxBuffer: 1 << 26 });
  return status === 0 ? stdout : null;
}

test("build-id and debug information are readelf's", { skip: readelf("--version") === null && "readelf is not installed" }, async () => {
  const files = fs.readdirSync(RECORDED).map((name) => path.join(RECORDED, name));
  for (const file of ["/bin/sh", "/usr/bin/python3", process.execPath, ...files].filter((name) => fs.existsSync(name))) {
    const notes = readelf("--notes", file);
    const facts = await read(fs.readFileSync(file));
    assert.equal(facts.buildId, /Build ID: ([0-9a-f]+)/.exec(notes)?.[1] ?? "", file);
    assert.equal(facts.hasDebugInfo, / \.z?debug_info /.test(readelf("--sections", "--wide", file)), file);
  }
});

test("what is no ELF file is none", async () => {
  for (const text of ["", "\x7fELF", "#!/bin/sh\n" + "x".repeat(100), "farflame-kallsyms 1\n" + "y".repeat(100)]) {
    assert.equal(await read(Buffer.from(text, "latin1")), null);
  }
});

// 32-bit, big-endian, one section of notes after another note
function small() {
  const bytes = Buffer.alloc(52 + 3 * 40 + 100);
  bytes.set([0x7f, 0x45, 0x4c, 0x46, 1, 2, 1]);
  bytes.writeUInt32BE(52, 32); // sections
  bytes.writeUInt16BE(40, 46);
  bytes.writeUInt16BE(3, 48);
  bytes.writeUInt16BE(2, 50); // names
  const [notes, names] = [172, 220];
  const section = (at, name, type, offset, size) => {
    [name, type].forEach((value, i) => bytes.writeUInt32BE(value, 52 + 40 * at + 4 * i));
    [offset, size].forEach((value, i) => bytes.writeUInt32BE(value, 52 + 40 * at + 16 + 4 * i));
  };
  section(1, 1, 7, notes, 16 + 3 + 1 + 4 + 12 + 8);
  section(2, 0, 3, names, 30);
  let at = notes;
  const note = (name, type, data) => {
    [name.length, data.length, type].forEach((value, i) => bytes.writeUInt32BE(value, at + 4 * i));
    bytes.write(name, at + 12, "latin1");
    bytes.set(data, at + 12 + Math.ceil(name.length / 4) * 4);
    at += 12 + Math.ceil(name.length / 4) * 4 + Math.ceil(data.length / 4) * 4;
  };
  note("Go\0", 4, [1, 2]);
  note("GNU\0", 3, [0xde, 0xad, 0xbe, 0xef, 5]);
  bytes.write("\0.note\0.debug_info\0", names, "latin1");
  return bytes;
}

test("another machine's file, with another note first", async () => {
  assert.deepEqual(await read(small()), { buildId: "deadbeef05", hasDebugInfo: false });
  const named = small();
  named.writeUInt32BE(7, 52 + 40); // the first section's name
  assert.deepEqual(await read(named), { buildId: "deadbeef05", hasDebugInfo: true });
});

test("a damaged file is answered, soon and from little of it", async () => {
  const whole = fs.readFileSync(path.join(RECORDED, "syscall_loop"));
  let seed = 1;
  const random = (most) => (seed = (seed * 1_664_525 + 1_013_904_223) % 2 ** 32) % most;
  for (let round = 0; round < 400; round++) {
    const bytes = Buffer.from(round % 2 === 0 ? whole : small());
    for (let hit = 0; hit < 1 + random(6); hit++) {
      bytes[random(round % 3 === 0 ? 64 : bytes.length)] = random(2) === 0 ? 255 : random(256);
    }
    const asked = [];
    const facts = await read(bytes.subarray(0, random(4) === 0 ? random(bytes.length) : bytes.length), asked);
    assert.match(facts?.buildId ?? "", /^([0-9a-f]{2}){0,64}$/);
    assert.ok(asked.length < 50, `${asked.length} reads`);
    assert.ok(asked.every((length) => length <= 2 ** 32), "no read is endless");
  }
});

test("an id of a length that no server takes is none", () => {
  for (const size of [0, 3, 65, 2 ** 32 - 1]) {
    const view = new DataView(new ArrayBuffer(200));
    [4, size, 3, 0x474e5500].forEach((value, i) => view.setUint32(4 * i, value, i === 3 ? false : true));
    assert.equal(buildIdOfNotes(view, true), "");
  }
});
