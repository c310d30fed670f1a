// SPDX-License-Identifier: Apache-2.0
// What the colours and marks mean, and how much of the value is of each. An entry opens a menu: only
// this, without this.

import { byId, el } from "../../widgets/dom";
import { formatPercent, formatShare } from "../../text/format";
import { KINDS } from "../../graph/graph";
import { KIND_WORDS } from "../../graph/palette";
import { attachTip } from "../../widgets/tip";
import type { ColourBy, LegendEntry } from "./frame_colours";

const SHORT: Partial<Record<(typeof KINDS)[number], string>> = {
  inline: "(inlined)",
  kernel: "[k] kernel",
  interpreter: "interpreted",
  jit: "(jit)",
  gpu: "[gpu]",
  unresolved: "(unresolved)",
  incomplete: "[incomplete]",
};
const SHOWN = 14; // entries; further ones are summed up

export interface LegendEvents {
  open(entry: LegendEntry, item: HTMLElement): void;
  point(entry: LegendEntry | null): void; // shown where they are, for a moment
}

function isKind(name: string): name is (typeof KINDS)[number] {
  return (KINDS as readonly string[]).includes(name);
}

export function showLegend(
  entries: readonly LegendEntry[],
  by: ColourBy,
  { value: all, error: allError }: { value: number; error?: number },
  haze: string,
  events: LegendEvents,
): void {
  const legend = byId("legend");
  legend.setAttribute("aria-label", `Colours: ${by}`);
  const items = entries.slice(0, SHOWN).map((entry) => {
    const kind = by === "kind" && isKind(entry.name) ? entry.name : null;
    const swatch = el("span", { class: `swatch ${kind ?? ""}`, "aria-hidden": "true" });
    swatch.style.backgroundColor = entry.colour;
    const text = (kind === null ? undefined : SHORT[kind]) ?? entry.name;
    const share = el("span", { class: "share" }, formatPercent(entry.value, all));
    const button = el("button", { type: "button", class: "legend-entry" }, swatch, text, share);
    attachTip(button, () => [
      ...(kind === null ? [] : [el("p", {}, KIND_WORDS[kind])]),
      el("p", {}, `${formatShare(entry.value, all, entry.error, allError)} is these frames’ own.`),
    ]);
    button.addEventListener("click", () => events.open(entry, button));
    button.addEventListener("mouseenter", () => events.point(entry));
    button.addEventListener("mouseleave", () => events.point(null));
    return el("li", {}, button);
  });
  const rest = entries.slice(SHOWN);
  if (rest.length > 0) {
    const value = rest.reduce((sum, entry) => sum + entry.value, 0);
    items.push(el("li", {}, `${rest.length} more`, el("span", { class: "share" }, formatPercent(value, all))));
  }
  const swatch = el("span", { class: "swatch", "aria-hidden": "true" });
  swatch.style.backgroundColor = haze;
  items.push(el("li", { class: "quiet", title: "Zoom in to see them; all sums count them" }, swatch, "narrower than a pixel"));
  legend.replaceChildren(...items);
}
