// SPDX-License-Identifier: Apache-2.0
// Making and finding elements. All text goes in as text nodes, and as shown.ts has it: names in a
// profile come from strangers.

import { shown } from "../text/shown";

export type Child = Node | string;

const READ = ["title", "aria-label", "placeholder"]; // attributes whose text people read

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    made.setAttribute(name, READ.includes(name) ? shown(value) : value);
  }
  made.append(...children.map((child) => (typeof child === "string" ? shown(child) : child)));
  return made;
}

// A line of text to narrow a list by; what is typed is no prose.
export function filterInput(label: string, placeholder: string): HTMLInputElement {
  return el("input", { type: "text", placeholder, "aria-label": label, spellcheck: "false", autocomplete: "off" });
}

// The same for a drawing's elements.
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

// The element with this id, which index.html is known to have.
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (found === null) {
    throw new Error(`index.html has no element #${id}`);
  }
  return found as T;
}
