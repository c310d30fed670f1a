// SPDX-License-Identifier: Apache-2.0
// The first question about a build makes the server look for its names, and is answered without
// them. While the server still works on some, the page asks again by itself, a few times.

import { ask, type Accounting, type ModuleState, type Parameters } from "./api";
import { byId } from "../widgets/dom";

const PENDING = new Set(["wanted", "fetching", "converting"]);
const AGAIN_AFTER_MS = [1500, 2500, 5000, 10_000, 20_000];

export class PendingNames {
  private tries = 0;
  private timer = 0;

  constructor(private readonly again: () => void) {}

  // Another selection: its names have their own tries.
  reset(): void {
    clearTimeout(this.timer);
    this.tries = 0;
  }

  async look(counted: Accounting, selection: Parameters, signal: AbortSignal): Promise<void> {
    clearTimeout(this.timer);
    if (counted.unsymbolized === 0 || this.tries >= AGAIN_AFTER_MS.length) {
      return;
    }
    const answer = await ask<{ modules: ModuleState[] }>("modules", selection, signal).catch(
      () => null, // only a hint is missing then
    );
    const isComing = answer?.modules.some((m) => m.unsymbolized_share > 0 && (PENDING.has(m.state) || m.working === 1));
    if (isComing === true && !signal.aborted) {
      byId("stat-unsymbolized").append(" · names are coming");
      this.timer = window.setTimeout(this.again, AGAIN_AFTER_MS[this.tries++]);
    }
  }
}
