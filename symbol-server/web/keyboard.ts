// SPDX-License-Identifier: Apache-2.0
// Keys. They act wherever the focus is, except in fields, menus and dialogs.

export interface KeyEvents {
  move(direction: "parent" | "child" | "left" | "right"): void;
  zoomSelected(): void;
  zoomOut(): void;
  zoomAll(): void;
  openMenu(): void;
  copyName(): void;
  focusSearch(): void;
  nextMatch(step: 1 | -1): void;
  refresh(): void;
  cycleView(): void;
  help(): void;
}

function isField(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && target.closest("input, select, textarea, dialog") !== null
  );
}

// Enter and the arrows belong to a focused button or table; the single letters do not.
function isWidget(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest("button, a, summary, table") !== null;
}

export function listenToKeys(events: KeyEvents): void {
  const graphKeys: Record<string, () => void> = {
    ArrowUp: () => events.move("parent"),
    ArrowDown: () => events.move("child"),
    ArrowLeft: () => events.move("left"),
    ArrowRight: () => events.move("right"),
    Enter: () => events.zoomSelected(),
    ContextMenu: () => events.openMenu(),
  };
  const keys: Record<string, () => void> = {
    Escape: () => events.zoomOut(),
    Home: () => events.zoomAll(),
    "0": () => events.zoomAll(),
    m: () => events.openMenu(),
    c: () => events.copyName(),
    "/": () => events.focusSearch(),
    n: () => events.nextMatch(1),
    N: () => events.nextMatch(-1),
    r: () => events.refresh(),
    t: () => events.cycleView(),
    "?": () => events.help(),
  };
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || isField(e.target)) {
      return;
    }
    const run = keys[e.key] ?? (isWidget(e.target) ? undefined : graphKeys[e.key]);
    if (run !== undefined) {
      e.preventDefault();
      run();
    }
  });
}
