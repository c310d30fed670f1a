// SPDX-License-Identifier: Apache-2.0
// The "?" dialog: the keys that are bound right now, so that it cannot tell another story.

import { byId, el } from "../widgets/dom";
import type { Entry } from "./views";
import type { KeyBinding } from "./view";

const NAMES: Record<string, string> = {
  ArrowUp: "↑",
  ArrowDown: "↓",
  ArrowLeft: "←",
  ArrowRight: "→",
  Escape: "Esc",
  ContextMenu: "Menu",
  " ": "Space",
};

function row(keys: string[], does: string): HTMLElement {
  const marks = keys.flatMap((key) => [el("kbd", {}, NAMES[key] ?? key), " "]);
  return el("tr", {}, el("td", {}, ...marks), el("td", {}, does));
}

export function showHelp(view: Entry, own: KeyBinding[], page: KeyBinding[], all: readonly Entry[]): void {
  const section = (title: string, rows: HTMLElement[]) =>
    rows.length === 0
      ? []
      : [el("h3", {}, title), el("table", {}, el("tbody", {}, ...rows))];
  byId("help-keys").replaceChildren(
    ...section(
      view.title,
      own.map(({ keys, does }) => row(keys, does)),
    ),
    ...section("Everywhere", [
      ...page.map(({ keys, does }) => row(keys, does)),
      ...all.map(({ key, title }) => row(["g", key], title)),
    ]),
  );
  byId<HTMLDialogElement>("help-dialog").showModal();
}
