// SPDX-License-Identifier: Apache-2.0
// Picks values of one label: a field that searches, and rows, the largest share first, each with a tick (only these)
// and "not". There is one on the page, opened below the button of whichever label.

import type { Shares } from "../server/label_shares";
import { NO_PICKS, type Picks } from "../shell/selector";
import { formatCount, formatPercent } from "../text/format";
import { el } from "./dom";

export interface Picked {
  label: string;
  note: string; // what else there is to say of it
  picks(): Picks;
  shares(text: string, signal: AbortSignal): Promise<Shares>;
  // isFirst: since it was opened.
  pick(picks: Picks, isFirst: boolean): void;
}

const ROWS = 200; // made of those found; a search finds the others
const TYPING_MS = 200;
const MARGIN = 8;

interface Row {
  value: string;
  amount: number | null; // null: not in this selection
}

export class Picker {
  private readonly find = el("input", { type: "text", autocomplete: "off", spellcheck: "false", placeholder: "Search" });
  private readonly clear = el("button", { type: "button", class: "link" }, "Clear");
  private readonly said = el("p", { class: "quiet", role: "status" });
  private readonly list = el("ul");
  private readonly box = el(
    "dialog",
    { id: "picker", autofocus: "" },
    el("div", { class: "picker-head" }, this.find, this.clear),
    this.said,
    this.list,
    el("p", { class: "quiet keys" }, el("kbd", {}, "↓"), " to the rows, ", el("kbd", {}, "Space"), " several, ", el("kbd", {}, "Enter"), " this one alone, ", el("kbd", {}, "→"), " not"),
  );
  private of: Picked | null = null;
  private button: HTMLElement | null = null;
  private asking = new AbortController();
  private typing = 0;
  private all: Shares | null = null; // of no search
  private found: Shares | null = null;
  private isFirst = true;

  constructor() {
    document.body.append(this.box);
    this.find.addEventListener("input", () => this.search());
    this.clear.addEventListener("click", () => this.take(NO_PICKS));
    this.box.addEventListener("keydown", (e) => this.key(e));
    this.box.addEventListener("close", () => this.closed());
    this.box.addEventListener("click", (e) => {
      if (e.target === this.box) {
        this.box.close(); // beside it
      }
    });
    window.addEventListener("popstate", () => this.box.close());
  }

  open(of: Picked, button: HTMLElement): void {
    this.of = of;
    this.button = button;
    this.isFirst = true;
    this.all = null;
    this.find.value = "";
    for (const [part, name] of [[this.box, `Pick ${of.label}`], [this.find, `Search ${of.label}`], [this.list, of.label]] as const) {
      part.setAttribute("aria-label", name);
    }
    this.list.replaceChildren();
    button.setAttribute("aria-expanded", "true");
    this.box.showModal();
    if (matchMedia("(hover: hover)").matches) {
      this.find.focus(); // a telephone's keyboard would hide the rows
    }
    this.place(button);
    void this.ask("");
  }

  // The choice may have become another one.
  update(): void {
    const picks = this.of?.picks();
    if (picks === undefined) {
      return;
    }
    this.clear.hidden = picks.only.length + picks.not.length === 0;
    for (const row of this.list.querySelectorAll<HTMLElement>("li")) {
      const value = row.dataset.value as string;
      const [tick, not] = controlsOf(row);
      tick.checked = picks.only.includes(value);
      not.setAttribute("aria-pressed", String(picks.not.includes(value)));
      row.classList.toggle("out", picks.not.includes(value));
    }
  }

  private closed(): void {
    clearTimeout(this.typing);
    this.asking.abort();
    this.button?.setAttribute("aria-expanded", "false");
    this.button?.focus();
    this.of = null;
  }

  private place(button: HTMLElement): void {
    const { left, bottom } = button.getBoundingClientRect();
    const width = this.box.offsetWidth;
    this.box.style.left = `${Math.max(MARGIN, Math.min(left, window.innerWidth - width - MARGIN))}px`;
    this.box.style.top = `${bottom + 2}px`;
    this.box.style.maxHeight = `${window.innerHeight - bottom - 2 - MARGIN}px`;
  }

  private search(): void {
    clearTimeout(this.typing);
    const text = this.find.value.trim();
    if (this.all !== null && (text === "" || this.all.more === 0)) {
      this.asking.abort();
      const lower = text.toLowerCase();
      this.fill({ ...this.all, rows: this.all.rows.filter(({ value }) => value.toLowerCase().includes(lower)) });
    } else {
      this.typing = window.setTimeout(() => void this.ask(text), TYPING_MS);
    }
  }

  private async ask(text: string): Promise<void> {
    this.asking.abort();
    this.asking = new AbortController();
    const { signal } = this.asking;
    this.said.textContent = "Loading…";
    try {
      const shares = await (this.of as Picked).shares(text, signal);
      if (signal.aborted) {
        return;
      }
      if (text === "") {
        this.all = shares;
      }
      this.fill(shares);
      if (text !== this.find.value.trim()) {
        this.search();
      }
    } catch (failure) {
      if (!signal.aborted) {
        this.said.textContent = (failure as Error).message;
      }
    }
  }

  // What is picked stands first, also where it has no samples now.
  private rowsOf(shares: Shares): Row[] {
    const { only, not } = (this.of as Picked).picks();
    const isSearch = this.find.value.trim() !== "";
    const chosen = new Set([...only, ...not]);
    const there = new Set(shares.rows.map(({ value }) => value));
    const absent = isSearch ? [] : [...chosen].filter((value) => !there.has(value)).map((value) => ({ value, amount: null }));
    const first = shares.rows.filter(({ value }) => chosen.has(value));
    return [...first, ...absent, ...shares.rows.filter(({ value }) => !chosen.has(value))];
  }

  private fill(shares: Shares): void {
    this.found = shares;
    const rows = this.rowsOf(shares);
    this.list.replaceChildren(...rows.slice(0, ROWS).map((row) => this.row(row)));
    this.list.querySelectorAll<HTMLElement>("li:first-child :is(input, button)").forEach((part) => (part.tabIndex = 0)); // the others by arrows
    const count = formatCount(shares.rows.length + shares.more);
    const left = rows.length + shares.more - this.list.childElementCount;
    const words = left > 0 ? `${count}, the largest of them here: search finds the others.` : rows.length === 0 ? "Nothing matches." : `${count} ${count === "1" ? "value" : "values"}.`;
    const note = this.of?.note ?? "";
    this.said.textContent = note === "" ? words : `${words} ${note}`;
    this.update();
  }

  private row({ value, amount }: Row): HTMLElement {
    const { total, format } = this.all ?? (this.found as Shares);
    const name = value === "" ? `(no ${this.of?.label})` : value;
    const bar = el("span", { class: "bar" });
    bar.style.width = `${(100 * Math.min(1, (amount ?? 0) / (total || 1))).toFixed(2)}%`;
    const tick = el("input", { type: "checkbox", tabindex: "-1" });
    const not = el("button", { type: "button", tabindex: "-1", "aria-label": `not ${name}`, title: `All but ${name}` }, "not");
    const share = amount === null ? ["none now", ""] : [format(amount), formatPercent(amount, total)];
    const made = el(
      "li",
      { "data-value": value },
      el("label", { title: name }, bar, tick, el("bdi", {}, name), ...share.map((text) => el("span", { class: "number" }, text))),
      not,
    );
    tick.addEventListener("change", () => this.toggle(value, "only", tick.checked));
    not.addEventListener("click", () => this.toggle(value, "not", not.getAttribute("aria-pressed") !== "true"));
    return made;
  }

  private toggle(value: string, list: keyof Picks, isOn: boolean): void {
    const before = (this.of as Picked).picks();
    const others = (values: readonly string[]) => values.filter((one) => one !== value);
    const picks = { only: others(before.only), not: others(before.not) };
    this.take(isOn ? { ...picks, [list]: [...picks[list], value] } : picks);
  }

  private take(picks: Picks): void {
    this.of?.pick(picks, this.isFirst);
    this.isFirst = false;
    this.update();
  }

  private takeAlone(row: HTMLElement | null): void {
    if (row !== null) {
      this.take({ only: [row.dataset.value as string], not: [] });
      this.box.close();
    }
  }

  private key(e: KeyboardEvent): void {
    const row = (e.target as HTMLElement).closest("li");
    const isNot = (e.target as HTMLElement).closest("li button") !== null;
    const go = (to: Element | null | undefined, part: 0 | 1 = 0) =>
      to instanceof HTMLLIElement ? controlsOf(to)[part].focus() : this.find.focus();
    if (e.key === "ArrowDown") {
      go(row === null ? this.list.firstElementChild : (row.nextElementSibling ?? row), isNot ? 1 : 0);
    } else if (e.key === "ArrowUp" && row !== null) {
      go(row.previousElementSibling, isNot ? 1 : 0);
    } else if (row !== null && (e.key === "ArrowRight" || e.key === "ArrowLeft")) {
      go(row, e.key === "ArrowRight" ? 1 : 0);
    } else if (e.key === "Enter" && !isNot && e.target !== this.clear) {
      this.takeAlone(row ?? (this.find.value.trim() === "" ? null : this.list.querySelector("li")));
    } else {
      return;
    }
    e.preventDefault();
  }
}

function controlsOf(row: HTMLElement): [HTMLInputElement, HTMLButtonElement] {
  return [row.querySelector("input") as HTMLInputElement, row.querySelector("button") as HTMLButtonElement];
}
