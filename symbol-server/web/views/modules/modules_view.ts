// SPDX-License-Identifier: Apache-2.0
// Modules: which builds leave samples without names, why, what to do about it, and the upload. While the
// server works on some, it is asked again, so that one sees names come.

import { ask, type AgentsAnswer, type ModulesAnswer, type ModuleState, type TopAnswer } from "../../server/api";
import { deleteModule } from "../../server/upload";
import { copyAndSay } from "../../widgets/copy";
import { el, filterInput } from "../../widgets/dom";
import { formatCount, formatSize } from "../../text/format";
import { explainEmpty } from "../../shell/empty";
import type { KeyBinding, Shell, View } from "../../shell/view";
import { moduleParameters, sampleParameters, type State } from "../../shell/state";
import { showAccounting } from "../../shell/status_line";
import { listKeys } from "../../widgets/list_keys";
import { ListTable } from "../../widgets/list_table";
import { distributionOf, UNKNOWN } from "./distribution";
import { ModuleFetches } from "./module_fetch";
import { isWorking, type Sources } from "./modules_advice";
import { moduleColumns } from "./modules_columns";
import { moduleDetails } from "./modules_details";
import { listOf, SHOWN, shownOf, SHOWN_WORDS, isListed } from "./modules_rows";
import { filesOf, UploadList } from "./modules_upload";

const AGAIN_MS = 1500;
const AGAIN_MOST_MS = 10_000;
const AFTER_UPLOAD_MS = 30_000; // so long the list is asked again, whatever states say

export class ModulesView implements View {
  readonly asked = [...(["type", "from", "until", "process", "service", "host", "match"] as const)];
  private modules: ModuleState[] = [];
  private most = 0;
  private sources: Sources = { origin: location.origin, debuginfod: [], hasDirectories: false, distribution: UNKNOWN };
  private readonly fetches = new ModuleFetches();
  private uploaded = ""; // how much of the server's disk uploads take
  private again = 0;
  private pause = AGAIN_MS;
  private uploadedAt = -AFTER_UPLOAD_MS;
  private readonly which = el("span", { class: "joined", role: "group", "aria-label": "Modules listed" });
  private readonly filter = filterInput("Filter modules", "Filter  ( / )");
  private readonly note = el("span", { class: "quiet", role: "status" });
  private readonly nothing = el("p", { class: "nothing", hidden: "" });
  private readonly side = el("aside", { class: "list-details", "aria-label": "Details of the module", hidden: "", tabindex: "0" });
  private readonly picker = el("input", { type: "file", multiple: "", class: "hidden-for-eyes", tabindex: "-1", "aria-label": "Files to upload" });
  private readonly uploads = new UploadList(() => this.hasUploaded());
  private readonly list: ListTable<ModuleState>;
  private target = ""; // build-id the picked files are for; "": as they say
  readonly element: HTMLElement;
  readonly keys: KeyBinding[];

  constructor(private readonly shell: Shell) {
    this.list = new ListTable("Modules", moduleColumns(() => this.most, {
      sources: () => this.sources,
      copy: (command) => void copyAndSay(command, shell),
      fetch: (module) => void this.fetch(module),
    }), {
      idOf: ({ build_id }) => build_id,
      pick: (module) => shell.change({ module }, false),
      orderBy: (module_order) => shell.change({ module_order }, false),
    });
    for (const shown of SHOWN) {
      const button = el("button", { type: "button", "data-shown": shown }, SHOWN_WORDS[shown]);
      button.addEventListener("click", () => shell.change({ modules: shown }));
      this.which.append(button);
    }
    this.filter.addEventListener("input", () => shell.change({ module_find: this.filter.value }, false));
    const upload = el("button", { type: "button", title: "u" }, "Upload files…");
    upload.addEventListener("click", () => this.choose(""));
    this.picker.addEventListener("change", () => this.picked());
    const hint = el("span", { class: "quiet hint" }, "or drop files and folders here");
    this.element = el(
      "div",
      { class: "list-page modules-page", hidden: "" },
      el("div", { class: "tools" }, this.which, this.filter, this.note, upload, hint, this.picker),
      this.uploads.element,
      el("div", { class: "list-columns" }, el("div", { class: "list-body" }, this.nothing, this.list.element), this.side),
    );
    this.listenToDrops();
    this.keys = [
      ...listKeys(this.list, this.filter, () => shell.change({ module: "" }, false)),
      { keys: ["u"], does: "upload files", run: () => this.choose("") },
      { keys: ["b"], does: "list: without names, in this picture, all", run: () => this.nextShown() },
    ];
  }

  async load(state: State, signal: AbortSignal): Promise<void> {
    clearTimeout(this.again);
    this.pause = AGAIN_MS;
    const sums = ask<TopAnswer>("top", { ...sampleParameters(state), limit: "1" }, signal);
    sums.catch(() => undefined); // thrown below
    await this.askDistribution(signal);
    await this.askModules(state, signal);
    const answer = await sums;
    if (signal.aborted) {
      return;
    }
    showAccounting(this.shell.status, answer, () => this.shell.change({ modules: "nameless" }));
    if (this.modules.length === 0) {
      await explainEmpty(this.shell, answer.accounting, signal);
    }
  }

  adjust(state: State): void {
    if (document.activeElement !== this.filter) {
      this.filter.value = state.module_find;
    }
    this.draw(state);
    this.list.reveal();
  }

  leave(): void {
    clearTimeout(this.again);
  }

  private async askModules(state: State, signal: AbortSignal): Promise<void> {
    const answer = await ask<ModulesAnswer>("modules", moduleParameters(state), signal);
    const { modules, uploads } = answer;
    if (signal.aborted) {
      return;
    }
    this.modules = modules;
    this.sources = {
      ...this.sources,
      debuginfod: (answer.debuginfod ?? []).map(({ source }) => source),
      hasDirectories: (answer.symbol_dirs?.passes ?? 0) > 0 || answer.symbol_dirs?.reading === 1,
    };
    const { sentences } = this.fetches.settle(modules);
    if (sentences.length > 0) {
      this.shell.notice(sentences.join(" "));
    }
    const limit = uploads.limit_bytes > 0 ? ` of ${formatSize(uploads.limit_bytes)}` : "";
    this.uploaded = uploads.files > 0 ? `${formatCount(uploads.files)} uploaded files, ${formatSize(uploads.bytes)}${limit}` : "";
    this.draw(this.shell.state);
    const isBusy = this.fetches.isBusy || modules.some((m) => m.unsymbolized > 0 && isWorking(m));
    const isFresh = performance.now() - this.uploadedAt < AFTER_UPLOAD_MS;
    if (isBusy || isFresh || this.uploads.isBusy) {
      this.again = window.setTimeout(() => void this.askAgain(state, signal), this.pause);
      this.pause = Math.min(AGAIN_MOST_MS, this.pause * 1.3);
    }
  }

  // What hosts run says which packages there are; without it there are still the other ways.
  private async askDistribution(signal: AbortSignal): Promise<void> {
    const { agents } = await ask<AgentsAnswer>("agents", {}, signal).catch(() => ({ agents: [] }));
    this.sources = { ...this.sources, distribution: distributionOf(agents) };
  }

  private async fetch(module: ModuleState): Promise<void> {
    await this.fetches.start(module, (text) => this.shell.notice(text));
    if (this.shell.state.page === "modules") {
      this.shell.reload();
    }
  }

  // The accounting too: the share without names falls while one watches.
  private async askAgain(state: State, signal: AbortSignal): Promise<void> {
    try {
      const sums = ask<TopAnswer>("top", { ...sampleParameters(state), limit: "1" }, signal);
      sums.catch(() => undefined);
      await this.askModules(state, signal);
      const answer = await sums;
      if (!signal.aborted) {
        showAccounting(this.shell.status, answer, () => this.shell.change({ modules: "nameless" }));
      }
    } catch (failure) {
      if (!signal.aborted) {
        this.shell.notice(`${(failure as Error).message} The list is the one from before.`);
      }
    }
  }

  private draw(state: State): void {
    const which = shownOf(state.modules);
    const rows = listOf(this.modules, which, state.module_find);
    this.most = rows.reduce((most, { nameless_share }) => Math.max(most, nameless_share), 0);
    for (const button of this.which.querySelectorAll<HTMLElement>("[data-shown]")) {
      const shown = shownOf(button.dataset.shown ?? "");
      const count = this.modules.filter((module) => isListed(module, shown)).length;
      button.textContent = `${SHOWN_WORDS[shown]} (${formatCount(count)})`;
      button.setAttribute("aria-pressed", String(shown === which));
    }
    this.note.textContent = state.module_find.trim() === "" ? this.uploaded : `${formatCount(rows.length)} found`;
    this.list.show(rows, state.module_order, state.module);
    this.nothing.hidden = rows.length > 0;
    this.list.element.hidden = rows.length === 0;
    this.nothing.textContent = this.whyNothing(state);
    this.drawDetails(state);
  }

  private whyNothing(state: State): string {
    if (state.module_find.trim() !== "") {
      return "No module listed here has these words.";
    }
    const used = this.modules.filter(({ samples }) => samples > 0).length;
    if (shownOf(state.modules) === "nameless" && used > 0) {
      return `✓ Every frame of this picture's ${formatCount(used)} modules has a name.`;
    }
    return "None in this picture.";
  }

  private drawDetails(state: State): void {
    const module = this.modules.find(({ build_id }) => build_id === state.module);
    this.side.hidden = module === undefined;
    if (module !== undefined) {
      const close = el("button", { type: "button", class: "close", "aria-label": "Close the details", title: "Esc" }, "×");
      close.addEventListener("click", () => this.shell.change({ module: "" }, false));
      this.side.replaceChildren(
        close,
        ...moduleDetails(this.shell, module, {
          sources: this.sources,
          upload: () => this.choose(module.build_id),
          forget: () => void this.forget(module),
          fetch: () => void this.fetch(module),
        }),
      );
    }
  }

  private async forget(module: ModuleState): Promise<void> {
    const name = module.name === "" ? module.build_id : module.name;
    const question =
      `Delete what was uploaded for ${name} (${formatSize(module.uploaded_bytes)}), and the names made of it? ` +
      "Names come again from other sources, the uploaded files do not.";
    if (!window.confirm(question)) {
      return;
    }
    try {
      const { deleted_files, deleted_bytes } = await deleteModule(module.build_id);
      this.shell.notice(`Deleted: ${formatCount(deleted_files)} uploaded files of ${name}, ${formatSize(deleted_bytes)}.`);
    } catch (failure) {
      this.shell.notice((failure as Error).message);
    }
    this.shell.reload();
  }

  private nextShown(): void {
    const at = SHOWN.indexOf(shownOf(this.shell.state.modules));
    this.shell.change({ modules: SHOWN[(at + 1) % SHOWN.length] });
  }

  // ---- upload ----

  private choose(target: string): void {
    this.target = target;
    this.picker.multiple = target === "";
    this.picker.value = "";
    this.picker.click();
  }

  private picked(): void {
    this.uploads.add([...(this.picker.files ?? [])], this.target);
  }

  private hasUploaded(): void {
    this.uploadedAt = performance.now();
    if (this.shell.state.page === "modules") {
      this.shell.reload();
    }
  }

  private listenToDrops(): void {
    const { element } = this;
    element.addEventListener("dragover", (e) => {
      if (e.dataTransfer?.types.includes("Files") === true) {
        e.preventDefault();
        element.classList.add("dropping");
      }
    });
    element.addEventListener("dragleave", (e) => {
      if (!element.contains(e.relatedTarget as Node | null)) {
        element.classList.remove("dropping");
      }
    });
    element.addEventListener("drop", (e) => {
      e.preventDefault();
      element.classList.remove("dropping");
      if (e.dataTransfer !== null) {
        void filesOf(e.dataTransfer).then((files) => this.uploads.add(files, ""));
      }
    });
  }
}
