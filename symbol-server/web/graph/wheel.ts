// SPDX-License-Identifier: Apache-2.0
// Ctrl and the wheel, or two fingers (browsers tell of them as that), as single steps: a wheel's
// notch is one, a touch pad's many small movements are added up.

const NOTCH = 40; // pixels of movement that are a step
const PAUSE_MS = 130; // between two steps, so that one movement does not run through the whole graph
const PIXELS_PER_LINE = 16;

export class WheelSteps {
  private moved = 0;
  private stepped = 0;

  constructor(element: HTMLElement, step: (way: "in" | "out", x: number, y: number) => void) {
    element.addEventListener(
      "wheel",
      (e) => {
        if (!e.ctrlKey && !e.metaKey) {
          return;
        }
        e.preventDefault();
        const way = this.take(e.deltaY * (e.deltaMode === 0 ? 1 : PIXELS_PER_LINE), e.timeStamp);
        if (way !== null) {
          step(way, e.clientX, e.clientY);
        }
      },
      { passive: false },
    );
  }

  private take(delta: number, now: number): "in" | "out" | null {
    this.moved = Math.sign(delta) === Math.sign(this.moved) ? this.moved + delta : delta;
    if (Math.abs(this.moved) < NOTCH || now - this.stepped < PAUSE_MS) {
      return null;
    }
    const way = this.moved < 0 ? "in" : "out";
    this.moved = 0;
    this.stepped = now;
    return way;
  }
}
