// SPDX-License-Identifier: Apache-2.0
// The colours of frames. Kinds differ in hue and lightness along the blue–orange axis, which people
// with any common colour blindness tell apart (after Okabe and Ito); text says the kind once more.

import { KINDS } from "./graph";
import { shown } from "../text/shown";

export const SHADES = 8; // per kind or module: neighbours of one kind stay distinguishable

interface Ink {
  hue: number;
  saturation: number;
  light: number; // lightness in the light theme, %
  dark: number; // in the dark theme
}

const KIND_INKS: Record<(typeof KINDS)[number], Ink> = {
  root: { hue: 220, saturation: 10, light: 86, dark: 30 },
  group: { hue: 220, saturation: 14, light: 80, dark: 34 },
  native: { hue: 33, saturation: 88, light: 72, dark: 31 },
  inline: { hue: 48, saturation: 85, light: 83, dark: 19 },
  kernel: { hue: 208, saturation: 70, light: 77, dark: 37 },
  interpreter: { hue: 164, saturation: 48, light: 65, dark: 32 },
  jit: { hue: 142, saturation: 38, light: 88, dark: 19 },
  gpu: { hue: 318, saturation: 42, light: 70, dark: 29 },
  unresolved: { hue: 30, saturation: 6, light: 82, dark: 30 },
  incomplete: { hue: 250, saturation: 8, light: 74, dark: 38 },
  cut: { hue: 220, saturation: 4, light: 91, dark: 22 },
  idle: { hue: 220, saturation: 2, light: 84, dark: 26 },
  runtime: { hue: 90, saturation: 30, light: 67, dark: 34 },
};

// Hues for colouring by module, the kernel's blue left out.
const MODULE_HUES = [33, 10, 60, 95, 164, 186, 262, 300, 330, 48];

export interface Palette {
  kinds: string[]; // KINDS.length × SHADES
  modules: string[]; // MODULE_HUES.length × SHADES
  moduleCount: number;
  dim: string; // what a search did not find
  dimText: string;
  hit: string[]; // what it found, SHADES
  haze: string; // many frames under one pixel
  text: string;
  background: string;
  hatch: string; // strokes over unresolved, incomplete and cut frames
  edge: string; // the left edge of inlined frames
}

function shades(ink: Ink, dark: boolean): string[] {
  const out: string[] = [];
  for (let i = 0; i < SHADES; i++) {
    const step = i / (SHADES - 1) - 0.5;
    const hue = ink.hue + step * (ink.saturation > 30 ? 12 : 0);
    const lightness = (dark ? ink.dark : ink.light) + step * 7;
    const saturation = dark ? ink.saturation * 0.62 : ink.saturation;
    out.push(`hsl(${hue.toFixed(0)},${saturation.toFixed(0)}%,${lightness.toFixed(1)}%)`);
  }
  return out;
}

export function makePalette(dark: boolean): Palette {
  const module = (hue: number): Ink => ({ hue, saturation: 60, light: 76, dark: 33 });
  return {
    kinds: KINDS.flatMap((kind) => shades(KIND_INKS[kind], dark)),
    modules: MODULE_HUES.flatMap((hue) => shades(module(hue), dark)),
    moduleCount: MODULE_HUES.length,
    dim: dark ? "#2a2d33" : "#e9eaee",
    dimText: dark ? "#8d929c" : "#767b86",
    hit: shades({ hue: 318, saturation: 78, light: 74, dark: 45 }, dark),
    haze: dark ? "#4a4436" : "#e6d9c3",
    text: dark ? "#f0f1f3" : "#17191d",
    background: dark ? "#16181c" : "#ffffff",
    hatch: dark ? "rgba(255,255,255,.13)" : "rgba(0,0,0,.11)",
    edge: dark ? "rgba(255,255,255,.35)" : "rgba(0,0,0,.3)",
  };
}

export function kindColour(palette: Palette, kind: string, shade: number): string {
  const i = (KINDS as readonly string[]).indexOf(kind);
  return palette.kinds[Math.max(0, i) * SHADES + shade];
}

// A small stable number from a text (FNV-1a): the same function has the same shade on every host.
export function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  }
  return (hash ^ (hash >>> 15)) >>> 0;
}

// What stands beside or around a frame's name, so that colour is never the only sign of its kind.
export function labelOf(given: string, kind: string): string {
  const name = shown(given);
  switch (kind) {
    case "kernel":
      return `[k] ${name}`;
    case "inline":
      return `${name} (inlined)`;
    case "unresolved":
      return `${name} (unresolved)`;
    case "jit":
      return `${name} (jit)`;
    case "runtime":
      return `${name} (runtime)`;
    case "gpu":
      return `[gpu] ${name}`;
    case "cut":
      return "narrower than a pixel";
    default:
      return name;
  }
}

export const KIND_WORDS: Record<(typeof KINDS)[number], string> = {
  root: "everything selected",
  group: "process, host or another grouping label",
  native: "function of a program or library",
  inline: "(inlined): copied into its caller by the compiler",
  kernel: "[k]: kernel function",
  interpreter: "function of an interpreted language",
  jit: "(jit): code compiled at run time",
  gpu: "[gpu]: code on a GPU",
  unresolved: "module+0x…: no name known for this address yet",
  incomplete: "[incomplete: why]: the stack does not reach the program's start",
  cut: "frames too narrow to draw: zoom in to see them",
  idle: "[idle]: waits for work to come, folded by the functions they wait in",
  runtime: "(runtime): an interpreter’s own, which a function of its language stands for",
};
