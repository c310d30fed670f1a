// SPDX-License-Identifier: Apache-2.0
// One agent: its counts by reason, and where its walks stop.

import type { IncompleteReason } from "../../server/api";
import { el, type Child } from "../../widgets/dom";
import { formatAge, formatCount, formatPercent, formatSpan, formatTime } from "../../text/format";
import type { Shell } from "../../shell/view";
import { LOST_WORDS } from "../../shell/status_line";
import { formatSkew } from "./agents_columns";
import { WALK_WORDS, type AgentRow } from "./agents_rows";
import { linkTo } from "../links";

function fact(name: string, ...values: Child[]): HTMLElement[] {
  return [el("dt", {}, name), el("dd", {}, ...values)];
}

// "name, count, share" rows under these heads.
function counts(what: string, rows: [string, number][], all: number): HTMLElement {
  const head = el(
    "tr",
    {},
    el("th", { scope: "col" }, what),
    el("th", { scope: "col", class: "number" }, "count"),
    el("th", { scope: "col", class: "number" }, "share"),
  );
  const body = rows.map(([name, count]) =>
    el(
      "tr",
      {},
      el("td", {}, name),
      el("td", { class: "number" }, formatCount(count)),
      el("td", { class: "number" }, formatPercent(count, all)),
    ),
  );
  return el("table", {}, el("thead", {}, head), el("tbody", {}, ...body));
}

export function agentDetails(shell: Shell, row: AgentRow, where: Node): Node[] {
  const lost = Object.entries(row.lost_by).filter(([, count]) => count > 0);
  const guessed = row.stacks.guessed ?? 0;
  const results: [string, number][] = [
    ["complete", row.stacks.complete ?? 0],
    ...(guessed > 0 ? ([["of these, with a caller found without unwind information", guessed]] as [string, number][]) : []),
    ...row.worst.map(([name, count]): [string, number] => [WALK_WORDS[name] ?? name, count]),
  ];
  return [
    el("h2", {}, el("bdi", {}, row.host === "" ? "(no name)" : row.host)),
    ...row.warnings.map((text) => el("p", {}, el("span", { class: "sign bad", "aria-hidden": "true" }, "!"), text)),
    el(
      "p",
      { class: "leads" },
      linkTo(shell, { page: "graph", host: row.host }, {}, "Flame graph"),
      linkTo(shell, { page: "overview", host: row.host, by: "process" }, {}, "Its processes"),
      linkTo(shell, { page: "modules", host: row.host }, {}, "Its modules"),
    ),
    el(
      "dl",
      {},
      ...fact("last report", `${formatAge(row.age)} (${formatTime(row.last_seen)})`),
      ...fact("lag", formatSpan(Math.max(0, row.lag_ms))),
      ...fact("clock", row.skew_ms === undefined ? "not told yet" : `${formatSkew(row.skew_ms)} against the server's`),
      ...fact("rate", `${formatCount(row.rate_hz)} Hz on each CPU`),
      ...fact("agent", el("bdi", {}, row.version)),
      ...fact("kernel", el("bdi", {}, row.kernel)),
      ...fact("samples", `${formatCount(row.taken)} taken since its start, ${formatCount(row.lost)} lost`),
    ),
    ...(lost.length === 0
      ? []
      : [
          el("h3", {}, "Lost samples"),
          counts("why", lost.map(([reason, count]): [string, number] => [LOST_WORDS[reason] ?? reason, count]), row.taken),
        ]),
    el("h3", {}, "How its stack walks ended"),
    row.stacksCount === 0 ? el("p", { class: "quiet" }, "It does not tell.") : counts("result", results, row.stacksCount),
    el("h3", {}, "Where they stopped, in the time chosen above"),
    where,
  ];
}

// Reasons with the modules of the outermost frame that was found.
export function stopsOf(shell: Shell, reasons: IncompleteReason[], samples: number): Node {
  if (reasons.length === 0) {
    const text = samples === 0 ? "No samples of this host then." : "Every stack of that time reaches its start.";
    return el("p", { class: "quiet" }, text);
  }
  const rows = reasons.map(({ reason, samples: count, modules }) => {
    const places = modules.map((module) =>
      el(
        "div",
        {},
        linkTo(
          shell,
          { page: "modules", modules: "used", module: module.build_id },
          { title: module.build_id },
          el("bdi", {}, module.name === "" ? module.build_id : module.name),
        ),
        el("span", { class: "quiet" }, ` ${formatPercent(module.samples, count)} · ${module.build_id.slice(0, 12)}`),
      ),
    );
    return el(
      "tr",
      {},
      el("td", {}, reason, ...places),
      el("td", { class: "number" }, formatPercent(count, samples)),
    );
  });
  const head = el("tr", {}, el("th", { scope: "col" }, "why, and in which modules"), el("th", { scope: "col", class: "number" }, "of samples"));
  return el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows));
}
