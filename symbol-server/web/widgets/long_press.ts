// SPDX-License-Identifier: Apache-2.0
// A finger held still opens the menu, as the right button does: not every browser says so itself.

const HELD_MS = 500;
const STILL_PX = 10;

// run: true when it has done something; then lifting the finger is no click.
export function onLongPress(element: HTMLElement, run: (x: number, y: number, target: Element) => boolean): void {
  let timer = 0;
  let begin = { x: 0, y: 0 };
  let isHeld = false;
  const stop = () => clearTimeout(timer);
  element.addEventListener(
    "touchstart",
    (e) => {
      stop();
      isHeld = false;
      if (e.touches.length !== 1) {
        return;
      }
      const { clientX: x, clientY: y, target } = e.touches[0];
      begin = { x, y };
      timer = window.setTimeout(() => (isHeld = run(x, y, target as Element)), HELD_MS);
    },
    { passive: true },
  );
  element.addEventListener(
    "touchmove",
    (e) => {
      const { clientX, clientY } = e.touches[0];
      if (Math.hypot(clientX - begin.x, clientY - begin.y) > STILL_PX) {
        stop();
      }
    },
    { passive: true },
  );
  element.addEventListener("touchend", (e) => {
    stop();
    if (isHeld) {
      e.preventDefault();
    }
  });
  element.addEventListener("touchcancel", stop);
}
