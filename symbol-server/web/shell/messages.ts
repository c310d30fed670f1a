// SPDX-License-Identifier: Apache-2.0
// What stands where a picture cannot: loading, an error in one sentence, or nothing there and what
// to do about it. An error while an older picture is shown becomes a banner above it.

import { clockText } from "../text/format";
import { byId, el, type Child } from "../widgets/dom";

const LOADING_AFTER_MS = 200; // shorter waits are not worth a flicker
const CANCEL_AFTER_MS = 1000; // nor these a button that comes and goes

export class Messages {
  private readonly message = byId("message");
  private readonly banner = byId("banner");
  private timers: number[] = [];

  constructor(
    private readonly retry: () => void,
    private readonly cancel: () => void,
  ) {
    byId("cancel").addEventListener("click", () => this.cancel());
  }

  loading(hasPicture: boolean): void {
    this.timers.forEach(clearTimeout);
    this.timers = [
      window.setTimeout(() => {
        document.body.classList.add("loading");
        if (!hasPicture) {
          this.put("loading", [el("p", {}, "Loading…")]);
        }
      }, LOADING_AFTER_MS),
      window.setTimeout(() => document.body.classList.add("waits-long"), CANCEL_AFTER_MS),
    ];
  }

  done(): void {
    this.timers.forEach(clearTimeout);
    document.body.classList.remove("loading", "waits-long");
  }

  hide(): void {
    this.done();
    this.message.hidden = true;
    this.banner.hidden = true;
  }

  // shownSince: when the older picture came; 0: there is none.
  error(sentence: string, shownSince: number): void {
    this.done();
    const again = button("Try again", this.retry);
    if (shownSince === 0) {
      this.put("error", [el("h2", {}, "No picture"), el("p", {}, sentence), again]);
      return;
    }
    const time = clockText(shownSince);
    const old = `The picture below is the last one that came, at ${time}.`;
    this.banner.replaceChildren(el("span", {}, `${sentence} ${old}`), again);
    this.banner.hidden = false;
  }

  put(kind: string, children: Child[]): void {
    this.message.className = kind;
    this.message.replaceChildren(...children);
    this.message.hidden = false;
  }
}

export function button(text: string, run: () => void): HTMLButtonElement {
  const made = el("button", { type: "button" }, text);
  made.addEventListener("click", run);
  return made;
}
