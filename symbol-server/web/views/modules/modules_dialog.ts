// SPDX-License-Identifier: Apache-2.0
// The modules that leave samples of a picture without names, the worst first, why, and what helps. While the
// server works on one it is asked again; once names have come the picture behind it is drawn with them.

import { ask, type AgentsAnswer, type ModulesAnswer, type ModuleState, type Parameters } from "../../server/api";
import { copyAndSay } from "../../widgets/copy";
import { byId, el } from "../../widgets/dom";
import { formatPercent } from "../../text/format";
import type { Shell } from "../../shell/view";
import { linkTo } from "../links";
import { distributionOf, UNKNOWN } from "./distribution";
import { moduleCure, type CureActions } from "./module_cure";
import { ModuleFetches } from "./module_fetch";
import { stateText, type Sources } from "./modules_advice";
import { namelessness } from "./modules_columns";

const ROWS = 100;
const AGAIN_MS = 1500;
const AGAIN_LONGEST_MS = 10 * 60_000;

export class ModulesDialog {
  private readonly dialog = byId<HTMLDialogElement>("modules-dialog");
  private readonly body = byId("modules-body");
  private readonly said = el("p", { class: "said", role: "status" });
  private readonly fetches = new ModuleFetches();
  private sources: Sources = { origin: location.origin, debuginfod: [], hasDirectories: false, distribution: UNKNOWN };
  private parameters: Parameters = {};
  private timer = 0;
  private until = 0;

  // page: the view whose picture it is about.
  constructor(
    private readonly shell: Shell,
    private readonly page: string,
  ) {}

  async show(parameters: Parameters): Promise<void> {
    this.parameters = parameters;
    this.said.textContent = "";
    this.body.replaceChildren(el("p", {}, "Loading…"));
    if (!this.dialog.open) {
      this.dialog.showModal();
    }
    const { signal } = new AbortController();
    const { agents } = await ask<AgentsAnswer>("agents", {}, signal).catch(() => ({ agents: [] }));
    this.sources = { ...this.sources, distribution: distributionOf(agents) };
    await this.look();
  }

  private async look(): Promise<void> {
    clearTimeout(this.timer);
    try {
      const { signal } = new AbortController();
      const answer = await ask<ModulesAnswer>("modules", this.parameters, signal);
      this.sources = {
        ...this.sources,
        debuginfod: (answer.debuginfod ?? []).map(({ source }) => source),
        hasDirectories: (answer.symbol_dirs?.passes ?? 0) > 0 || answer.symbol_dirs?.reading === 1,
      };
      this.settle(answer.modules);
      const whole = linkTo(this.shell, { page: "modules" }, {}, "All modules: what to do, and upload");
      whole.addEventListener("click", () => this.dialog.close());
      const focused = document.activeElement?.getAttribute("aria-label") ?? "";
      this.body.replaceChildren(...this.content(answer.modules), this.said, el("p", {}, whole));
      const again = [...this.body.querySelectorAll("button")].find((one) => focused !== "" && one.getAttribute("aria-label") === focused);
      again?.focus();
    } catch (failure) {
      this.body.replaceChildren(el("p", {}, (failure as Error).message));
    }
    if (this.fetches.isBusy && performance.now() < this.until) {
      this.timer = window.setTimeout(() => void this.look(), AGAIN_MS);
    }
  }

  private settle(modules: readonly ModuleState[]): void {
    const { sentences, named } = this.fetches.settle(modules);
    if (sentences.length > 0) {
      this.said.textContent = sentences.join(" ");
      this.shell.notice(sentences.join(" "));
    }
    if (named && this.shell.state.page === this.page) {
      this.shell.reload();
    }
  }

  private async fetch(module: ModuleState): Promise<void> {
    this.until = performance.now() + AGAIN_LONGEST_MS;
    await this.fetches.start(module, (text) => (this.said.textContent = text));
    await this.look();
  }

  private content(modules: ModuleState[]): Node[] {
    const nameless = modules
      .filter((m) => m.unsymbolized_share > 0)
      .sort((a, b) => namelessness(b) - namelessness(a));
    if (nameless.length === 0) {
      return [el("p", {}, `None of the ${modules.length} modules known here leaves a sample without a name.`)];
    }
    const cures: CureActions = {
      sources: () => this.sources,
      copy: (command) => void copyAndSay(command, { notice: (text) => (this.said.textContent = text) }, this.dialog),
      fetch: (module) => void this.fetch(module),
    };
    const heads = ["time", "samples", "module", "names", "why", "what to do"];
    const table = el(
      "table",
      {},
      el("thead", {}, el("tr", {}, ...heads.map((text) => el("th", { scope: "col" }, text)))),
      el("tbody", {}, ...nameless.slice(0, ROWS).map((module) => row(module, cures))),
    );
    const share = "Shares of this picture: of its time in functions of the module that have no name, and of samples with any such frame.";
    return [
      el("p", {}, share),
      table,
      ...(nameless.length > ROWS ? [el("p", {}, `and ${nameless.length - ROWS} more.`)] : []),
    ];
  }
}

function row(m: ModuleState, cures: CureActions): HTMLElement {
  return el(
    "tr",
    { "data-id": m.build_id },
    el("td", { class: "number" }, formatPercent(m.nameless_share, 1)),
    el("td", { class: "number quiet" }, formatPercent(m.unsymbolized_share, 1)),
    el("td", { title: m.build_id }, m.name),
    el("td", {}, stateText(m)),
    el("td", {}, m.reason),
    el("td", {}, moduleCure(m, cures)),
  );
}
