// SPDX-License-Identifier: Apache-2.0
// Keys: those of the page and those of the view shown. They act wherever the focus is, except in
// fields, menus and dialogs. "g" and a letter go to a view.

import type { KeyBinding } from "./view";

const PREFIX = "g";
const PREFIX_MS = 1500; // how long the letter after g is waited for

function isField(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    target.closest("input, select, textarea, dialog[open], [role=menu]") !== null
  );
}

function isWidget(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest("button, a, summary, table") !== null;
}

export interface KeySource {
  bindings(): KeyBinding[]; // the view's before the page's
  go(letter: string): boolean; // false: no view has it
}

export function listenToKeys(source: KeySource): void {
  let prefixUntil = 0;
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || isField(e.target)) {
      return;
    }
    const isAfterPrefix = performance.now() < prefixUntil;
    prefixUntil = 0;
    if (isAfterPrefix && source.go(e.key)) {
      e.preventDefault();
      return;
    }
    if (e.key === PREFIX) {
      prefixUntil = performance.now() + PREFIX_MS;
      return;
    }
    const binding = source
      .bindings()
      .find(({ keys, yields }) => keys.includes(e.key) && !(yields && isWidget(e.target)));
    if (binding !== undefined) {
      e.preventDefault();
      binding.run();
    }
  });
}
