// SPDX-License-Identifier: Apache-2.0
// The menu of what can be taken along of a picture: its link, and its data as files.

import { fetchFile } from "../server/api";
import { downloadsOf, type Download } from "../server/downloads";
import { copyText } from "./copy";
import { el } from "./dom";
import { isLive, snapshotOf } from "../shell/snapshot";
import type { State } from "../shell/state";
import { closeWhenLeft } from "./unfolding";

const KEPT_MS = 60_000; // a file's bytes, for the browser to write them

export interface Exported {
  state(): State;
  pinned(): State; // with the times that are shown
  shownAt(): number; // unix milliseconds when the picture was made
  link(changed: Partial<State>): string;
  notice(text: string): void;
}

export class ExportMenu {
  readonly element: HTMLDetailsElement;
  private readonly panel = el("div", { class: "panel" });
  private readonly progress = el("p", { class: "export-progress", role: "status", hidden: "" });
  private readonly note = el("input", {
    type: "text",
    placeholder: "Note: what is to be seen here",
    "aria-label": "Note that the link carries",
    maxlength: "200",
    autocomplete: "off",
  });
  private fetching: AbortController | null = null;

  constructor(private readonly of: Exported) {
    const summary = el("summary", { title: "Links and downloads (e)" }, "Export");
    this.element = el("details", { id: "export" }, summary, this.panel);
    // Before it opens: what is filled later would be replaced under the pointer.
    summary.addEventListener("click", () => this.fill());
    this.note.addEventListener("keydown", (e) => {
      if (e.key === "Enter") {
        void this.copyLink(true);
      }
    });
    closeWhenLeft(this.element);
  }

  open(): void {
    this.element.addEventListener("toggle", () => this.panel.querySelector("button")?.focus(), { once: true });
    this.fill();
    this.element.open = !this.element.open;
  }

  // still: its times do not move on.
  async copyLink(still: boolean): Promise<void> {
    const state = this.of.state();
    const note = this.element.open ? this.note.value.trim() : state.note;
    const link = this.of.link({ ...(still ? snapshotOf(this.of.pinned(), this.of.shownAt()) : state), note });
    const copied = await copyText(new URL(link, location.href).href);
    const what = still || !isLive(state) ? "shows this picture, also tomorrow" : "follows the time";
    this.of.notice(copied ? `Link copied: it ${what}` : "The browser does not let the link be copied");
    this.element.open = false;
  }

  private fill(): void {
    const state = snapshotOf(this.of.pinned(), this.of.shownAt());
    this.note.value = state.note;
    const links = [el("h2", {}, "Link"), this.note, this.item("Copy link", "this picture, also tomorrow", () => void this.copyLink(true))];
    if (isLive(this.of.state())) {
      links.push(this.item("Copy live link", "its times move on", () => void this.copyLink(false)));
    }
    const files = [...this.downloads(state)].flatMap(([title, downloads]) => [
      el("h2", {}, `Download: ${title.toLowerCase()}`),
      ...downloads.map((download) => this.item(download.text, download.hint, () => void this.save(download))),
    ]);
    this.panel.replaceChildren(...links, ...files, this.progress);
  }

  private downloads(state: State): Map<string, Download[]> {
    try {
      return downloadsOf(state, this.of.shownAt());
    } catch {
      return new Map(); // a time that cannot be understood: the view has said so
    }
  }

  private item(text: string, hint: string, run: () => void): HTMLElement {
    const made = el("button", { type: "button" }, el("span", {}, text), el("small", { class: "quiet" }, hint));
    made.addEventListener("click", run);
    return made;
  }

  private async save(download: Download): Promise<void> {
    this.fetching?.abort();
    const fetching = new AbortController();
    this.fetching = fetching;
    const cancel = el("button", { type: "button", class: "link" }, "Cancel");
    cancel.addEventListener("click", () => {
      fetching.abort();
      this.progress.hidden = true;
    });
    this.progress.replaceChildren(`Fetching ${download.text}… `, cancel);
    this.progress.hidden = false;
    try {
      const bytes = await fetchFile(download.resource, download.parameters, fetching.signal);
      if (!fetching.signal.aborted) {
        hand(bytes, download.file);
        this.progress.hidden = true;
        this.element.open = false;
        this.of.notice(`Saved as ${download.file}`);
      }
    } catch (failure) {
      if (!fetching.signal.aborted) {
        this.failed(failure instanceof Error ? failure.message : String(failure), download);
      }
    }
  }

  private failed(sentence: string, download: Download): void {
    const again = el("button", { type: "button", class: "link" }, "Try again");
    again.addEventListener("click", () => void this.save(download));
    this.progress.replaceChildren(el("span", {}, sentence), " ", again);
  }
}

function hand(bytes: Blob, name: string): void {
  const url = URL.createObjectURL(bytes);
  const link = el("a", { href: url, download: name, hidden: "" });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), KEPT_MS);
}
