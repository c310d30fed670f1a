// SPDX-License-Identifier: Apache-2.0
// What colours stand for: kinds, modules, languages or ages; and the legend's entries for them. Pure.

import type { FlameAnswer, TopAnswer } from "../../server/api";
import type { Colouring } from "../../graph/flamegraph";
import type { Graph } from "../../graph/graph";
import { hashText, kindColour, makePalette, SHADES, type Palette } from "../../graph/palette";
import { ageColour, ageOfBuild, compareAges, type FirstSeen } from "./frame_ages";
import { buildsBySelf, functionsBySelf, kindsBySelf, modulesBySelf } from "./frame_sums";
import { languageOf } from "./languages";

export type ColourBy = "kind" | "module" | "language" | "age";

export function colourBy(text: string): ColourBy {
  return text === "module" || text === "language" || text === "age" ? text : "kind";
}

export interface LegendEntry {
  name: string; // of the kind, module, language or age
  value: number; // of its frames' own
  error?: number; // ± of it
  colour: string;
}

// Hue, saturation, lightness in the light and the dark theme: hues apart for most eyes, and each with
// a lightness of its own; names in the legend and the details say it once more.
const LANGUAGES: Record<string, [number, number, number, number]> = {
  Kernel: [208, 70, 76, 37],
  C: [33, 80, 72, 32],
  "C++": [18, 75, 80, 36],
  Rust: [0, 50, 70, 30],
  Go: [186, 60, 72, 30],
  Python: [48, 85, 80, 27],
  Java: [280, 40, 78, 36],
  JavaScript: [60, 60, 70, 25],
  Ruby: [340, 55, 76, 33],
  PHP: [240, 45, 82, 40],
  Assembler: [100, 25, 74, 28],
  Perl: [260, 25, 68, 30],
  Lua: [225, 60, 70, 28],
};
const OTHER: [number, number, number, number] = [150, 30, 80, 30];
const UNKNOWN: [number, number, number, number] = [220, 8, 84, 34];

function languageColour(language: string, dark: boolean, shade: number): string {
  const [hue, saturation, light, darker] = language === "" ? UNKNOWN : (LANGUAGES[language] ?? OTHER);
  const lightness = (dark ? darker : light) + (shade / (SHADES - 1) - 0.5) * 6;
  return `hsl(${hue},${dark ? saturation * 0.62 : saturation}%,${lightness.toFixed(1)}%)`;
}

const KEEPS_KIND = new Set(["root", "group", "unresolved", "incomplete", "cut", "idle"]);

// A graph's frames by language; each function once.
export function languageColouring(dark: boolean): Colouring {
  let known: Graph | null = null;
  let colours = new Map<number, string>();
  return (graph, node) => {
    if (graph !== known) {
      known = graph;
      colours = new Map();
    }
    const kind = graph.kindOf(node);
    if (KEEPS_KIND.has(kind)) {
      return undefined;
    }
    const key = (graph.nameIndex(node) * 16 + graph.kindIndex(node)) * 65536 + (graph.fileIndex(node) & 0xffff);
    let colour = colours.get(key);
    if (colour === undefined) {
      const name = graph.nameOf(node);
      colour = languageColour(graph.languageOf(node) ?? languageOf(kind, graph.fileOf(node), name), dark, hashText(name) % SHADES);
      colours.set(key, colour);
    }
    return colour;
  };
}

function moduleColour(palette: Palette, name: string): string {
  return palette.modules[(hashText(name) % palette.moduleCount) * SHADES + SHADES / 2];
}

export const NO_LANGUAGE = "not told";

// Of a row; "" where a frame is in no language.
export function languageIn(answer: FlameAnswer, row: number): string {
  const { name, kind, file } = answer.nodes;
  const own = answer.kinds[kind[row]] ?? "";
  return KEEPS_KIND.has(own)
    ? ""
    : (answer.languages?.[name[row]] ?? languageOf(own, answer.files[file[row]] ?? "", answer.names[name[row]])) || NO_LANGUAGE;
}

const NOT_LISTED = "in rarer functions";

export function legendOf(top: TopAnswer, by: ColourBy, dark: boolean, seen: FirstSeen): LegendEntry[] {
  const palette = makePalette(dark);
  if (by === "module") {
    return modulesBySelf(top).map((part) => ({ ...part, colour: moduleColour(palette, part.name) }));
  }
  if (by === "language") {
    const language = (f: TopAnswer["functions"][number]) =>
      KEEPS_KIND.has(f.kind) ? "" : (f.language ?? languageOf(f.kind, f.file, f.name)) || NO_LANGUAGE;
    return functionsBySelf(top, language, NOT_LISTED).map((part) => ({
      ...part,
      colour: languageColour(part.name === NO_LANGUAGE || part.name === NOT_LISTED ? "" : part.name, dark, SHADES / 2),
    }));
  }
  if (by === "age") {
    return agesOf(top, seen)
      .sort((a, b) => compareAges(a.name, b.name))
      .map((part) => ({ ...part, colour: ageColour(part.name, dark) }));
  }
  return kindsBySelf(top)
    .filter(({ name }) => name !== "root" && name !== "group")
    .map((part) => ({ ...part, colour: kindColour(palette, part.name, SHADES / 2) }));
}

// Code of no module has no age that is known.
function agesOf(top: TopAnswer, seen: FirstSeen): { name: string; value: number }[] {
  const age = (build_id: string) => ageOfBuild(build_id, seen, top.until);
  const parts = buildsBySelf(top, age);
  const { root = 0, group = 0 } = top.own.kinds;
  const left = top.accounting.value - root - group - parts.reduce((sum, { value }) => sum + value, 0);
  if (left <= 0) {
    return parts;
  }
  const unknown = age("");
  const known = parts.find(({ name }) => name === unknown);
  return known === undefined
    ? [...parts, { name: unknown, value: left }]
    : parts.map((part) => (part === known ? { ...part, value: part.value + left } : part));
}
