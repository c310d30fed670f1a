// SPDX-License-Identifier: Apache-2.0
// The modules that leave samples without names, the worst first, and why.

import { ask, type ModuleState, type Parameters } from "../../server/api";
import { byId, el } from "../../widgets/dom";
import { formatPercent } from "../../text/format";

const ROWS = 100;

// link: to the list of all of them, with what to do.
export async function showModules(parameters: Parameters, link: () => HTMLElement): Promise<void> {
  const dialog = byId<HTMLDialogElement>("modules-dialog");
  const body = byId("modules-body");
  body.replaceChildren(el("p", {}, "Loading…"));
  if (!dialog.open) {
    dialog.showModal();
  }
  try {
    const { signal } = new AbortController();
    const answer = await ask<{ modules: ModuleState[] }>("modules", parameters, signal);
    const whole = link();
    whole.addEventListener("click", () => dialog.close());
    body.replaceChildren(...content(answer.modules), el("p", {}, whole));
  } catch (failure) {
    body.replaceChildren(el("p", {}, (failure as Error).message));
  }
}

function content(modules: ModuleState[]): Node[] {
  const nameless = modules
    .filter((m) => m.unsymbolized_share > 0)
    .sort((a, b) => b.unsymbolized_share - a.unsymbolized_share);
  if (nameless.length === 0) {
    return [
      el(
        "p",
        {},
        `None of the ${modules.length} modules known here leaves a sample without a name.`,
      ),
    ];
  }
  const heads = ["samples", "module", "state", "why", "build-id"];
  const table = el(
    "table",
    {},
    el("thead", {}, el("tr", {}, ...heads.map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, ...nameless.slice(0, ROWS).map(row)),
  );
  const out: Node[] = [
    el(
      "p",
      {},
      "Share of this picture's samples with a frame that the module leaves without a name.",
    ),
    table,
  ];
  if (nameless.length > ROWS) {
    out.push(el("p", {}, `and ${nameless.length - ROWS} more.`));
  }
  return out;
}

function row(m: ModuleState): HTMLElement {
  return el(
    "tr",
    {},
    el("td", { class: "number" }, formatPercent(m.unsymbolized_share, 1)),
    el("td", {}, m.name),
    el("td", {}, m.state),
    el("td", {}, m.reason ?? ""),
    el("td", { class: "build-id" }, m.build_id),
  );
}
