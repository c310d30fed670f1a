// SPDX-License-Identifier: Apache-2.0
// Light or dark: the system's choice until the user makes one, which this browser remembers.

import { byId } from "../widgets/dom";

const KEY = "farflame-theme";
const dark = window.matchMedia("(prefers-color-scheme: dark)");

function stored(): string {
  try {
    return localStorage.getItem(KEY) ?? "system";
  } catch {
    return "system"; // storage switched off
  }
}

export function watchTheme(apply: (dark: boolean) => void): void {
  const box = byId<HTMLSelectElement>("theme");
  const update = () => {
    const isDark = box.value === "dark" || (box.value === "system" && dark.matches);
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    apply(isDark);
  };
  box.value = ["light", "dark"].includes(stored()) ? stored() : "system";
  box.addEventListener("change", () => {
    try {
      localStorage.setItem(KEY, box.value);
    } catch {
      // Then it holds for this visit.
    }
    update();
  });
  dark.addEventListener("change", update);
  update();
}
