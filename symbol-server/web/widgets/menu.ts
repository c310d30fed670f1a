// SPDX-License-Identifier: Apache-2.0
// The menu of one frame: opened by the right button, the menu key or 'm'; arrows move, Escape
// closes.

import { byId, el } from "./dom";

export interface MenuItem {
  text: string;
  hint: string; // key that does the same, or ""
  run(): void;
}

export class Menu {
  private readonly box = byId("frame-menu");
  private before: Element | null = null;

  constructor() {
    this.box.addEventListener("keydown", (e) => this.key(e));
    document.addEventListener("pointerdown", (e) => {
      if (!this.box.hidden && !this.box.contains(e.target as Node)) {
        this.close(false);
      }
    });
    window.addEventListener("blur", () => this.close(false));
  }

  open(x: number, y: number, title: string, items: MenuItem[]): void {
    if (!this.isOpen) {
      this.before = document.activeElement;
    }
    this.box.replaceChildren(el("div", { class: "menu-title" }, title));
    for (const item of items) {
      const button = el("button", { type: "button", role: "menuitem" }, el("span", {}, item.text));
      if (item.hint !== "") {
        button.append(el("kbd", {}, item.hint));
      }
      button.addEventListener("click", () => {
        this.close(true);
        item.run();
      });
      this.box.append(button);
    }
    this.box.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = this.box;
    this.box.style.left = `${Math.max(4, Math.min(x, window.innerWidth - width - 4))}px`;
    this.box.style.top = `${Math.max(4, Math.min(y, window.innerHeight - height - 4))}px`;
    this.box.querySelector("button")?.focus();
  }

  get isOpen(): boolean {
    return !this.box.hidden;
  }

  close(giveFocusBack: boolean): void {
    if (this.box.hidden) {
      return;
    }
    this.box.hidden = true;
    if (giveFocusBack && this.before instanceof HTMLElement) {
      this.before.focus();
    }
  }

  private key(e: KeyboardEvent): void {
    const buttons = [...this.box.querySelectorAll("button")];
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
    const last = buttons.length - 1;
    switch (e.key) {
      case "ArrowDown":
        buttons[at >= last ? 0 : at + 1].focus();
        break;
      case "ArrowUp":
        buttons[at <= 0 ? last : at - 1].focus();
        break;
      case "Escape":
      case "Tab":
        this.close(true);
        break;
      default:
        return;
    }
    e.preventDefault();
    e.stopPropagation();
  }
}
