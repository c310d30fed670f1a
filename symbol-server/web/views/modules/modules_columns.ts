// SPDX-License-Identifier: Apache-2.0
// The columns of the modules' list.

import type { ModuleState } from "../../server/api";
import { el } from "../../widgets/dom";
import { formatCount, formatPercent } from "../../text/format";
import { byFalling, byText } from "../../widgets/list_order";
import type { Column } from "../../widgets/list_table";
import { moduleCure, type CureActions } from "./module_cure";
import { isStuck, isWhole, isWorking, nextStep, QUALITY_WORDS, stateText } from "./modules_advice";

const SHORT_ID = 12; // characters of a build-id that tell it from others

function shareBar(share: number, most: number): HTMLElement {
  const bar = el("span", { class: "share-bar", "aria-hidden": "true" });
  bar.style.width = `${most > 0 ? ((100 * share) / most).toFixed(1) : 0}%`;
  return bar;
}

// By time; of equal ones by samples.
export function namelessness({ nameless_share, unsymbolized_share }: ModuleState): number {
  return nameless_share + 1e-6 * unsymbolized_share;
}

// A tick only where every frame has its name.
function sign(module: ModuleState): HTMLElement {
  const kind = isWorking(module) ? "working" : isWhole(module) ? "ready" : module.unsymbolized > 0 ? "missing" : "none";
  return el("span", { class: `sign ${kind}`, "aria-hidden": "true" }, { working: "…", ready: "✓", missing: "!", none: "–" }[kind]);
}

// most: the largest share of the list, which the bars are measured by.
export function moduleColumns(most: () => number, cures: CureActions): Column<ModuleState>[] {
  return [
    {
      key: "share",
      head: "nameless",
      title: "Share of this picture's time in functions of the module that have no name; below it, of samples with any such frame",
      kind: "number",
      order: byFalling(namelessness),
      cell: ({ nameless_share: share, unsymbolized_share: any }) => [
        shareBar(share, most()),
        el("span", { class: share === 0 ? "quiet" : "" }, formatPercent(share, 1)),
        ...(any > 0 ? [` in ${formatPercent(any, 1)}`] : []),
      ],
    },
    {
      key: "name",
      head: "module",
      title: "File name of the program, library or kernel",
      kind: "name",
      order: byText(({ name, build_id }) => `${name}\n${build_id}`),
      cell: ({ name }) => [
        el("button", { type: "button", class: "link", title: name }, el("bdi", {}, name === "" ? "(no name)" : name)),
      ],
    },
    {
      key: "state",
      head: "names",
      title: "Whether the server has names for it",
      kind: "text",
      order: byText((module) => `${isStuck(module) ? 0 : isWorking(module) ? 1 : 2}${module.state}`),
      cell: (module) => [sign(module), stateText(module)],
    },
    {
      key: "why",
      head: "why",
      title: "What the server says of it",
      kind: "text",
      order: byText(({ reason }) => reason),
      cell: ({ reason }) => [el("span", { class: "quiet", title: reason }, reason)],
    },
    {
      key: "next",
      head: "what to do",
      title: "The server asked once more, and the likeliest command; the details have the others",
      kind: "text",
      order: byText(nextStep),
      cell: (module) => [moduleCure(module, cures)],
    },
    {
      key: "quality",
      head: "quality",
      title: "What the names were made from",
      kind: "text",
      order: byText(({ quality }) => quality),
      cell: ({ quality }) => [el("span", { title: QUALITY_WORDS[quality] ?? "" }, quality === "none" ? "–" : quality)],
    },
    {
      key: "source",
      head: "source",
      title: "Where they are from",
      kind: "text",
      order: byText(({ source }) => source),
      cell: ({ source }) => [el("span", { title: source }, source === "" ? "–" : source)],
    },
    {
      key: "samples",
      head: "samples",
      title: "Samples of this picture with a frame in it",
      kind: "number",
      order: byFalling(({ samples }) => samples),
      cell: ({ samples }) => [samples === 0 ? "–" : formatCount(samples)],
    },
    {
      key: "id",
      head: "build-id",
      title: "Names one build of it",
      kind: "text",
      order: byText(({ build_id }) => build_id),
      cell: ({ build_id }) => [el("span", { class: "build-id", title: build_id }, build_id.slice(0, SHORT_ID))],
    },
  ];
}
