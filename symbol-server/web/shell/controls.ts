// SPDX-License-Identifier: Apache-2.0
// The bar of choices: shows the state, and says which part of it the user changed.

import { ask, type TypesAnswer } from "../server/api";
import { byId, el } from "../widgets/dom";
import { formatCount } from "../text/format";
import { shown } from "../text/shown";
import { timeOf } from "../text/time";
import { fromZoned, setZone, zoned, zoneName } from "../text/zone";
import { LabelBar } from "./label_bar";
import { DEFAULTS, type State } from "./state";
import type { Shell } from "./view";
import { GroupMenu } from "../widgets/group_menu";
import { closeWhenLeft } from "../widgets/unfolding";

const RANGES: [string, string][] = [
  ["now-1m", "last minute"],
  ["now-5m", "last 5 min"],
  ["now-15m", "last 15 min"],
  ["now-1h", "last hour"],
  ["now-6h", "last 6 h"],
  ["now-24h", "last 24 h"],
  ["now-7d", "last 7 days"],
];

const LIVE_SECONDS = "5"; // agents report as often
const LIVE_RANGE = "now-5m";
const MORE = ["host,process", "process,thread", ""]; // groups

function select(id: string): HTMLSelectElement {
  return byId<HTMLSelectElement>(id);
}

export class Controls {
  private stateShown: State = { ...DEFAULTS };
  private readonly labels: LabelBar;
  private readonly grouping: GroupMenu;

  constructor(private readonly shell: Shell) {
    const change = (changed: Partial<State>) => shell.change(changed);
    this.labels = new LabelBar(byId("pickers"), shell);
    this.grouping = new GroupMenu(select("group_by"), MORE, (group_by) => change({ group_by }));
    const range = select("range");
    range.replaceChildren(
      ...RANGES.map(([value, text]) => el("option", { value }, text)),
      el("option", { value: "custom" }, "custom…"),
    );
    range.addEventListener("change", () => this.rangeChosen(range.value));
    byId("custom-range").addEventListener("submit", (e) => {
      e.preventDefault();
      this.customChosen();
    });
    for (const key of ["type", "value", "refresh", "colour", "zone"] as const) {
      select(key).addEventListener("change", () => change({ [key]: select(key).value }));
    }
    const match = byId<HTMLInputElement>("match");
    match.addEventListener("change", () => change({ match: match.value.trim() }));
    for (const button of document.querySelectorAll<HTMLButtonElement>("button[data-view]")) {
      button.addEventListener("click", () => change({ view: button.dataset.view ?? "both" }));
    }
    byId("refresh-now").addEventListener("click", () => shell.reload());
    byId("live").addEventListener("click", () => this.liveChosen());
    closeWhenLeft(byId<HTMLDetailsElement>("more"));
  }

  show(state: State): void {
    this.stateShown = state;
    setZone("");
    select("zone").options[0].text = `local, ${zoneName(Date.now())}`;
    setZone(state.zone);
    const isRelative = state.from.startsWith("now-") && state.until === "now";
    choose(select("range"), isRelative ? state.from : "custom", state.from);
    byId("custom-range").hidden = isRelative;
    if (!isRelative) {
      byId<HTMLInputElement>("custom-from").value = customText(state.from);
      byId<HTMLInputElement>("custom-until").value = customText(state.until);
    }
    for (const key of ["type", "value", "refresh", "colour", "zone"] as const) {
      choose(select(key), state[key], state[key]);
    }
    this.grouping.show(state.group_by);
    this.labels.show(state);
    byId<HTMLInputElement>("match").value = state.match;
    for (const button of document.querySelectorAll<HTMLButtonElement>("button[data-view]")) {
      button.setAttribute("aria-pressed", String(button.dataset.view === state.view));
    }
    byId("graph-page").dataset.view = state.view;
    byId("live").setAttribute("aria-pressed", String(follows(state)));
  }

  // What the server says against the selector, beside it; "": nothing.
  refuse(sentence: string): void {
    const isAgainst = /^parameter '?match\b/i.test(sentence);
    byId("match").setAttribute("aria-invalid", String(isAgainst));
    byId("match-why").textContent = isAgainst ? shown(sentence) : "";
  }

  private liveChosen(): void {
    const { from } = this.stateShown;
    this.shell.change(
      follows(this.stateShown)
        ? { refresh: "0" }
        : { from: from.startsWith("now-") ? from : LIVE_RANGE, until: "now", refresh: LIVE_SECONDS },
    );
  }

  private rangeChosen(value: string): void {
    byId("custom-range").hidden = value !== "custom";
    if (value !== "custom") {
      this.shell.change({ from: value, until: "now" });
      return;
    }
    const from = byId<HTMLInputElement>("custom-from");
    from.value = zoned(Date.now() - 3_600_000);
    byId<HTMLInputElement>("custom-until").value = zoned(Date.now());
    from.focus();
  }

  private customChosen(): void {
    const from = fromZoned(byId<HTMLInputElement>("custom-from").value);
    const until = fromZoned(byId<HTMLInputElement>("custom-until").value);
    if (!Number.isNaN(from) && !Number.isNaN(until)) {
      this.shell.change({ from: String(from), until: String(until) });
    }
  }

  // Asks what there is to choose from, what has most samples first. A failure here is not shown:
  // the picture's own question says it.
  async refreshChoices(signal: AbortSignal): Promise<void> {
    const { from, until } = this.shell.pinned();
    const types = ask<TypesAnswer>("types", { from, until }, signal).then((answer) => {
      const options = answer.types.map((t) => option(t.name, `${formatCount(t.samples)} samples`));
      refill(select("type"), options, this.stateShown.type);
    });
    await Promise.allSettled([types, this.labels.refresh(this.shell.pinned(), signal)]);
  }
}

// What happens now, asked for again and again.
function follows(state: State): boolean {
  return state.refresh !== "0" && state.until === "now";
}

function option(value: string, title: string): HTMLOptionElement {
  return el("option", { value, title }, value);
}

// A time of the address in the fields: what it is now, where it is relative.
function customText(time: string): string {
  const ms = timeOf(time, Date.now());
  return zoned(Number.isNaN(ms) || ms > 8e15 ? Date.now() : ms);
}

// Selects a value, also one that is not (or no longer) among the choices.
function choose(box: HTMLSelectElement, value: string, text: string): void {
  if (![...box.options].some((option) => option.value === value)) {
    box.append(el("option", { value }, text));
  }
  box.value = value;
}

function refill(box: HTMLSelectElement, options: HTMLOptionElement[], value: string): void {
  box.replaceChildren(...options);
  choose(box, value, value);
}
