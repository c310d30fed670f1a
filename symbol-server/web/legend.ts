// SPDX-License-Identifier: Apache-2.0
// What the colours and marks mean.

import { byId, el } from "./dom";
import { KINDS } from "./graph";
import { KIND_WORDS, kindColour, makePalette, SHADES } from "./palette";
import { attachTip } from "./tip";

const SHORT: [(typeof KINDS)[number], string][] = [
  ["native", "native"],
  ["inline", "(inlined)"],
  ["kernel", "[k] kernel"],
  ["interpreter", "interpreted"],
  ["jit", "(jit)"],
  ["gpu", "[gpu]"],
  ["unresolved", "(unresolved)"],
  ["incomplete", "[incomplete]"],
  ["cut", "[cut]"],
];

export function showLegend(dark: boolean): void {
  const palette = makePalette(dark);
  byId("legend").replaceChildren(
    ...SHORT.map(([kind, text]) => {
      const swatch = el("span", { class: `swatch ${kind}`, "aria-hidden": "true" });
      swatch.style.backgroundColor = kindColour(palette, kind, SHADES / 2);
      const item = el("li", { tabindex: "-1" }, swatch, text);
      attachTip(item, () => [el("p", {}, KIND_WORDS[kind])]);
      return item;
    }),
  );
}
