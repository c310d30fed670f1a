// SPDX-License-Identifier: Apache-2.0
// Explanations that appear on pointing at or focusing an element.

import { byId, type Child } from "./dom";

export function attachTip(element: HTMLElement, content: () => Child[]): void {
  const tip = byId("tip");
  const show = () => {
    tip.replaceChildren(...content());
    tip.hidden = false;
    const box = element.getBoundingClientRect();
    const left = Math.max(4, Math.min(box.left, window.innerWidth - tip.offsetWidth - 4));
    tip.style.left = `${left}px`;
    tip.style.top = `${box.bottom + 6}px`;
    element.setAttribute("aria-describedby", "tip");
  };
  const hide = () => {
    tip.hidden = true;
    element.removeAttribute("aria-describedby");
  };
  element.addEventListener("mouseenter", show);
  element.addEventListener("focus", show);
  element.addEventListener("mouseleave", hide);
  element.addEventListener("blur", hide);
  element.addEventListener("click", hide);
}
