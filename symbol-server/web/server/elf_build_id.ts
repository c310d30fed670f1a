// SPDX-License-Identifier: Apache-2.0
// What an ELF file says of itself, read from the few parts of it that tell: its build-id, and whether it
// has debug information. Pure; layout as in the System V ABI and elf.h.

export interface ElfFacts {
  buildId: string; // hexadecimal; "": it has none
  hasDebugInfo: boolean;
}

export type ReadAt = (offset: number, length: number) => Promise<DataView>; // shorter at the file's end

const SECTIONS_MAX = 65_536;
const SEGMENTS_MAX = 65_535;
const NAMES_MAX = 16 << 20; // bytes of section names
const NOTES_MAX = 1 << 20; // bytes of one section of notes
const NOTE_SECTIONS_MAX = 32;
const ID_BYTES_MIN = 4; // as the server takes it
const ID_BYTES_MAX = 64;
const SHT_NOTE = 7;
const PT_NOTE = 4;
const NT_GNU_BUILD_ID = 3;

interface Layout {
  isWide: boolean; // 64-bit
  isLittle: boolean;
}

interface Part {
  offset: number;
  size: number;
}

function word(view: DataView, at: number, { isWide, isLittle }: Layout): number {
  return isWide ? Number(view.getBigUint64(at, isLittle)) : view.getUint32(at, isLittle);
}

function layoutOf(head: DataView): Layout | null {
  if (head.byteLength < 52 || head.getUint32(0) !== 0x7f454c46) {
    return null;
  }
  const isWide = head.getUint8(4) === 2;
  return isWide && head.byteLength < 64 ? null : { isWide, isLittle: head.getUint8(5) === 1 };
}

// The first GNU build-id among notes; "" none.
export function buildIdOfNotes(view: DataView, isLittle: boolean): string {
  let at = 0;
  while (at + 12 <= view.byteLength) {
    const nameSize = view.getUint32(at, isLittle);
    const size = view.getUint32(at + 4, isLittle);
    const type = view.getUint32(at + 8, isLittle);
    const data = at + 12 + Math.ceil(nameSize / 4) * 4;
    if (data + size > view.byteLength) {
      return "";
    }
    const isGnu = nameSize === 4 && view.getUint32(at + 12) === 0x474e5500;
    if (isGnu && type === NT_GNU_BUILD_ID && size >= ID_BYTES_MIN && size <= ID_BYTES_MAX) {
      let out = "";
      for (let i = 0; i < size; i++) {
        out += view.getUint8(data + i).toString(16).padStart(2, "0");
      }
      return out;
    }
    at = data + Math.ceil(size / 4) * 4;
  }
  return "";
}

interface Section extends Part {
  name: number;
  type: number;
}

async function readSections(head: DataView, layout: Layout, readAt: ReadAt): Promise<{ all: Section[]; names: number }> {
  const { isWide, isLittle } = layout;
  const table = word(head, isWide ? 40 : 32, layout);
  const entry = head.getUint16(isWide ? 58 : 46, isLittle);
  let count = head.getUint16(isWide ? 60 : 48, isLittle);
  let names = head.getUint16(isWide ? 62 : 50, isLittle);
  const size = isWide ? 64 : 40;
  if (table === 0 || entry < size) {
    return { all: [], names: 0 };
  }
  const one = (view: DataView, at: number): Section => ({
    name: view.getUint32(at, isLittle),
    type: view.getUint32(at + 4, isLittle),
    offset: word(view, at + (isWide ? 24 : 16), layout),
    size: word(view, at + (isWide ? 32 : 20), layout),
  });
  // More than fit into 16 bits: the first section has the numbers.
  const first = await readAt(table, size);
  if (first.byteLength < size) {
    return { all: [], names: 0 };
  }
  if (count === 0) {
    count = one(first, 0).size;
  }
  if (names === 0xffff) {
    names = first.getUint32(isWide ? 40 : 24, isLittle);
  }
  count = Math.min(count, SECTIONS_MAX);
  const view = await readAt(table, count * entry);
  const all: Section[] = [];
  for (let i = 0; i < count && i * entry + size <= view.byteLength; i++) {
    all.push(one(view, i * entry));
  }
  return { all, names };
}

function textAt(view: DataView, at: number, most: number): string {
  let out = "";
  for (let i = at; i < Math.min(view.byteLength, at + most) && view.getUint8(i) !== 0; i++) {
    out += String.fromCharCode(view.getUint8(i));
  }
  return out;
}

async function hasDebugInfo(sections: Section[], names: number, readAt: ReadAt): Promise<boolean> {
  const table = sections.at(names);
  if (table === undefined || table.size > NAMES_MAX) {
    return false;
  }
  const view = await readAt(table.offset, table.size);
  return sections.some(({ name }) => /^\.z?debug_info$/.test(textAt(view, name, 16)));
}

async function noteSegments(head: DataView, layout: Layout, readAt: ReadAt): Promise<Part[]> {
  const { isWide, isLittle } = layout;
  const table = word(head, isWide ? 32 : 28, layout);
  const entry = head.getUint16(isWide ? 54 : 42, isLittle);
  const count = Math.min(head.getUint16(isWide ? 56 : 44, isLittle), SEGMENTS_MAX);
  const size = isWide ? 56 : 32;
  if (table === 0 || entry < size) {
    return [];
  }
  const view = await readAt(table, count * entry);
  const out: Part[] = [];
  for (let at = 0; at + size <= view.byteLength; at += entry) {
    if (view.getUint32(at, isLittle) === PT_NOTE) {
      out.push({
        offset: word(view, at + (isWide ? 8 : 4), layout),
        size: word(view, at + (isWide ? 32 : 16), layout),
      });
    }
  }
  return out;
}

// null: not an ELF file. Sections before segments: those of a debug file point into nothing.
export async function readElf(readAt: ReadAt): Promise<ElfFacts | null> {
  const head = await readAt(0, 64);
  const layout = layoutOf(head);
  if (layout === null) {
    return null;
  }
  const { all, names } = await readSections(head, layout, readAt);
  const notes: Part[] = [
    ...all.filter(({ type }) => type === SHT_NOTE),
    ...(await noteSegments(head, layout, readAt)),
  ];
  let buildId = "";
  for (const { offset, size } of notes.slice(0, NOTE_SECTIONS_MAX)) {
    if (buildId === "" && size <= NOTES_MAX) {
      buildId = buildIdOfNotes(await readAt(offset, size), layout.isLittle);
    }
  }
  return { buildId, hasDebugInfo: await hasDebugInfo(all, names, readAt) };
}
