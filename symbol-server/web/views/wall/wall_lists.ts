// SPDX-License-Identifier: Apache-2.0
// Short tables beside the wall clock: who woke whom, what is blocked now, and requests.

import type { TimelineAnswer, TimelineSeries } from "../../server/api";
import { el, type Child } from "../../widgets/dom";
import { formatCount, formatPercent, formatSampled, formatShare, formatTime, formatValue } from "../../text/format";
import type { Shell } from "../../shell/view";
import { narrowTo, without, type State } from "../../shell/state";
import type { MenuItem } from "../../widgets/menu";
import { copyAndSay } from "../../widgets/copy";
import { withMenu } from "../../widgets/row_menu";
import { withLabelsMenu } from "../labels_menu";
import { linkTo } from "../links";
import { nameOf, type Request } from "./wall_rows";

const TYPES = ["on-cpu", "off-cpu"];

export class WallList {
  private readonly body = el("div", { class: "body" });
  readonly element: HTMLElement;

  constructor(title: string) {
    this.element = el("section", { class: "wall-list", "aria-label": title }, el("h2", {}, title), this.body);
  }

  show(...children: Child[]): void {
    this.body.replaceChildren(...children);
  }

  say(text: string): void {
    this.body.replaceChildren(el("p", { class: "quiet" }, text));
  }
}

// names: the columns from the left that are names; the others are numbers.
function table(heads: string[], names: number, rows: HTMLElement[]): HTMLElement {
  const head = heads.map((text, i) => el("th", { scope: "col", ...(i < names ? { class: "name" } : {}) }, text));
  return el("table", {}, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...rows));
}

function number(...children: Child[]): HTMLElement {
  return el("td", { class: "number" }, ...children);
}

function left(answer: TimelineAnswer): HTMLElement[] {
  const { other, unit } = answer;
  if (other === undefined) {
    return [];
  }
  return [el("p", { class: "quiet" }, `${formatValue(other.value, unit)} in ${formatCount(other.series)} smaller ones.`)];
}

export const WAKER_THREAD = "waker.thread.name";

function wakerLink(shell: Shell, waker: string, thread: string, process: string | undefined): HTMLElement {
  // Of the waker's own samples: what it did, and for whom.
  const labels = { ...(thread === "" ? {} : { thread }), ...(process === undefined ? {} : { "woken.process": process }) };
  const whom = process === undefined ? "others" : process;
  const others = without(shell.state, ["process", "service"]);
  return linkTo(
    shell,
    { page: "graph", type: "waker", zoom: "", service: "", ...narrowTo(others, { ...labels, process: waker }), process: waker },
    { class: "line", title: `What ${thread === "" ? waker : thread} did when it woke ${whom}` },
    el("bdi", {}, thread === "" || thread === waker ? waker : `${waker} · ${thread}`),
  );
}

// answer: of off-cpu, grouped by groupBy and then by wait, waker and, where it is known, its thread.
export function wakes(shell: Shell, answer: TimelineAnswer, groupBy: string): HTMLElement[] {
  const all = answer.accounting.value;
  const rows = answer.series.map(({ labels, value, error, samples }) => {
    const { waker, wait, [WAKER_THREAD]: thread, ...own } = labels;
    const cause = { ...(wait === undefined ? {} : { wait }), waker: waker ?? "" };
    const waits = linkTo(
      shell,
      { page: "graph", type: "off-cpu", zoom: "", ...narrowTo(shell.state, { ...own, ...cause }) },
      { class: "line", title: "Where it waited for that" },
      el("bdi", {}, nameOf(own, groupBy)),
    );
    const by =
      waker === undefined || waker === ""
        ? el("span", { class: "quiet" }, "not known")
        : wakerLink(shell, waker, thread ?? "", wait === undefined || thread === undefined ? undefined : own.process);
    const share = formatShare(value, all, error, answer.accounting.error);
    const [sum, ...off] = formatSampled(value, error, answer.unit).split(" ± ");
    const part = el("span", { class: "quiet" }, formatPercent(value, all)); // with its ± in the tip, where there is room for it
    const waited = el("td", { class: "number", title: [sum, ...off].join(" ± ") + ` · ${share}` }, sum, el("span", { class: "off" }, ...off.map((text) => ` ± ${text}`)), part);
    const why = el("td", { class: "name" }, wait ?? "");
    const row = el("tr", {}, el("td", { class: "name" }, waits), why, el("td", { class: "name by" }, by), waited, number(formatCount(samples)));
    return withLabelsMenu(row, shell, nameOf(own, groupBy), own, TYPES);
  });
  return [table(["waited", "what for", "woken by", "for", "samples"], 3, rows), ...left(answer)];
}

// answer: of still-blocked, in the last minute.
export function blocked(shell: Shell, answer: TimelineAnswer, groupBy: string): HTMLElement[] {
  const { from, until } = answer;
  const rows = answer.series.map(({ labels, value }: TimelineSeries) => {
    const link = linkTo(
      shell,
      {
        page: "graph",
        type: "still-blocked",
        zoom: "",
        from: String(from),
        until: String(until),
        ...narrowTo(shell.state, labels),
      },
      { class: "line", title: "Where it is blocked" },
      el("bdi", {}, nameOf(labels, groupBy)),
    );
    const threads = value / 1e6 / Math.max(1, until - from);
    const row = el("tr", {}, el("td", { class: "name" }, link), number(threads.toFixed(threads < 10 ? 1 : 0)));
    return withLabelsMenu(row, shell, nameOf(labels, groupBy), labels, [...TYPES, "still-blocked"]);
  });
  const when = `${formatTime(from)} – ${formatTime(until)}: threads that had waited for more than ten seconds.`;
  return [el("p", { class: "quiet" }, when), table(["blocked", "threads, on average"], 1, rows), ...left(answer)];
}

function requestMenu(shell: Shell, chosen: Partial<State> & { trace_id: string }, types: string[]): MenuItem[] {
  const item = (text: string, run: () => void): MenuItem => ({ text, hint: "", run });
  return [
    item("Its wall clock", () => shell.change({ page: "wall", ...chosen })),
    ...types.map((type) =>
      item(type === "on-cpu" ? "Its time on the CPU as a flame graph" : "Its waits as a flame graph", () => shell.change({ page: "graph", type, ...chosen })),
    ),
    item("Copy the trace’s id", () => void copyAndSay(chosen.trace_id, shell)),
  ];
}

// types: of the requests' values, in their order.
export function requests(shell: Shell, found: Request[], types: string[], more: number): HTMLElement[] {
  const rows = found.map(({ trace, values, errors }) => {
    const chosen = { trace_id: trace.trace_id, from: String(trace.from), until: String(trace.until), zoom: "" };
    const id = linkTo(
      shell,
      { page: "graph", type: types[values.findIndex((value) => value !== null)], ...chosen },
      { class: "line trace", title: `Flame graph of ${trace.trace_id}` },
      trace.trace_id,
    );
    const wall = linkTo(shell, { page: "wall", ...chosen }, { title: "This request's wall clock" }, "wall");
    const cells = values.map((value, i) => number(value === null ? "–" : formatSampled(value, errors[i], "nanoseconds")));
    const where = el("td", { class: "where", title: trace.services.join(", ") }, el("bdi", {}, trace.services.join(", ")));
    const row = el("tr", {}, el("td", {}, id), where, ...cells, number(String(trace.spans)), el("td", {}, wall));
    return withMenu(row, (x, y) => shell.menu.open(x, y, trace.trace_id, requestMenu(shell, chosen, types)));
  });
  const heads = ["trace", "services", ...types.map((type) => (type === "on-cpu" ? "on CPU" : "waited")), "spans", "see"];
  const rest = more > 0 ? [el("p", { class: "quiet" }, `${formatCount(more)} more are not shown.`)] : [];
  return [table(heads, 2, rows), ...rest];
}
