// SPDX-License-Identifier: Apache-2.0
// The columns of the agents' list. What is wrong has a sign before it, not only a colour.

import { el, type Child } from "../../widgets/dom";
import { formatAge, formatCount, formatPercent, formatSpan } from "../../text/format";
import { LOST_WORDS } from "../../shell/status_line";
import { byFalling, byText } from "../../widgets/list_order";
import type { Column } from "../../widgets/list_table";
import { hasLag, hasSkew, isIncomplete, losesMuch, WALK_WORDS, type AgentRow, type Health } from "./agents_rows";

const RANK: Record<Health, number> = { silent: 0, late: 1, reporting: 2 };

export function flag(isBad: boolean, text: string): Child[] {
  return isBad ? [el("span", { class: "sign bad", "aria-hidden": "true" }, "!"), text] : [text];
}

export function formatSkew(ms: number | undefined): string {
  if (ms === undefined) {
    return "–";
  }
  const size = Math.abs(ms) < 1 ? "0 s" : formatSpan(Math.abs(ms));
  return ms > 0 ? `+${size}` : ms < 0 ? `−${size}` : size;
}

export function lostWords(lost_by: Record<string, number>): string {
  return Object.entries(lost_by)
    .filter(([, count]) => count > 0)
    .map(([reason, count]) => `${formatCount(count)}: ${LOST_WORDS[reason] ?? reason}`)
    .join("\n");
}

function health({ health, warnings }: AgentRow): Child[] {
  const isBad = health !== "reporting";
  const isWorrying = !isBad && warnings.length > 0;
  return [
    el("span", { class: `sign ${isBad || isWorrying ? "bad" : ""}`, "aria-hidden": "true" }, isBad || isWorrying ? "!" : "✓"),
    el("span", { title: warnings.join("\n") }, isWorrying ? "look" : health),
  ];
}

function incompleteCell(row: AgentRow): Child[] {
  if (row.stacksCount === 0) {
    return ["–"];
  }
  const [most] = row.worst;
  return [
    ...flag(isIncomplete(row), formatPercent(row.incomplete, row.stacksCount)),
    ...(most === undefined ? [] : [el("span", { class: "quiet reason" }, ` ${WALK_WORDS[most[0]] ?? most[0]}`)]),
  ];
}

export const AGENT_COLUMNS: readonly Column<AgentRow>[] = [
  {
    key: "state",
    head: "state",
    title: "late: no report for a minute; silent: for an hour; look: something else is wrong",
    kind: "text",
    order: (a, b) =>
      RANK[a.health] - RANK[b.health] || b.warnings.length - a.warnings.length || (a.host < b.host ? -1 : a.host > b.host ? 1 : 0),
    cell: health,
  },
  {
    key: "host",
    head: "host",
    title: "The label host of all it sends",
    kind: "name",
    order: byText(({ host }) => host),
    cell: ({ host }) => [
      el("button", { type: "button", class: "link", title: host }, el("bdi", {}, host === "" ? "(no name)" : host)),
    ],
  },
  {
    key: "seen",
    head: "last report",
    title: "By the server's clock",
    kind: "number",
    order: byFalling(({ age }) => age),
    cell: (row) => flag(row.health !== "reporting", formatAge(row.age)),
  },
  {
    key: "lag",
    head: "lag",
    title: "From the end of its last report's interval until the server had it",
    kind: "number",
    order: byFalling(({ lag_ms }) => lag_ms),
    cell: (row) => flag(hasLag(row), formatSpan(Math.max(0, row.lag_ms))),
  },
  {
    key: "skew",
    head: "clock",
    title: "Its clock minus the server's, with the time that the report travelled",
    kind: "number",
    order: byFalling(({ skew_ms }) => Math.abs(skew_ms ?? 0)),
    cell: (row) => flag(hasSkew(row), formatSkew(row.skew_ms)),
  },
  {
    key: "rate",
    head: "rate",
    title: "Samples a second and CPU",
    kind: "number",
    order: byFalling(({ rate_hz }) => rate_hz),
    cell: ({ rate_hz }) => [rate_hz > 0 ? `${formatCount(rate_hz)} Hz` : "–"],
  },
  {
    key: "taken",
    head: "samples",
    title: "Taken since its start",
    kind: "number",
    order: byFalling(({ taken }) => taken),
    cell: ({ taken }) => [formatCount(taken)],
  },
  {
    key: "lost",
    head: "lost",
    title: "Of these, never stored",
    kind: "number",
    order: byFalling(({ lostShare }) => lostShare),
    cell: (row) => [
      el("span", { title: lostWords(row.lost_by) }, ...flag(losesMuch(row), row.lost === 0 ? "0" : formatPercent(row.lost, row.taken))),
    ],
  },
  {
    key: "incomplete",
    head: "incomplete stacks",
    title: "Stacks that do not reach their start, and the most frequent reason",
    kind: "text",
    order: byFalling(({ incomplete, stacksCount }) => (stacksCount > 0 ? incomplete / stacksCount : -1)),
    cell: incompleteCell,
  },
  {
    key: "version",
    head: "version",
    title: "The agent's",
    kind: "text",
    order: byText(({ version }) => version),
    cell: ({ version }) => [el("bdi", {}, version)],
  },
  {
    key: "kernel",
    head: "kernel",
    title: "The host's",
    kind: "text",
    order: byText(({ kernel }) => kernel),
    cell: ({ kernel }) => [el("bdi", { title: kernel }, kernel)],
  },
];
