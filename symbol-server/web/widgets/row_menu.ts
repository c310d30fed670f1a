// SPDX-License-Identifier: Apache-2.0
// A row's menu: by the right button, by the menu key or 'm' on what of the row has the focus, and by a finger held still.

import { onLongPress } from "./long_press";

// open: at this place of the window. Returns the row.
export function withMenu<T extends HTMLElement>(row: T, open: (x: number, y: number) => void): T {
  const openBelow = (target: EventTarget | null) => {
    const { left, bottom } = (target instanceof HTMLElement ? target : row).getBoundingClientRect();
    open(left, bottom);
  };
  row.addEventListener("contextmenu", (e) => {
    e.preventDefault();
    if (e.button === 2) {
      open(e.clientX, e.clientY);
    } else {
      openBelow(document.activeElement);
    }
  });
  row.addEventListener("keydown", (e) => {
    if (e.key === "m" && !e.ctrlKey && !e.altKey && !e.metaKey) {
      e.preventDefault();
      openBelow(e.target);
    }
  });
  onLongPress(row, (x, y) => {
    open(x, y);
    return true;
  });
  return row;
}
