// SPDX-License-Identifier: Apache-2.0
// The keys of the flame graph.

import type { KeyBinding } from "../../shell/view";
import type { Way } from "./flame_steps";

export interface FlameActions {
  move(way: Way): void;
  enter(): void;
  escape(): void;
  all(): void;
  zoomBy(step: "in" | "out"): void;
  invert(): void;
  collapse(): void;
  sandwich(): void;
  search(): void;
  step(step: 1 | -1): void;
  menu(): void;
  copyName(): void;
  copyStack(): void;
  pin(): unknown;
  filter(): void;
  cycleView(): void;
}

export function flameKeys(act: FlameActions): KeyBinding[] {
  return [
    { keys: ["ArrowUp"], does: "caller", yields: true, run: () => act.move("parent") },
    { keys: ["ArrowDown"], does: "widest callee", yields: true, run: () => act.move("child") },
    { keys: ["ArrowLeft"], does: "left neighbour", yields: true, run: () => act.move("left") },
    { keys: ["ArrowRight"], does: "right neighbour", yields: true, run: () => act.move("right") },
    { keys: ["Enter"], does: "zoom into the selected frame (as a click does)", yields: true, run: () => act.enter() },
    { keys: ["Escape"], does: "zoom out one step; leave the sandwich", run: () => act.escape() },
    { keys: ["Home", "0"], does: "all of it", run: () => act.all() },
    {
      keys: ["+", "=", "w"],
      does: "zoom in one step, towards the selected frame (Ctrl and the wheel do it at the pointer)",
      run: () => act.zoomBy("in"),
    },
    { keys: ["-"], does: "zoom out one step", run: () => act.zoomBy("out") },
    { keys: ["s"], does: "sandwich: callers and callees of the selected function", run: () => act.sandwich() },
    { keys: ["i"], does: "pin the selected frame's details, or let them go", run: () => act.pin() },
    { keys: ["v"], does: "inverted: leaves first", run: () => act.invert() },
    { keys: ["k"], does: "recursion: as it is, direct or all collapsed", run: () => act.collapse() },
    { keys: ["/"], does: "search; a capital letter makes case matter", run: () => act.search() },
    { keys: ["n"], does: "next match", run: () => act.step(1) },
    { keys: ["N"], does: "previous match", run: () => act.step(-1) },
    {
      keys: ["m", "ContextMenu"],
      does: "menu of the frame: sandwich, copy, focus, ignore, hide (as the right button does)",
      run: () => act.menu(),
    },
    { keys: ["c"], does: "copy the selected function's name", run: () => act.copyName() },
    { keys: ["C"], does: "copy its stack as text", run: () => act.copyStack() },
    { keys: ["f"], does: "filter the functions; ↓ to the rows, there Enter searches, m opens the menu, s the sandwich, → shows callers", run: () => act.filter() },
    { keys: ["t"], does: "graph, table or both", run: () => act.cycleView() },
  ];
}
