// SPDX-License-Identifier: Apache-2.0
// The shell: state in the address → the view it names, which asks the server and draws. One question
// at a time is of interest: a new state aborts what the one before still waits for.

import { ApiError } from "../server/api";
import { Controls } from "./controls";
import { explainUnknown } from "./empty";
import { AfterFrame } from "../widgets/after_frame";
import { byId, el, type Child } from "../widgets/dom";
import { shown } from "../text/shown";
import { readState, writeState, type State } from "./state";
import { isLive } from "./snapshot";
import { watchTheme } from "./theme";
import { titleOf } from "./title";
import { ExportMenu } from "../widgets/export_menu";
import { Menu } from "../widgets/menu";
import { showHelp } from "./help";
import { listenToKeys } from "./keyboard";
import { button, Messages } from "./messages";
import type { KeyBinding, Shell, View } from "./view";
import { VIEWS, type Entry } from "./views";

const NOTICE_MS = 2500;
const JUST_MS = 200;
const LONG_NOTICE_MS = 10_000; // of what nobody asked for

class Opened {
  asked: State | null = null; // what it shows or waits for; null: nothing
  shownSince = 0;

  constructor(readonly view: View) {}
}

function placeOf(state: unknown): number {
  return (state as { place?: number } | null)?.place ?? 0;
}

export class Page implements Shell {
  state = readState(location.hash);
  readonly status = byId("status");
  readonly menu = new Menu();
  private readonly opened = new Map<string, Opened>();
  private entry: Entry | null = null;
  private asking = new AbortController();
  private busy = false;
  private choicesAreDue = false;
  private isBlank = false;
  private dark = false;
  private pins: { from: string; until: string } | null = null; // what "now" was
  private refreshTimer = 0;
  private noticeTimer = 0;
  private place = placeOf(history.state); // of the address among those of this tab
  private pushedAt = -JUST_MS;
  private addressDue: { text: string; remember: boolean } | null = null;
  private readonly addressLater = new AfterFrame(() => this.writeAddress());

  private readonly controls = new Controls(this);
  private readonly messages = new Messages(
    () => this.reload(),
    () => this.cancel(),
  );
  private readonly exports = new ExportMenu({
    state: () => this.state,
    pinned: () => this.pinned(),
    shownAt: () => this.current()?.shownSince || Date.now(),
    link: (changed) => this.link(changed),
    notice: (text) => this.notice(text),
  });
  private readonly tabs = VIEWS.map((entry) => this.makeTab(entry));
  private readonly keys: KeyBinding[] = [
    { keys: ["r"], does: "ask the server again", run: () => this.reload() },
    { keys: ["e"], does: "export: links and downloads", run: () => this.exports.open() },
    { keys: ["y"], does: "copy a link to this picture as it is now", run: () => void this.exports.copyLink(true) },
    { keys: ["?"], does: "these keys", run: () => this.help() },
  ];

  start(): void {
    watchTheme((dark) => {
      this.dark = dark;
      this.opened.forEach(({ view }) => view.setTheme?.(dark));
    });
    listenToKeys({
      bindings: () => [...(this.current()?.view.keys ?? []), ...this.keys],
      go: (letter) => this.goTo(letter),
    });
    byId("more").after(this.exports.element);
    byId("help-open").addEventListener("click", () => this.help());
    byId("pages").replaceChildren(...this.tabs);
    this.status.addEventListener("wheel", (e) => this.status.scrollBy({ left: e.deltaY + e.deltaX }), { passive: true });
    window.addEventListener("popstate", () => this.follow());
    window.addEventListener("pagehide", () => this.writeAddress());
    this.adopt(this.state);
  }

  // A zoom asks nobody: its picture comes before the address, with which a browser is busy for a while.
  change(changed: Partial<State>, remember = true): void {
    const address = { text: this.link(changed), remember };
    const isZoom = Object.keys(changed).every((key) => key === "zoom");
    this.writeAddress();
    this.addressDue = address;
    if (isZoom) {
      this.addressLater.soon();
    } else {
      this.writeAddress();
    }
    this.adopt(this.changed(changed));
  }

  private writeAddress(): void {
    const due = this.addressDue;
    this.addressDue = null;
    if (due?.remember === true) {
      this.place++;
      this.pushedAt = performance.now();
      history.pushState({ place: this.place }, "", due.text);
    } else if (due !== null) {
      history.replaceState({ place: this.place }, "", due.text);
    }
  }

  // Back just after a zoom finds the browser without its address, or on its way from before it: a step too far.
  private follow(): void {
    const place = placeOf(history.state);
    const isTooFar =
      this.addressDue?.remember === true
        ? place === this.place - 1
        : place === this.place - 2 && performance.now() - this.pushedAt < JUST_MS;
    this.addressDue = null;
    this.place = place;
    if (isTooFar) {
      history.forward();
      return;
    }
    this.adopt(readState(location.hash));
  }

  link(changed: Partial<State>): string {
    return location.pathname + location.search + writeState(this.changed(changed));
  }

  // Another time is one of whole steps again, unless it is said to be exact.
  private changed(changed: Partial<State>): State {
    const isOtherTime = changed.from !== undefined || changed.until !== undefined;
    return { ...this.state, ...(isOtherTime ? { exact: "" } : {}), ...changed };
  }

  reload(): void {
    this.load(this.current() as Opened, true);
  }

  refine(): void {
    this.load(this.current() as Opened, false);
  }

  pin(from: number, until: number): void {
    this.pins = { from: String(from), until: String(until) };
  }

  pinned(): State {
    return this.pins === null || !isLive({ ...this.state, base: "" }) ? this.state : { ...this.state, ...this.pins };
  }

  isBusy(): boolean {
    return this.busy;
  }

  pictured(): void {
    const opened = this.current();
    if (opened !== null) {
      opened.shownSince = Date.now();
    }
  }

  blank(...children: Child[]): void {
    this.isBlank = true;
    this.messages.hide();
    this.messages.put("empty", children);
  }

  notice(text: string, forMs = NOTICE_MS): void {
    const box = byId("notice");
    box.textContent = shown(text);
    box.hidden = false;
    clearTimeout(this.noticeTimer);
    this.noticeTimer = window.setTimeout(() => (box.hidden = true), forMs);
  }

  speak(text: string): void {
    byId("spoken").textContent = shown(text);
  }

  private current(): Opened | null {
    return this.entry === null ? null : (this.opened.get(this.entry.page) ?? null);
  }

  private adopt(next: State): void {
    const known = VIEWS.find(({ page }) => page === next.page);
    const entry = known ?? VIEWS[0];
    if (known === undefined) {
      this.notice(`There is no page “${next.page}”: this is the ${entry.title}.`, LONG_NOTICE_MS);
      next = { ...next, page: entry.page };
    }
    const before = entry === this.entry ? this.state : null;
    this.state = next;
    this.controls.show(next);
    this.showTabs(entry);
    const title = shown(titleOf(next, entry.title));
    if (title !== document.title) {
      document.title = title;
    }
    byId("note").textContent = shown(next.note);
    byId("note").hidden = next.note === "";
    this.scheduleRefresh();
    const opened = before === null ? this.open(entry) : (this.current() as Opened);
    const { asked, view } = opened;
    view.adjust?.(next, before);
    if (asked === null || asked.zone !== next.zone || view.asked.some((key) => asked[key] !== next[key])) {
      this.load(opened, asked === null || asked.from !== next.from || asked.until !== next.until);
    }
  }

  private open(entry: Entry): Opened {
    const before = this.current();
    before?.view.leave?.();
    if (before !== null) {
      before.view.element.hidden = true;
    }
    this.entry = entry;
    this.status.replaceChildren();
    let opened = this.opened.get(entry.page);
    if (opened === undefined) {
      opened = new Opened(entry.make(this));
      opened.view.setTheme?.(this.dark);
      this.opened.set(entry.page, opened);
      if (!opened.view.element.isConnected) {
        byId("main").prepend(opened.view.element);
      }
    }
    opened.asked = null; // time has passed, and the status line is its own again
    opened.view.element.hidden = false;
    document.body.dataset.page = entry.page;
    return opened;
  }

  private load(opened: Opened, withChoices: boolean): void {
    this.asking.abort();
    this.asking = new AbortController();
    const { signal } = this.asking;
    this.isBlank = false;
    this.busy = true;
    opened.asked = this.state;
    this.messages.loading(opened.shownSince !== 0);
    this.choicesAreDue ||= withChoices;
    this.pins = withChoices ? null : this.pins;
    opened.view
      .load(this.pinned(), signal)
      .then(() => this.hasShown(opened, signal))
      .catch((failure: unknown) => this.hasFailed(opened, failure, signal))
      .finally(() => void this.refreshChoices(signal));
  }

  // After the view's own questions: the server is theirs first.
  private async refreshChoices(signal: AbortSignal): Promise<void> {
    if (this.choicesAreDue && !signal.aborted) {
      await this.controls.refreshChoices(signal);
      this.choicesAreDue = signal.aborted;
    }
  }

  private hasShown(opened: Opened, signal: AbortSignal): void {
    if (signal.aborted) {
      return;
    }
    this.busy = false;
    this.controls.refuse("");
    opened.shownSince = this.isBlank ? 0 : Date.now();
    if (this.isBlank) {
      this.messages.done();
    } else {
      this.messages.hide();
    }
    settled();
  }

  private hasFailed(opened: Opened, failure: unknown, signal: AbortSignal): void {
    if (signal.aborted) {
      return;
    }
    this.busy = false;
    opened.asked = null;
    const sentence = failure instanceof Error ? failure.message : String(failure);
    this.controls.refuse(failure instanceof ApiError && [404, 422].includes(failure.status) ? sentence : "");
    if (failure instanceof ApiError && failure.status === 404 && opened.shownSince === 0) {
      explainUnknown(this, sentence);
      this.messages.done();
      settled();
      return;
    }
    this.messages.error(sentence, opened.shownSince);
  }

  private cancel(): void {
    const opened = this.current();
    this.asking.abort();
    this.busy = false;
    this.messages.done();
    if (opened !== null) {
      opened.asked = null;
    }
    if (opened === null || opened.shownSince === 0) {
      const again = button("Ask again", () => this.reload());
      this.messages.put("empty", [el("p", {}, "Cancelled."), again]);
    } else {
      this.notice("Cancelled: the picture is the one from before.");
    }
  }

  private scheduleRefresh(): void {
    clearInterval(this.refreshTimer);
    const seconds = Number(this.state.refresh);
    if (seconds >= 1) {
      this.refreshTimer = window.setInterval(() => {
        if (!document.hidden && !this.busy && byId("frame-menu").hidden && this.current()?.view.isHeld?.() !== true) {
          this.reload();
        }
      }, seconds * 1000);
    }
  }

  private makeTab({ page, title, key }: Entry): HTMLAnchorElement {
    const tab = el("a", { title: `g ${key}` }, title);
    tab.addEventListener("click", (e) => {
      if (!e.ctrlKey && !e.metaKey && !e.shiftKey) {
        e.preventDefault();
        this.change({ page });
      }
    });
    return tab;
  }

  private showTabs(entry: Entry): void {
    VIEWS.forEach(({ page }, i) => {
      this.tabs[i].href = this.link({ page });
      if (page === entry.page) {
        this.tabs[i].setAttribute("aria-current", "page");
      } else {
        this.tabs[i].removeAttribute("aria-current");
      }
    });
  }

  private goTo(letter: string): boolean {
    const entry = VIEWS.find(({ key }) => key === letter);
    if (entry !== undefined) {
      this.change({ page: entry.page });
    }
    return entry !== undefined;
  }

  private help(): void {
    const own = this.current()?.view.keys ?? [];
    showHelp(this.entry as Entry, own, this.keys, VIEWS);
  }
}

function settled(): void {
  document.body.dataset.settled = String(Number(document.body.dataset.settled ?? 0) + 1);
}
