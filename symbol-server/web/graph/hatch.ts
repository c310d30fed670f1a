// SPDX-License-Identifier: Apache-2.0
// Strokes over a box, for frames that stand for something unknown.

const STEP = 7; // pixels from one stroke to the next

export function hatch(
  context: CanvasRenderingContext2D,
  colour: string,
  { x, y, width, height }: { x: number; y: number; width: number; height: number },
): void {
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.beginPath();
  for (let at = x - height - (x % STEP); at < x + width; at += STEP) {
    context.moveTo(at, y + height);
    context.lineTo(at + height, y);
  }
  context.stroke();
  context.restore();
}
