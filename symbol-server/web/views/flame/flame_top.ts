// SPDX-License-Identifier: Apache-2.0
// The functions of what is zoomed, or of everything, with the sums that the legend needs: the server's, of all stacks,
// drawn or not.

import { ask, type TopAnswer } from "../../server/api";
import { splitPath } from "../../graph/path";
import { topParameters, zoomParameters, type State } from "../../shell/state";

const ZOOM_PAUSE_MS = 200; // who zooms on asks once

export interface Top {
  answer: TopAnswer;
  of: string; // the zoomed frame's name; "": of everything
}

async function askTop(state: State, signal: AbortSignal): Promise<Top> {
  const zoom = zoomParameters(state);
  const answer = await ask<TopAnswer>("top", { ...topParameters(state), ...zoom }, signal);
  if (zoom.root === undefined) {
    return { answer, of: "" };
  }
  if (answer.accounting.samples > 0) {
    return { answer, of: splitPath(zoom.root).at(-1) ?? "" };
  }
  return { answer: await ask<TopAnswer>("top", topParameters(state), signal), of: "" }; // that frame is gone
}

export class FlameTop {
  private timer = 0;
  private asked = 0;
  private asking = new AbortController();

  // show: null and a sentence when they did not come.
  constructor(private readonly show: (top: Top | null, failure: string) => void) {}

  stop(): void {
    clearTimeout(this.timer);
    this.asking.abort();
  }

  soon(state: () => State): void {
    this.stop();
    this.asking = new AbortController();
    const { signal } = this.asking;
    this.timer = window.setTimeout(() => void this.wait(state(), signal), ZOOM_PAUSE_MS);
  }

  // Asks and shows, unless another question came after it.
  async wait(state: State, signal: AbortSignal): Promise<void> {
    const number = ++this.asked;
    try {
      const top = await askTop(state, signal);
      if (!signal.aborted && number === this.asked) {
        this.show(top, "");
      }
    } catch (failure) {
      if (!signal.aborted && number === this.asked) {
        this.show(null, (failure as Error).message);
      }
    }
  }
}
