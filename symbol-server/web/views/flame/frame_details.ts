// SPDX-License-Identifier: Apache-2.0
// The strip below the graph: what is known of the selected frame, as text that can be selected and
// copied. Pinned it stays at its frame, has room for all, and says why a frame is unknown.

import { ask, type ModuleState } from "../../server/api";
import { detailRows } from "../../graph/details";
import { byId, el } from "../../widgets/dom";
import { formatCount, formatShare, formatSpan, formatTime } from "../../text/format";
import type { Graph } from "../../graph/graph";
import { labelOf } from "../../graph/palette";
import { joinPath, splitPath } from "../../graph/path";
import type { Shell } from "../../shell/view";
import { moduleParameters } from "../../shell/state";
import { ageOf, firstSeenOf } from "./frame_ages";
import { languageOf } from "./languages";
import { whyUnknown } from "./why_unknown";

const NAME_SHOWN = 300; // characters, not pinned

export class FrameDetails {
  private readonly strip = byId("frame-strip");
  private graph: Graph | null = null;
  private node = -1;
  private zoom = 0;
  private pinned = false;
  private modules: ModuleState[] | null = null;
  private asking = new AbortController();

  constructor(private readonly shell: Shell) {
    this.strip.addEventListener("click", (e) => {
      const onText = (window.getSelection()?.toString() ?? "") !== "";
      if (!this.pinned && !onText && !(e.target instanceof Element && e.target.closest("button") !== null)) {
        this.pin();
      }
    });
    this.fill();
  }

  // The frame that is selected now; the one that the state pins stays, in every answer that has its path.
  show(graph: Graph | null, node: number, zoom: number): void {
    if (this.pinned && graph === this.graph) {
      return;
    }
    const pinned = this.shell.state.pinned;
    const kept = pinned === "" ? -1 : (graph?.find(splitPath(pinned)) ?? -1);
    this.setPinned(kept >= 0);
    this.graph = graph;
    this.node = kept >= 0 ? kept : node;
    this.zoom = zoom;
    this.fill();
    void this.askModules();
  }

  // Back, or another address, may pin another frame or none.
  follow(): void {
    const { graph, node } = this;
    const shown = this.pinned && graph !== null ? joinPath(graph.pathOf(node)) : "";
    if (shown !== this.shell.state.pinned) {
      this.setPinned(false);
      this.show(graph, node, this.zoom);
    }
  }

  // Another answer: its modules may have got their names.
  renew(): void {
    this.asking.abort();
    this.modules = null;
  }

  // Pins what is shown, or lets it go; false: there is nothing.
  pin(): boolean {
    if (this.graph === null || this.node < 0) {
      return false;
    }
    this.setPinned(!this.pinned);
    this.shell.change({ pinned: this.pinned ? joinPath(this.graph.pathOf(this.node)) : "" }, false);
    this.fill();
    void this.askModules();
    return true;
  }

  // Lets go; false: nothing was pinned.
  letGo(): boolean {
    const was = this.pinned;
    this.setPinned(false);
    if (was) {
      this.shell.change({ pinned: "" }, false);
    }
    return was;
  }

  private setPinned(pinned: boolean): void {
    this.pinned = pinned;
    this.strip.classList.toggle("pinned", pinned);
  }

  private async askModules(): Promise<void> {
    const { graph, node } = this;
    if (!this.pinned || this.modules !== null || graph === null || graph.moduleIndex(node) < 0) {
      return;
    }
    this.asking = new AbortController();
    const { signal } = this.asking;
    try {
      const answer = await ask<{ modules: ModuleState[] }>("modules", moduleParameters(this.shell.pinned()), signal);
      if (!signal.aborted) {
        this.modules = answer.modules;
        this.fill();
      }
    } catch (failure) {
      if (!signal.aborted) {
        this.shell.notice(`What is known of its module did not come: ${(failure as Error).message}`);
      }
    }
  }

  private rows(graph: Graph, node: number): [string, string][] {
    const out = detailRows(graph, node);
    if (this.zoom > 0 && graph.isInside(node, this.zoom)) {
      out[0][1] += ` · ${formatShare(graph.total[node], graph.total[this.zoom], graph.totalErrorOf(node), graph.totalErrorOf(this.zoom))} of the zoomed frame`;
    }
    const samples = samplesOf(graph, node);
    if (samples !== "") {
      out.push(["samples", samples]);
    }
    const language = languageOf(graph.kindOf(node), graph.fileOf(node), graph.nameOf(node));
    if (language !== "" && graph.languageOf(node) === undefined) {
      out.push(["language", language]);
    }
    const first = firstMet(graph, node, this.modules ?? []);
    if (first !== "") {
      out.push(["first met", first]);
    }
    const why = whyUnknown(graph, node, this.modules);
    if (why !== "") {
      out.push(["why", why]);
    }
    return out;
  }

  private fill(): void {
    const { graph, node } = this;
    if (graph === null || node < 0) {
      this.strip.replaceChildren(
        el("span", { class: "quiet" }, matchMedia("(pointer: coarse)").matches ? "Tap a frame to zoom, hold it for more, " : "Click a frame to zoom, right-click for more, "),
        el("kbd", {}, "?"),
        el("span", { class: "quiet" }, " for all keys."),
      );
      return;
    }
    const label = labelOf(graph.nameOf(node), graph.kindOf(node));
    const isCut = !this.pinned && label.length > NAME_SHOWN;
    const list = el("dl");
    for (const [term, text] of this.rows(graph, node)) {
      list.append(el("div", {}, el("dt", {}, term), el("dd", {}, text)));
    }
    const pin = el(
      "button",
      { type: "button", class: "pin", "aria-pressed": String(this.pinned), title: this.pinned ? "Let it go (i)" : "Keep it here (i)" },
      this.pinned ? "Unpin" : "Pin",
    );
    pin.addEventListener("click", () => this.pin());
    const name = el("span", { class: "frame-name" }, isCut ? `${label.slice(0, NAME_SHOWN)}…` : label);
    this.strip.replaceChildren(el("div", { class: "frame-head" }, name, pin), list);
  }
}

// When the server first met the frame's build; "" where nobody knows.
function firstMet(graph: Graph, node: number, modules: readonly ModuleState[]): string {
  const build_id = graph.moduleOf(node)?.build_id ?? "";
  const age = ageOf(build_id, firstSeenOf(modules), graph.answer.until);
  return age === null ? "" : `${formatTime(graph.answer.until - age)}, ${formatSpan(age)} before the end of this time`;
}

// As many as its value stands for; where all samples weigh the same that is their number.
function samplesOf(graph: Graph, node: number): string {
  const { unit, accounting } = graph.answer;
  if (unit === "samples" || accounting.value <= 0 || accounting.samples <= 0) {
    return "";
  }
  const count = (graph.total[node] * accounting.samples) / accounting.value;
  return count < 1 ? "" : `about ${formatCount(Math.round(count))}, by its share`;
}
