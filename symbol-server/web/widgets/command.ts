// SPDX-License-Identifier: Apache-2.0
// A command line to be copied.

import { copyText } from "./copy";
import { el } from "./dom";

export function commandLine(text: string): HTMLElement {
  const copy = el("button", { type: "button", "aria-label": `Copy: ${text}` }, "Copy");
  copy.addEventListener("click", () => {
    void copyText(text).then((copied) => {
      copy.textContent = copied ? "Copied" : "Not allowed here";
      window.setTimeout(() => (copy.textContent = "Copy"), 1500);
    });
  });
  return el("div", { class: "command" }, el("code", { tabindex: "0" }, text), copy);
}
