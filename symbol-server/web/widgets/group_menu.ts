// SPDX-License-Identifier: Apache-2.0
// What stacks and values can be grouped by: each label that the server knows, some of them together, nothing.

import { el } from "./dom";

const FIRST = ["process", "program", "host", "service"]; // where they are known
const menus: GroupMenu[] = [];
let known: string[] = [];

// Of the current time: in all menus.
export function offerLabels(labels: readonly string[]): void {
  known = [...FIRST.filter((name) => labels.includes(name)), ...labels.filter((name) => !FIRST.includes(name))];
  menus.forEach((menu) => menu.fill());
}

export class GroupMenu {
  // more: of several labels, separated by commas, and "", which has this word. except: labels offered elsewhere.
  constructor(
    readonly box: HTMLSelectElement,
    private readonly more: readonly string[],
    choose: (value: string) => void,
    private readonly except: readonly string[] = [],
    private readonly word = "nothing",
  ) {
    box.addEventListener("change", () => choose(box.value));
    menus.push(this);
    this.fill();
  }

  // Also what is not among the choices.
  show(value: string): void {
    if (![...this.box.options].some((option) => option.value === value)) {
      this.box.append(this.option(value));
    }
    this.box.value = value;
    this.box.hidden = this.except.length > 0 && this.box.options.length === 1;
  }

  fill(): void {
    const { value } = this.box;
    const there = this.more.filter((labels) => labels === "" || labels.split(",").some((label) => known.includes(label)));
    const options = [...known.filter((label) => !this.except.includes(label)), ...there];
    this.box.replaceChildren(...options.map((label) => this.option(label)));
    this.show(value);
  }

  private option(value: string): HTMLOptionElement {
    return el("option", { value }, value === "" ? this.word : value.replace(/,/g, ", "));
  }
}
