// SPDX-License-Identifier: Apache-2.0
// Text into the clipboard.

import { el } from "./dom";

// navigator.clipboard exists on https and loopback only; elsewhere the old way still works.
// within: an open dialog, outside of which nothing can be selected.
export async function copyText(text: string, within: HTMLElement = document.body): Promise<boolean> {
  if (navigator.clipboard !== undefined) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Refused by the user's settings: the old way asks nobody.
    }
  }
  const before = document.activeElement;
  const area = el("textarea", { class: "hidden-for-eyes" });
  area.value = text;
  within.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  if (before instanceof HTMLElement) {
    before.focus();
  }
  return copied;
}

export async function copyAndSay(text: string, to: { notice(text: string): void }, within?: HTMLElement): Promise<void> {
  to.notice((await copyText(text, within)) ? "Copied." : "This browser does not let the page copy.");
}
