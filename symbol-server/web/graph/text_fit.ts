// SPDX-License-Identifier: Apache-2.0
// Text that has to fit into a frame. Widths of ASCII characters are measured once per font, so that
// fitting costs additions, not calls into the browser's text engine (thousands per drawing).

import { shorterNames } from "../text/format";

const MIN_CHARACTERS = 3;

export class TextFit {
  private readonly ascii = new Float32Array(128);
  private readonly other = new Map<string, number>();
  private readonly ellipsis: number;

  constructor(private readonly context: CanvasRenderingContext2D) {
    for (let code = 32; code < 127; code++) {
      this.ascii[code] = context.measureText(String.fromCharCode(code)).width;
    }
    this.ellipsis = context.measureText("…").width;
  }

  private widthAt(text: string, i: number): number {
    const code = text.charCodeAt(i);
    if (code < 128) {
      return this.ascii[code];
    }
    const c = text[i];
    let width = this.other.get(c);
    if (width === undefined) {
      width = this.context.measureText(c).width;
      this.other.set(c, width);
    }
    return width;
  }

  // How many characters fit into so many pixels.
  private fits(text: string, pixels: number): number {
    let used = 0;
    for (let i = 0; i < text.length; i++) {
      used += this.widthAt(text, i);
      if (used > pixels) {
        return i;
      }
    }
    return text.length;
  }

  private cut(text: string, pixels: number): string {
    const n = this.fits(text, pixels - this.ellipsis);
    return n < MIN_CHARACTERS ? "" : text.slice(0, n) + "…";
  }

  // label, or its telling part: template arguments go first, then parameters, then what stands
  // before the name's own last part ("run" says more than "very::long::na…"), then the end. "" when
  // not even three characters fit.
  fit(label: string, name: string, pixels: number): string {
    if (this.fits(label, pixels) === label.length) {
      return label;
    }
    let shorter = label;
    for (const form of shorterNames(name)) {
      shorter = label.replace(name, () => form);
      if (this.fits(shorter, pixels) === shorter.length) {
        return shorter;
      }
    }
    return this.cut(shorter, pixels);
  }
}
