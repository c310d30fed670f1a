// SPDX-License-Identifier: Apache-2.0
// Links to another choice: real ones, so that they open in a new tab, are copied and are shared.

import { el, type Child } from "../widgets/dom";
import type { Shell } from "../shell/view";
import type { State } from "../shell/state";

export function linkTo(
  shell: Shell,
  changed: Partial<State>,
  attributes: Record<string, string>,
  ...children: Child[]
): HTMLAnchorElement {
  const link = el("a", { ...attributes, href: shell.link(changed) }, ...children);
  link.addEventListener("click", (e) => {
    if (!e.ctrlKey && !e.metaKey && !e.shiftKey) {
      e.preventDefault();
      shell.change(changed);
    }
  });
  return link;
}
