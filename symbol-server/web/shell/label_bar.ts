// SPDX-License-Identifier: Apache-2.0
// A picker's button for each label: process, service and host in the bar, the others that the server knows behind
// "label", those of which something is picked always in sight. What somebody typed into the selector has a chip.

import { ask } from "../server/api";
import { askGroups, askShares } from "../server/label_shares";
import { el } from "../widgets/dom";
import { Picker, type Picked } from "../widgets/picker";
import { offerLabels } from "../widgets/group_menu";
import { formatCount } from "../text/format";
import { shown } from "../text/shown";
import { contentsOf, NO_PICKS, pickWords, withoutMatcher, type Picks } from "./selector";
import { DEFAULTS, pick, picksOf, type State } from "./state";
import type { Shell } from "./view";

const FIRST = ["process", "service", "host"]; // where they are known

interface Label {
  name: string;
  values: number;
  at_least?: boolean;
}

export class LabelBar {
  private readonly picker = new Picker();
  private readonly others = el("button", { type: "button", id: "labels", title: "Choose by another label", "aria-haspopup": "menu" }, "label");
  private readonly chips = el("span", { class: "filters" });
  private readonly buttons = new Map<string, HTMLElement>();
  private labels: Label[] = FIRST.filter((name) => name !== "service").map((name) => ({ name, values: 0 }));
  private isServiceProcess = false; // each one is called as its process is, as older servers did

  constructor(
    private readonly box: HTMLElement,
    private readonly shell: Shell,
  ) {
    this.others.addEventListener("click", () => this.offer());
  }

  show(state: State): void {
    const { labels, others } = contentsOf(state.match);
    const known = this.labels.map(({ name }) => name);
    const usual = FIRST.filter((name) => known.includes(name) && !(name === "service" && this.isServiceProcess));
    const chosen = FIRST.filter((name) => picksOf(state, name).only.length > 0);
    const names = [...new Set([...usual, ...chosen, ...labels])];
    const rest = this.hidden(names);
    const parts = [...names.map((name) => this.buttonOf(name)), ...(rest.length > 0 ? [this.others] : []), ...(others.length > 0 ? [this.chips] : [])];
    if (parts.length !== this.box.children.length || parts.some((part, i) => part !== this.box.children[i])) {
      this.box.replaceChildren(...parts);
    }
    names.forEach((name) => this.fill(name, picksOf(state, name)));
    this.chips.replaceChildren(...others.map((text) => this.chip(text)));
    this.picker.update();
  }

  // What the server knows of that time. A failure is not shown: the picture's own question says it.
  async refresh(state: State, signal: AbortSignal): Promise<void> {
    const { type, from, until } = state;
    const [known, pairs] = await Promise.all([
      ask<{ labels: Label[] }>("labels", { from, until }, signal),
      askGroups({ ...DEFAULTS, from, until }, type, "process,service", signal).catch(() => null),
    ]);
    if (signal.aborted) {
      return;
    }
    const series = pairs?.series ?? [];
    const named = series.filter(({ labels }) => (labels.service ?? "") !== "");
    this.isServiceProcess = named.length > 0 && named.every(({ labels }) => labels.service === labels.process);
    this.labels = known.labels.length > 0 ? known.labels : this.labels;
    offerLabels(known.labels.map(({ name }) => name).filter((name) => name !== "service" || !this.isServiceProcess));
    this.show(this.shell.state);
  }

  private hidden(shown: readonly string[]): Label[] {
    return this.labels.filter(({ name }) => !shown.includes(name) && !(name === "service" && this.isServiceProcess));
  }

  private buttonOf(label: string): HTMLElement {
    const known = this.buttons.get(label);
    if (known !== undefined) {
      return known;
    }
    const open = el("button", { type: "button", id: `pick-${label}`, "aria-haspopup": "dialog", "aria-expanded": "false" });
    open.addEventListener("click", () => this.picker.open(this.picked(label), open));
    const clear = el("button", { type: "button", "aria-label": `All of ${label}`, title: `All of ${label}` }, "×");
    clear.addEventListener("click", () => {
      this.shell.change(pick(this.shell.state, label, NO_PICKS));
      (open.isConnected ? open : this.others).focus();
    });
    const made = el("span", { class: "joined picker", "data-label": label }, open, clear);
    this.buttons.set(label, made);
    return made;
  }

  private fill(label: string, picks: Picks): void {
    const [open, clear] = (this.buttons.get(label) as HTMLElement).children as unknown as HTMLElement[];
    const isUsed = picks.only.length + picks.not.length > 0;
    const { values, at_least } = this.labels.find(({ name }) => name === label) ?? { values: 0 };
    const all = values === 0 ? "all" : `all (${formatCount(values)}${at_least === true ? "+" : ""})`;
    open.replaceChildren(el("span", { class: "quiet" }, label), el("span", { class: "picked" }, isUsed ? pickWords(picks) : all));
    open.title = shown([...picks.only, ...picks.not.map((value) => `not ${value}`)].join("\n"));
    clear.hidden = !isUsed;
    this.buttons.get(label)?.classList.toggle("used", isUsed);
  }

  private picked(label: string): Picked {
    const { shell } = this;
    return {
      label,
      note: label === "process" && this.isServiceProcess ? "Services are called as their processes are." : "",
      picks: () => picksOf(shell.state, label),
      shares: (text, signal) => {
        const types = shell.state.page === "wall" ? ["on-cpu", "off-cpu"] : [shell.state.type];
        return askShares(shell.pinned(), types, label, text, signal);
      },
      pick: (picks, isFirst) => shell.change(pick(shell.state, label, picks), isFirst),
    };
  }

  private offer(): void {
    const { left, bottom } = this.others.getBoundingClientRect();
    const names = [...this.box.querySelectorAll<HTMLElement>("[data-label]")].map(({ dataset }) => dataset.label ?? "");
    const items = this.hidden(names).map(({ name, values, at_least }) => ({
      text: name,
      hint: formatCount(values) + (at_least === true ? "+" : ""),
      run: () => this.picker.open(this.picked(name), this.others),
    }));
    this.shell.menu.open(left, bottom + 2, "Choose by", items);
  }

  private chip(text: string): HTMLElement {
    const made = el("button", { type: "button", class: "filter", title: `Remove this matcher: ${text}` }, text, el("span", { "aria-hidden": "true" }, " ×"));
    made.addEventListener("click", () => this.shell.change({ match: withoutMatcher(this.shell.state.match, text) }));
    return made;
  }
}
