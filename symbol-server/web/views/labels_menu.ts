// SPDX-License-Identifier: Apache-2.0
// What can be done with a row that stands for all threads with some labels: what a frame's menu offers, of all of them.

import { copyAndSay } from "../widgets/copy";
import type { MenuItem } from "../widgets/menu";
import { withMenu } from "../widgets/row_menu";
import type { Shell } from "../shell/view";
import { narrowTo, pick, picksOf, type State } from "../shell/state";

const GRAPHS = [
  ["on-cpu", "Its time on the CPU as a flame graph"],
  ["off-cpu", "Its waits as a flame graph"],
  ["still-blocked", "Where it is blocked"],
];

// types: that there are. The page shown stays unless an item says otherwise.
export function labelsMenu(name: string, labels: Record<string, string>, types: readonly string[], state: State, shell: Pick<Shell, "change" | "notice">): MenuItem[] {
  const only = { ...narrowTo(state, labels), zoom: "", sandwich: "" };
  const item = (text: string, changed: Partial<State>): MenuItem => ({ text, hint: "", run: () => shell.change(changed) });
  const own = Object.entries(labels);
  const items = [item("Only this", only)];
  if (own.length === 1) {
    const [[label, value]] = own;
    const { not } = picksOf(state, label);
    items.push(item("Without this", { ...pick(state, label, { only: [], not: [...not, value] }), zoom: "", sandwich: "" }));
  }
  return [
    ...items,
    ...GRAPHS.filter(([type]) => types.includes(type)).map(([type, text]) => item(text, { ...only, page: "graph", type })),
    item("When it runs: its time line", { ...only, page: "time" }),
    item("Compare with the time before", { ...only, page: "diff", base: "before" }),
    { text: "Copy name", hint: "", run: () => void copyAndSay(name, shell) },
  ];
}

// The row with that menu.
export function withLabelsMenu<T extends HTMLElement>(row: T, shell: Shell, name: string, labels: Record<string, string>, types: readonly string[]): T {
  return withMenu(row, (x, y) => shell.menu.open(x, y, name, labelsMenu(name, labels, types, shell.state, shell)));
}
