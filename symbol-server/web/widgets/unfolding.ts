// SPDX-License-Identifier: Apache-2.0
// A <details> that is a menu: it closes when the user points elsewhere or presses Escape.

export function closeWhenLeft(box: HTMLDetailsElement): void {
  document.addEventListener("pointerdown", (e) => {
    if (!box.contains(e.target as Node)) {
      box.open = false;
    }
  });
  box.addEventListener("keydown", (e) => {
    if (e.key === "Escape" && box.open) {
      box.open = false;
      box.querySelector("summary")?.focus();
      e.preventDefault();
    }
  });
}
