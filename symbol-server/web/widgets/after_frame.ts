// SPDX-License-Identifier: Apache-2.0
// Work that may wait until the picture drawn now is on the screen: the eye follows the picture, and
// the browser lays out and paints texts for longer than the canvas takes. When the next frame begins,
// this one has left the browser's threads.

export class AfterFrame {
  private isDue = false;

  constructor(private readonly work: () => void) {}

  // Several before the next frame are one.
  soon(): void {
    if (this.isDue) {
      return;
    }
    this.isDue = true;
    requestAnimationFrame(() =>
      requestAnimationFrame(() =>
        setTimeout(() => {
          this.isDue = false;
          this.work();
        }),
      ),
    );
  }
}
