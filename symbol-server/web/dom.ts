// SPDX-License-Identifier: Apache-2.0
// Making and finding elements. All text goes in as text nodes: names in a profile come from
// strangers.

export type Child = Node | string;

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
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

// navigator.clipboard exists on https and loopback only; elsewhere the old way still works.
export async function copyText(text: string): Promise<boolean> {
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
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  if (before instanceof HTMLElement) {
    before.focus();
  }
  return copied;
}
