// SPDX-License-Identifier: Apache-2.0
// Colours of time on the CPU and time waited: orange and blue, told apart with any common colour
// blindness, and steps between them where a frame has both. Pure.

const HUES = { on: 30, off: 207 };

// part: of a frame's time that it waited, 0…1.
export function wallColour(part: number, dark: boolean): string {
  if (part <= 0.02) {
    return `hsl(${HUES.on},${dark ? 60 : 90}%,${dark ? 34 : 70}%)`;
  }
  if (part >= 0.98) {
    return `hsl(${HUES.off},${dark ? 45 : 70}%,${dark ? 36 : 76}%)`;
  }
  // Between them the colour of the larger part, the paler the closer to half.
  const [hue, clear] = part < 0.5 ? [HUES.on, 1 - 2 * part] : [HUES.off, 2 * part - 1];
  const step = Math.round(clear * 3) / 3;
  return `hsl(${hue},${(dark ? 12 : 20) + (dark ? 28 : 40) * step}%,${(dark ? 32 : 84) - (dark ? 0 : 8) * step}%)`;
}
