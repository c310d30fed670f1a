// SPDX-License-Identifier: Apache-2.0
// Kinds of code are told apart by their colours, also by who sees no red or no green, and names on them can be read.
// Colour vision is simulated by the matrices of Machado, Oliveira and Fernandes (2009), severity 1.0, in linear
// RGB; distance is CIE76 in L*a*b* (D65), contrast that of WCAG 2.

import assert from "node:assert/strict";
import fs from "node:fs";
import test from "node:test";
import { bundle } from "./bundle.mjs";

const { kindColour, makePalette, SHADES } = await bundle("graph/palette.ts");
const { changeColour } = await bundle("views/diff/diff_graph.ts");

const CODE = ["native", "inline", "kernel", "interpreter", "jit", "gpu", "runtime"]; // the others are hatched, or groups
const APART = 10; // some 2.3 are just noticeable side by side; a legend is not
const READABLE = 4.5;

const SEEN = {
  "all colours": [1, 0, 0, 0, 1, 0, 0, 0, 1],
  "no red": [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
  "no green": [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881],
};

function rgb(colour) {
  if (colour.startsWith("#")) {
    return [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16) / 255);
  }
  const [hue, s, l] = colour.match(/[\d.]+/g).map(Number);
  const reach = (s / 100) * Math.min(l / 100, 1 - l / 100);
  const part = (n) => {
    const k = (n + hue / 30) % 12;
    return l / 100 - reach * Math.max(-1, Math.min(k - 3, 9 - k, 1));
  };
  return [part(0), part(8), part(4)];
}

const linear = (colour) => rgb(colour).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
const brightness = ([r, g, b]) => 0.2126 * r + 0.7152 * g + 0.0722 * b;

function contrast(one, other) {
  const [low, high] = [brightness(linear(one)), brightness(linear(other))].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

function lab(colour, eyes) {
  const [r, g, b] = linear(colour);
  const seen = [0, 3, 6].map((i) => Math.min(1, Math.max(0, eyes[i] * r + eyes[i + 1] * g + eyes[i + 2] * b)));
  const f = (t) => (t > 216 / 24389 ? Math.cbrt(t) : (t * 841) / 108 + 4 / 29);
  const x = f((0.4124 * seen[0] + 0.3576 * seen[1] + 0.1805 * seen[2]) / 0.9505);
  const y = f(brightness(seen));
  const z = f((0.0193 * seen[0] + 0.1192 * seen[1] + 0.9505 * seen[2]) / 1.089);
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

function distance(one, other, eyes) {
  const [a, b] = [lab(one, eyes), lab(other, eyes)];
  return Math.hypot(...a.map((part, i) => part - b[i]));
}

function checkApart(colours) {
  const names = Object.keys(colours);
  for (const [who, eyes] of Object.entries(SEEN)) {
    for (const [i, one] of names.entries()) {
      for (const other of names.slice(i + 1)) {
        const apart = distance(colours[one], colours[other], eyes);
        assert.ok(apart >= APART, `${one} and ${other}, ${who}: ${apart.toFixed(1)}`);
      }
    }
  }
}

for (const [theme, dark] of [["light", false], ["dark", true]]) {
  const palette = makePalette(dark);

  test(`${theme}: kinds of code differ for everybody`, () => {
    checkApart(Object.fromEntries(CODE.map((kind) => [kind, kindColour(palette, kind, SHADES / 2)])));
  });

  test(`${theme}: so do the steps of a change`, () => {
    const of = (ratio) => changeColour({ before: 0, after: 0, ratio, recorded: ratio !== 0 }, dark);
    checkApart({ gone: of(-1), less: of(-0.3), same: of(0), more: of(0.3), new: of(1) });
  });

  test(`${theme}: names on every shade can be read`, () => {
    for (const kind of CODE) {
      for (let shade = 0; shade < SHADES; shade++) {
        const ratio = contrast(palette.text, kindColour(palette, kind, shade));
        assert.ok(ratio >= READABLE, `${kind} ${shade}: ${ratio.toFixed(2)}`);
      }
    }
  });
}

test("the picture of an export has the same inks", () => {
  const page = fs.readFileSync("symbol-server/web/graph/palette.ts", "utf8");
  const svg = fs.readFileSync("symbol-server/formats/flame_svg.c", "utf8");
  for (const kind of CODE) {
    const [, ...inks] = page.match(new RegExp(`  ${kind}: { hue: (\\d+), saturation: (\\d+), light: (\\d+), dark: (\\d+) }`));
    assert.ok(svg.includes(`{"${kind}", ${inks.join(", ")}}`), kind);
  }
});
