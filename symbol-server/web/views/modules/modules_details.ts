// SPDX-License-Identifier: Apache-2.0
// One module: what is known of it, what each source said, and the ways to its names.

import type { ModuleState } from "../../server/api";
import { el, type Child } from "../../widgets/dom";
import { formatAge, formatCount, formatPercent, formatSize, formatSpan, formatTime } from "../../text/format";
import type { Shell } from "../../shell/view";
import { exactly } from "../../shell/state";
import { commandLine } from "../../widgets/command";
import { linkTo } from "../links";
import { adviceOn, ANSWER_WORDS, isStuck, MISSING_WORDS, QUALITY_WORDS, STATE_WORDS, type Sources } from "./modules_advice";

function fact(name: string, ...values: Child[]): HTMLElement[] {
  return [el("dt", {}, name), el("dd", {}, ...values)];
}

export interface ModuleActions {
  sources: Sources;
  upload(): void;
  forget(): void;
  fetch(): void;
}

export function moduleDetails(shell: Shell, module: ModuleState, actions: ModuleActions): Node[] {
  const fetch = el("button", { type: "button" }, "Fetch its names now");
  fetch.addEventListener("click", () => actions.fetch());
  const send = el("button", { type: "button" }, "Upload for this module…");
  send.addEventListener("click", () => actions.upload());
  const remove = el("button", { type: "button" }, "Delete what was uploaded…");
  remove.addEventListener("click", () => actions.forget());
  const advice = adviceOn(module, actions.sources).flatMap(({ text, command }) => [
    el("p", {}, text),
    ...(command === "" ? [] : [commandLine(command)]),
  ]);
  return [
    el("h2", {}, el("bdi", {}, module.name === "" ? "(no name)" : module.name)),
    el("dl", {}, ...facts(module)),
    el(
      "p",
      { class: "leads" },
      ...(module.unsymbolized > 0 ? [namelessFrames(shell, module)] : []),
      ...(isStuck(module) ? [fetch] : []),
      send,
      ...(module.uploaded_files > 0 ? [remove] : []),
    ),
    ...(advice.length === 0 ? [] : [el("h3", {}, "What to do"), ...advice]),
    ...sources(module),
  ];
}

// The server calls such a frame by its module and address.
function namelessFrames(shell: Shell, { name }: ModuleState): HTMLElement {
  const search = `${exactly(name).slice(0, -1)}\\+0x`;
  return linkTo(shell, { page: "graph", zoom: "", search }, { class: "to-graph" }, "Its nameless frames in the flame graph");
}

function facts(module: ModuleState): HTMLElement[] {
  const { samples, unsymbolized } = module;
  const out = [
    ...fact("build-id", el("span", { class: "build-id" }, module.build_id)),
    ...fact("state", `${STATE_WORDS[module.state] ?? module.state}${module.reason === "" ? "" : `: ${module.reason}`}`),
    ...fact(
      "samples",
      samples === 0
        ? "none in this picture"
        : `${formatCount(samples)}, ${formatCount(unsymbolized)} of them without a name in it ` +
            `(${formatPercent(module.unsymbolized_share, 1)} of all)`,
    ),
    ...(unsymbolized > 0 ? fact("nameless", `${formatPercent(module.nameless_share, 1)} of all time is in its functions without names`) : []),
  ];
  if (module.quality !== "none" && module.quality !== "") {
    const from = module.source === "" ? "" : ` from ${module.source}`;
    out.push(...fact("names", `${QUALITY_WORDS[module.quality] ?? module.quality}${from}`));
    out.push(...fact("size", `${formatCount(module.functions)} functions, files of ${formatSize(module.file_bytes)}`));
  }
  if (module.uploaded_files > 0) {
    const files = module.uploaded_files === 1 ? "1 file" : `${module.uploaded_files} files`;
    out.push(...fact("uploaded", `${files}, ${formatSize(module.uploaded_bytes)} on the server's disk`));
  }
  for (const missing of module.missing) {
    out.push(...fact("lacks", MISSING_WORDS[missing] ?? missing));
  }
  if (module.first_seen > 0) {
    out.push(...fact("first seen", formatTime(module.first_seen)));
  }
  if (module.retry_at > Date.now()) {
    out.push(...fact("asked again", `in ${formatSpan(module.retry_at - Date.now())}`));
  }
  return out;
}

function sources({ sources }: ModuleState): Node[] {
  if (sources.length === 0) {
    return [];
  }
  const rows = sources.map(({ source, answer, detail, bytes, at }) => {
    const size = bytes > 0 ? ` (${formatSize(bytes)})` : "";
    const said = `${ANSWER_WORDS[answer] ?? answer}${size}${detail === "" ? "" : `: ${detail}`}`;
    return el(
      "tr",
      {},
      el("td", {}, el("bdi", {}, source)),
      el("td", {}, said),
      el("td", { class: "quiet" }, at > 0 ? formatAge(Date.now() - at) : ""),
    );
  });
  const head = el("tr", {}, ...["source", "said", "when"].map((text) => el("th", { scope: "col" }, text)));
  return [el("h3", {}, "Who was asked"), el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows))];
}
