// SPDX-License-Identifier: Apache-2.0
// The accounting of an answer in one line: what it contains, and what it does not and why.

import type { Accounting, FlameAnswer } from "../server/api";
import { el, type Child } from "../widgets/dom";
import {
  formatCount,
  formatCpus,
  formatPercent,
  formatRange,
  formatSpan,
  formatSampled,
  formatShare,
  formatValue,
} from "../text/format";
import { attachTip } from "../widgets/tip";

// schema/README.md lists the reasons; one that is not here is shown by its name.
export const LOST_WORDS: Record<string, string> = {
  ring_full: "the kernel's ring buffer was full: the agent was not scheduled in time",
  no_scratch: "no per-CPU scratch memory in the kernel",
  aggregate_full: "the agent's table of distinct stacks was full within one report",
  malformed: "records from the kernel that were damaged",
  queue: "the agent's queue of unsent reports was full: server away or slow",
  spool: "the agent's spool on disk was full: server away for long",
  refused: "the server refused the report",
  unexplained: "not explained by any counter: this should be 0, please report it",
};

const WARN_LOST = 0.01; // part of what was taken
const WARN_PART = 0.2; // part of the samples

export interface StatusEvents {
  unsymbolized(): void; // show the modules without names
  idle?: { isShown: boolean; toggle: () => void }; // waits for work: folded or not
  moreNodes: (() => void) | null; // ask for a finer answer; null: all is counted, and comes when one zooms
}

function chip(id: string, text: string, warn: boolean, tip: () => Child[]): HTMLButtonElement {
  const made = el("button", { type: "button", class: warn ? "chip warn" : "chip", id }, text);
  if (warn) {
    made.prepend(el("span", { class: "sign", "aria-hidden": "true" }, "!"));
  }
  attachTip(made, tip);
  return made;
}

function lostTip(a: Accounting): Child[] {
  const out: Child[] = [
    el(
      "p",
      {},
      `The kernel side took ${formatCount(a.taken)} samples on the selected hosts in this time; ` +
        `${formatCount(a.lost)} of them never reached the store.`,
    ),
  ];
  const reasons = Object.entries(a.lost_by).filter(([, count]) => count !== 0);
  if (reasons.length > 0) {
    const list = el("ul");
    for (const [reason, count] of reasons) {
      const words = LOST_WORDS[reason] ?? reason.replace(/_/g, " ");
      list.append(el("li", {}, `${formatCount(count)}: ${words}`));
    }
    out.push(list);
  }
  out.push(el("p", { class: "quiet" }, "Losses are counted per host, whatever process is chosen."));
  return out;
}

function incompleteTip(a: Accounting): Child[] {
  const out: Child[] = [
    el(
      "p",
      {},
      `${formatCount(a.unwind_incomplete)} samples have a user stack that does not reach ` +
        "the program's start. " +
        "They hang below a frame “[incomplete: why]”; nothing is patched up or guessed.",
    ),
  ];
  if (a.incomplete_by.length > 0) {
    const list = el("ul");
    for (const { reason, samples, modules } of a.incomplete_by) {
      const places = modules.map(
        (module) => `${module.name || module.build_id} ${formatPercent(module.samples, samples)}`,
      );
      const where = places.length > 0 ? ` — in ${places.join(", ")}` : "";
      list.append(el("li", {}, `${formatPercent(samples, a.samples)} ${reason}${where}`));
    }
    out.push(list);
  }
  return out;
}

function paragraph(text: string): () => Child[] {
  return () => [el("p", {}, text)];
}

export interface Summed {
  type: string;
  unit: string;
  from: number;
  until: number;
  accounting: Accounting;
}

// The accounting of any answer; of one that looked at no stacks ("none"), nothing is said of them.
export function showAccounting(
  box: HTMLElement,
  answer: Summed,
  unsymbolized: (() => void) | "none" = "none",
  prefix = "stat", // of the ids
): void {
  const a = answer.accounting;
  const span = answer.until - answer.from;
  const chips = [
    chip(`${prefix}-range`, formatRange(answer.from, answer.until), false, () => [
      el("p", {}, `The ${formatSpan(span)} this picture covers.`),
    ]),
    chip(`${prefix}-value`, valueText(answer, span), false, valueTip(answer, span)),
    chip(
      `${prefix}-samples`,
      `${formatCount(a.samples)} samples`,
      false,
      paragraph(
        "How many samples this picture is made of. Few samples mean large chance: that is what ± says.",
      ),
    ),
    chip(
      `${prefix}-hosts`,
      a.hosts === 1 ? "1 host" : `${formatCount(a.hosts)} hosts`,
      false,
      paragraph("Hosts with data in this time."),
    ),
    chip(
      `${prefix}-lost`,
      a.lost === 0 ? "lost 0" : `lost ${formatCount(a.lost)} (${formatPercent(a.lost, a.taken)})`,
      a.lost > WARN_LOST * a.taken || (a.lost_by.unexplained ?? 0) !== 0,
      () => lostTip(a),
    ),
  ];
  if (answer.unit === "samples") {
    chips.splice(1, 1); // the next one says it
  }
  if (a.exact !== undefined && a.exact > 0) {
    chips.push(exactChip(a.exact, a.covered ?? 0, prefix));
  }
  if (a.threads_from !== undefined) {
    chips.splice(1, 0, threadsChip(a.threads_from, answer.until, prefix));
  }
  if (a.processes_untold !== undefined && a.processes_untold > 0) {
    chips.splice(1, 0, untoldChip(a.processes_untold, a.processes_of ?? 0, prefix));
  }
  if (a.cut_by_memory !== undefined) {
    chips.splice(1, 0, memoryChip(a.cut_by_memory, answer, prefix));
  }
  if (unsymbolized !== "none") {
    chips.push(incompleteChip(a, prefix), unsymbolizedChip(a, unsymbolized, prefix));
  }
  box.replaceChildren(...chips);
}

export function showStatus(box: HTMLElement, answer: FlameAnswer, events: StatusEvents, prefix = "stat"): void {
  showAccounting(box, answer, () => events.unsymbolized(), prefix);
  const idle = answer.accounting.idle_value;
  if (events.idle !== undefined && (idle !== undefined || events.idle.isShown)) {
    box.append(idleChip(idle, answer, events.idle.toggle, prefix));
  }
  if (events.moreNodes !== null) {
    box.append(cutChip(answer, events.moreNodes, prefix));
  }
}

const WARN_COVERED = 0.8; // of what was counted

function exactChip(exact: number, covered: number, prefix: string): HTMLButtonElement {
  return chip(
    `${prefix}-exact`,
    `counted ${formatValue(exact, "nanoseconds")}, ${formatPercent(covered, exact)} in samples`,
    covered < WARN_COVERED * exact,
    paragraph(
      `${formatValue(exact, "nanoseconds")} were counted for each switch, without stacks, on the whole of the ` +
        `selected hosts; all samples of these hosts stand for ${formatValue(covered, "nanoseconds")}. ` +
        "Where that is far less, waits were lost, or have not ended yet.",
    ),
  );
}

function incompleteChip(a: Accounting, prefix: string): HTMLButtonElement {
  const made = chip(
    `${prefix}-incomplete`,
    `incomplete ${formatPercent(a.unwind_incomplete, a.samples)}`,
    a.unwind_incomplete > WARN_PART * a.samples,
    () => incompleteTip(a),
  );
  const [mostly] = a.incomplete_by;
  if (mostly) {
    made.append(" ", el("small", {}, `mostly ${mostly.reason}`));
  }
  return made;
}

function unsymbolizedChip(a: Accounting, run: () => void, prefix: string): HTMLButtonElement {
  const made = chip(
    `${prefix}-unsymbolized`,
    `unsymbolized ${formatPercent(a.nameless_value, a.value)}`,
    a.nameless_value > WARN_PART * a.value,
    paragraph(
      `${formatShare(a.nameless_value, a.value, a.nameless_error, a.error)} of it all is in functions without names, of ${modules(a.nameless_modules)}; ` +
        `${formatCount(a.unsymbolized)} samples (${formatPercent(a.unsymbolized, a.samples)}) have at least one such frame, ` +
        "themselves or among their callers. It is shown as module+0x…. Names that arrive later also appear in this picture. " +
        "Click for the modules concerned and why.",
    ),
  );
  made.addEventListener("click", run);
  return made;
}

function modules(count: number): string {
  return count === 1 ? "1 module" : `${formatCount(count)} modules`;
}

function idleChip(idle: number | undefined, { accounting, unit }: Summed, toggle: () => void, prefix: string): HTMLButtonElement {
  const made = chip(
    `${prefix}-idle`,
    idle === undefined ? "idle waits shown" : `idle ${formatPercent(idle, accounting.value)} folded`,
    false,
    paragraph(
      idle === undefined
        ? "Waits for work to come (poll, accept, sleep, condition variables) have their stacks. Click to fold them."
        : `${formatSampled(idle, accounting.idle_error, unit)} are waits for work to come: in poll, accept, sleep, condition variables or semaphores. ` +
            "They are one grey frame and count in every total. Click to see their stacks.",
    ),
  );
  made.addEventListener("click", toggle);
  return made;
}

function threadsChip(from: number, until: number, prefix: string): HTMLButtonElement {
  return chip(
    `${prefix}-threads`,
    from < until ? `threads only ${formatRange(from, until)}` : "threads are not kept so long",
    true,
    paragraph(
      "Threads are kept as long as single minutes are. Of the time before only sums are left, which " +
        "belong to no thread: a selector by thread does not find them.",
    ),
  );
}

function untoldChip(untold: number, of: number, prefix: string): HTMLButtonElement {
  const share = formatPercent(untold, of);
  return chip(
    `${prefix}-untold`,
    `${share} of unknown processes`,
    true,
    paragraph(
      `${share} of the samples are of processes whose command is not known, ${formatCount(untold)} of ${formatCount(of)}: ` +
        "the report that told of them has not come, or their sender tells nothing. No command, unit or user selects them.",
    ),
  );
}

function memoryChip(cut: number, answer: Summed, prefix: string): HTMLButtonElement {
  return chip(
    `${prefix}-memory`,
    `only the heaviest stacks, without ${formatPercent(cut, answer.accounting.value)}`,
    true,
    paragraph(
      `${formatValue(cut, answer.unit)} are of the lightest stacks, for which the server had no memory ` +
        "(--query-memory): they are in no frame here. Narrow the time or the selection to see them.",
    ),
  );
}

function valueText(answer: Summed, span: number): string {
  const value = formatSampled(answer.accounting.value, answer.accounting.error, answer.unit);
  return answer.unit === "nanoseconds" && answer.type === "on-cpu"
    ? `${value} · ${formatCpus(answer.accounting.value, answer.accounting.reported_ms ?? span, answer.accounting.cpus)}`
    : value;
}

function valueTip(answer: Summed, span: number): () => Child[] {
  const what =
    answer.unit === "nanoseconds"
      ? "Time of all samples together. CPUs: the same, averaged over " +
        (answer.accounting.reported_ms === undefined
          ? `the whole range of ${formatSpan(span)}.`
          : `the ${formatSpan(answer.accounting.reported_ms)} in which the selected hosts reported.`)
      : "The sum over all samples of this picture.";
  return paragraph(
    answer.accounting.error === undefined
      ? what
      : `${what} ±, here and at shares: what sampling alone may be off by, in 19 of 20 cases. How the load itself varies is not in it${
          answer.accounting.error_is_least ? ", nor how the moments differ in which memory was looked at: it is at least so much" : ""
        }.`,
  );
}

function cutChip(answer: FlameAnswer, more: () => void, prefix: string): HTMLButtonElement {
  const a = answer.accounting;
  const cut = a.cut - (a.cut_by_memory ?? 0);
  const made = chip(
    `${prefix}-cut`,
    cut === 0 ? "cut 0" : `cut ${formatPercent(cut, a.value)}`,
    false,
    paragraph(
      cut === 0
        ? "No frame was left out for its size."
        : `${formatValue(cut, answer.unit)} lie in frames too small for this answer of ` +
            `${formatCount(answer.nodes.name.length)} frames. ` +
            "Sums count them fully; a click here loads more.",
    ),
  );
  if (cut > 0) {
    made.addEventListener("click", more);
  }
  return made;
}
