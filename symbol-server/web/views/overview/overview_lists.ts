// SPDX-License-Identifier: Apache-2.0
// The overview's two short lists: the hottest functions, and what changed lately.

import type { Hotspots, TopAnswer } from "../../server/api";
import { el } from "../../widgets/dom";
import { collapseArguments, formatPercent, formatTime } from "../../text/format";
import type { Shell } from "../../shell/view";
import { exactly } from "../../shell/state";
import { linkTo } from "../links";

export class OverviewList {
  private readonly body = el("div", { class: "body" });
  readonly element: HTMLElement;

  constructor(title: string) {
    this.element = el("section", { class: "overview-list", "aria-label": title }, el("h2", {}, title), this.body);
  }

  show(...children: Node[]): void {
    this.body.replaceChildren(...children);
  }

  say(text: string): void {
    this.body.replaceChildren(el("p", { class: "quiet" }, text));
  }
}

export function topFunctions(shell: Shell, answer: TopAnswer): HTMLElement {
  const all = answer.accounting.value;
  const rows = answer.functions.map((f) => {
    const bar = el("div", { class: "bar" });
    bar.style.width = `${(100 * Math.min(1, f.self / Math.max(1, all))).toFixed(2)}%`;
    const title = [f.name, f.module].filter((text) => text !== "").join("\n");
    const link = linkTo(
      shell,
      { page: "graph", search: exactly(f.name) },
      { class: "line", title },
      el("bdi", {}, collapseArguments(f.name)),
      el("span", { class: "quiet" }, f.module),
    );
    return el(
      "tr",
      {},
      el("td", { class: "name" }, bar, link),
      el("td", { class: "number" }, formatPercent(f.self, all)),
    );
  });
  return el("table", {}, el("tbody", {}, ...rows));
}

// The group, when, and the function that moved most.
export function changes(shell: Shell, answer: Hotspots): HTMLElement {
  const rows = answer.changes.map((change) => {
    const moved = [...change.rose, ...change.fell].sort((a, b) => Math.abs(b.after - b.before) - Math.abs(a.after - a.before))[0];
    const who = Object.values(change.labels).join(" · ");
    const until = change.lasting ? "since then" : `until ${formatTime(change.until)}`;
    const what =
      moved === undefined
        ? ""
        : `${collapseArguments(moved.name)} ` +
          `${formatPercent(moved.before, 1)} → ${formatPercent(moved.after, 1)}`;
    const link = linkTo(
      shell,
      {
        page: "graph",
        from: String(change.from),
        until: String(change.until),
        ...change.labels, // host, process or service: the rows of the overview
      },
      { class: "line", title: what },
      el("bdi", {}, who),
      el("span", { class: "quiet" }, `${formatTime(change.from)} ${until}`),
    );
    return el("tr", {}, el("td", { class: "name" }, link, el("div", { class: "quiet what" }, what)));
  });
  return el("table", {}, el("tbody", {}, ...rows));
}
