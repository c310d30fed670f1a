// SPDX-License-Identifier: Apache-2.0
// Files on their way to the server, with progress; what became of each stays to be read.

import { el } from "../../widgets/dom";
import { formatCount, formatPercent, formatSize } from "../../text/format";
import { factsOf, isWanted, putModule } from "../../server/upload";

const AT_ONCE = 2;
const FILES_MAX = 10_000; // of one drop
const LINES_MAX = 200; // kept to be read; the oldest finished ones go

interface Job {
  file: File;
  target: string; // build-id it is for; "" as the file says
}

export class UploadList {
  readonly element = el("section", { class: "uploads", "aria-label": "Uploads", hidden: "" });
  private readonly lines = el("ul");
  private readonly sum = el("span", { class: "quiet", role: "status" });
  private readonly waiting: Job[] = [];
  private running = 0;
  private sent = 0;
  private kept = 0; // nothing new
  private others = 0; // no ELF files
  private failed = 0;
  private stopping = new AbortController();

  // changed: the server has something new.
  constructor(private readonly changed: () => void) {
    const stop = el("button", { type: "button" }, "Stop");
    stop.addEventListener("click", () => this.stop());
    const close = el("button", { type: "button" }, "Close");
    close.addEventListener("click", () => this.close());
    this.element.append(el("div", { class: "tools" }, el("strong", {}, "Uploads"), this.sum, stop, close), this.lines);
  }

  // target: "" takes each file's own build-id; what is none is left out, as a dropped folder has much else.
  add(files: readonly File[], target: string): void {
    this.element.hidden = false;
    this.stopping = this.stopping.signal.aborted ? new AbortController() : this.stopping;
    for (const file of files.slice(0, FILES_MAX)) {
      this.waiting.push({ file, target });
    }
    if (files.length > FILES_MAX) {
      this.line(`${formatCount(files.length - FILES_MAX)} files`, `are more than ${formatCount(FILES_MAX)} at once: send them again`, "failed");
    }
    this.next();
  }

  get isBusy(): boolean {
    return this.running > 0 || this.waiting.length > 0;
  }

  private stop(): void {
    this.waiting.length = 0;
    this.stopping.abort();
    this.tell();
  }

  private close(): void {
    this.stop();
    this.lines.replaceChildren();
    this.sent = this.kept = this.others = this.failed = 0;
    this.element.hidden = true;
  }

  private next(): void {
    while (this.running < AT_ONCE && this.waiting.length > 0) {
      this.running++;
      void this.send(this.waiting.shift() as Job).finally(() => {
        this.running--;
        this.next();
      });
    }
    this.tell();
  }

  private async send({ file, target }: Job): Promise<void> {
    const { signal } = this.stopping;
    let state: HTMLElement | null = null;
    try {
      const facts = await factsOf(file);
      const id = target === "" ? (facts?.buildId ?? "") : target;
      if (facts === null && target === "") {
        this.others++;
        return;
      }
      state = this.line(file.name, "", "running");
      if (id === "") {
        this.end(state, "failed", "has no build-id: choose its row in the list, then “Upload for this module”");
        return;
      }
      if (target === "" && facts !== null && !(await isWanted(id, facts, signal))) {
        this.kept++;
        this.end(state, "kept", "the server has it, or as good a one, already");
        return;
      }
      const { isNew } = await putModule(id, file, (bytes) => progress(state, bytes, file.size), signal);
      this.sent += isNew ? 1 : 0;
      this.kept += isNew ? 0 : 1;
      this.end(state, isNew ? "sent" : "kept", isNew ? "sent; the server takes its names" : "nothing new: what the server has is as good");
      if (isNew) {
        this.changed();
      }
    } catch (failure) {
      const text = signal.aborted ? "stopped" : (failure as Error).message;
      this.end(state ?? this.line(file.name, "", "running"), "failed", text);
    }
  }

  private line(name: string, text: string, how: string): HTMLElement {
    const state = el("span", { class: "how" }, text);
    this.lines.prepend(el("li", { class: how }, el("bdi", { class: "file" }, name), state));
    for (let last = this.lines.lastElementChild; this.lines.children.length > LINES_MAX && last?.className !== "running"; ) {
      last?.remove();
      last = this.lines.lastElementChild;
    }
    return state;
  }

  private end(state: HTMLElement, how: "sent" | "kept" | "failed", text: string): void {
    this.failed += how === "failed" ? 1 : 0;
    const sign = el("span", { class: "sign", "aria-hidden": "true" }, how === "failed" ? "!" : "✓");
    state.replaceChildren(sign, text);
    (state.parentElement as HTMLElement).className = how;
    this.tell();
  }

  private tell(): void {
    const parts: [number, string][] = [
      [this.running + this.waiting.length, "to go"],
      [this.sent, "sent"],
      [this.kept, "not needed"],
      [this.failed, "failed"],
      [this.others, "no ELF files"],
    ];
    const text = parts.filter(([count]) => count > 0).map(([count, what]) => `${formatCount(count)} ${what}`);
    this.sum.textContent = text.join(" · ");
  }
}

function progress(state: HTMLElement | null, sent: number, size: number): void {
  const bar = el("progress", { max: String(Math.max(1, size)), value: String(sent), "aria-label": "Sent" });
  state?.replaceChildren(bar, `${formatPercent(sent, size)} of ${formatSize(size)}`);
}

// The files of a drop, those in its folders too.
export async function filesOf(transfer: DataTransfer): Promise<File[]> {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry());
  const out: File[] = [];
  for (const entry of entries) {
    if (entry !== null) {
      await collect(entry, out);
    }
  }
  return out.length > 0 ? out : [...transfer.files];
}

async function collect(entry: FileSystemEntry, out: File[]): Promise<void> {
  if (out.length > FILES_MAX) {
    return;
  }
  if (entry.isFile) {
    const file = await new Promise<File | null>((done) =>
      (entry as FileSystemFileEntry).file(done, () => done(null)),
    );
    if (file !== null) {
      out.push(file);
    }
    return;
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((done) => reader.readEntries(done, () => done([])));
    if (some.length === 0) {
      return;
    }
    for (const inner of some) {
      await collect(inner, out);
    }
  }
}
