// SPDX-License-Identifier: Apache-2.0
// The overview's two short lists: the hottest functions, and what changed lately.

import type { Hotspots, TopAnswer, TopFunction } from "../../server/api";
import { copyAndSay } from "../../widgets/copy";
import { el } from "../../widgets/dom";
import { collapseArguments, formatCount, formatOwnShare, formatPercent, formatShare, formatTime } from "../../text/format";
import type { Shell } from "../../shell/view";
import { exactly, narrowTo, type State } from "../../shell/state";
import { functionMenu } from "../flame/frame_menu";
import { ownerOf } from "../flame/function_rows";
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
    const title = [f.signature ?? f.name, f.module].filter((text) => text !== "").join("\n");
    const link = linkTo(
      shell,
      { page: "graph", search: exactly(f.name) },
      { class: "line", title },
      el("bdi", {}, collapseArguments(f.name)),
      el("span", { class: "quiet" }, ownerOf(f)),
    );
    return el(
      "tr",
      {},
      el("td", { class: "name" }, bar, link, more(shell, f)),
      el("td", { class: "number" }, formatShare(f.self, all, f.self_error, answer.accounting.error)),
    );
  });
  const { nameless_value, nameless_modules } = answer.accounting;
  if (nameless_value > 0) {
    const where = nameless_modules === 1 ? "1 module" : `${formatCount(nameless_modules)} modules`;
    const text = `in functions without names, of ${where}`;
    const link = linkTo(shell, { page: "modules", modules: "" }, { class: "nameless", title: text }, text);
    rows.push(el("tr", { class: "quiet" }, el("td", { class: "name" }, link), el("td", { class: "number" }, formatPercent(nameless_value, all))));
  }
  return el("table", {}, el("tbody", {}, ...rows));
}

// The menu of its frame.
function more(shell: Shell, f: TopFunction): HTMLElement {
  const button = el("button", { type: "button", class: "more", "aria-label": `menu of ${f.name}`, "aria-haspopup": "menu", title: "Menu" }, "⋯");
  const place = f.file === "" || f.line === 0 ? f.file : `${f.file}:${f.line}`;
  button.addEventListener("click", () => {
    const { left, bottom } = button.getBoundingClientRect();
    const items = functionMenu({ ...f, place, stack: "", recurs: false }, shell.state, {
      change: (changed) => shell.change({ page: "graph", ...changed }),
      copy: (text) => void copyAndSay(text, shell),
    });
    shell.menu.open(left, bottom, f.name, items);
  });
  return button;
}

type Change = Hotspots["changes"][number];

// With what it was before, as the server would compare it; null: with nothing.
function comparison(shell: Shell, { from, until, labels, links }: Change): Partial<State> | null {
  const asked = new URLSearchParams(links.diff?.split("?")[1] ?? "");
  const [begin, end] = [asked.get("base.from"), asked.get("base.until")];
  if (begin === null || end === null) {
    return null;
  }
  const sort = asked.get("sort") ?? "self";
  const side = { from: String(from), until: String(until), base: `${begin}..${end}`, base_match: "", norm: "share", sort };
  return { page: "diff", ...narrowTo(shell.state, labels), ...side, zoom: "" };
}

const STEPS_TO_TELL = 6;

// what: of what there are several, in the singular.
export function noChange({ from, until, step_ms }: Hotspots, what: string): string {
  return (until - from) / step_ms < STEPS_TO_TELL
    ? "The range is too short to tell what stands out from minute to minute."
    : `No ${what} stands out from how it varies by itself.`;
}

// The group, when, and the function that moved most, which leads to the comparison.
export function changes(shell: Shell, answer: Hotspots): HTMLElement {
  const rows = answer.changes.map((change) => {
    const moved = [...change.rose, ...change.fell].sort((a, b) => Math.abs(b.after - b.before) - Math.abs(a.after - a.before))[0];
    const who = Object.values(change.labels).join(" · ");
    const until = change.lasting ? "since then" : `until ${formatTime(change.until)}`;
    const what =
      moved === undefined
        ? "compare"
        : `${collapseArguments(moved.name)} ` +
          `${formatOwnShare(moved.before, moved.before_error)} → ${formatOwnShare(moved.after, moved.after_error)}`;
    const link = linkTo(
      shell,
      { page: "graph", from: String(change.from), until: String(change.until), ...narrowTo(shell.state, change.labels) },
      { class: "line", title: what },
      el("bdi", {}, who),
      el("span", { class: "quiet" }, `${formatTime(change.from)} ${until}`),
    );
    const compared = comparison(shell, change);
    const both =
      compared === null
        ? el("div", { class: "quiet what" }, what)
        : linkTo(shell, compared, { class: "quiet what", title: `Recorded, and it stands out from how it varies. Compare with before:\n${what}` }, what);
    return el("tr", {}, el("td", { class: "name" }, link, both));
  });
  return el("table", {}, el("tbody", {}, ...rows));
}
