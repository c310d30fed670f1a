// SPDX-License-Identifier: Apache-2.0
// Colours of series, told apart with any common colour blindness (after Okabe and Ito); the last is
// for all others together. A pattern of names in the legend says the same without colour.

const LIGHT = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b5a800", "#6b5fb0"];
const DARK = ["#4ba3dc", "#f0b53c", "#35c79b", "#e29cc4", "#8fd0f7", "#f0823c", "#d9cf3a", "#a195e6"];
const OTHER = { light: "#a9aeb8", dark: "#5b616b" };

export const SERIES_COLOURS = LIGHT.length;

// i < 0 or too many: the colour of the others.
export function seriesColour(i: number, dark: boolean): string {
  const colours = dark ? DARK : LIGHT;
  return i >= 0 && i < colours.length ? colours[i] : dark ? OTHER.dark : OTHER.light;
}
