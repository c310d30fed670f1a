// SPDX-License-Identifier: Apache-2.0
// The keys of a view that is a list with details.

import type { KeyBinding } from "../shell/view";

export interface Movable {
  readonly element: HTMLElement;
  readonly length: number;
  move(by: number): void;
}

const PAGE = 20;

export function listKeys(list: Movable, filter: HTMLInputElement, close: () => void): KeyBinding[] {
  filter.addEventListener("keydown", (e) => {
    if (e.key === "Escape" || e.key === "Enter" || e.key === "ArrowDown") {
      e.preventDefault();
      list.element.focus();
      if (e.key === "ArrowDown") {
        list.move(1);
      }
    }
  });
  return [
    { keys: ["ArrowDown", "j"], does: "next row", run: () => list.move(1) },
    { keys: ["ArrowUp", "k"], does: "row before", run: () => list.move(-1) },
    { keys: ["PageDown"], does: "rows further down", run: () => list.move(PAGE) },
    { keys: ["PageUp"], does: "rows further up", run: () => list.move(-PAGE) },
    { keys: ["Home"], does: "first row", run: () => list.move(-list.length) },
    { keys: ["End"], does: "last row", run: () => list.move(list.length) },
    { keys: ["/"], does: "filter", run: () => filter.focus() },
    { keys: ["Escape"], does: "close the details", run: close },
  ];
}
