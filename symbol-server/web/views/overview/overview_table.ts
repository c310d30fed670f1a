// SPDX-License-Identifier: Apache-2.0
// Services, hosts, processes or what has another label, with their value of every profile type; each leads to its graph.

import type { TimelineAnswer } from "../../server/api";
import { el, filterInput } from "../../widgets/dom";
import { GroupMenu } from "../../widgets/group_menu";
import { formatCount, formatPercent, formatSampled, formatShare, formatValue } from "../../text/format";
import type { Shell } from "../../shell/view";
import { narrowTo, pick, picksOf, searchChange, traceIdOf, type State } from "../../shell/state";
import { withLabelsMenu } from "../labels_menu";
import { linkTo } from "../links";
import { isOwn, rowsOf, type Row, type Rows } from "./overview_sums";
import { rateOf } from "../rates";
import { reportedMs } from "../reported";

const ROWS_AT_ONCE = 100;
export const GROUPINGS: readonly string[] = ["service", "host", "process"];


export class OverviewTable {
  readonly element = el("section", { class: "overview-table", "aria-label": "What runs where" });
  private readonly tabs = el("span", { class: "joined", role: "group", "aria-label": "Rows are" });
  private readonly filter = filterInput("Filter rows", "Filter");
  private readonly note = el("span", { class: "quiet", role: "status" });
  private readonly table = el("table");
  private readonly more = el("button", { type: "button", hidden: "" }, "Show all");
  private readonly others: GroupMenu;
  usual = ""; // what the rows are where nobody chose; "": it is not decided yet
  private answers: TimelineAnswer[] = [];
  private isWhole = false;

  constructor(private readonly shell: Shell) {
    for (const label of GROUPINGS) {
      const tab = el("button", { type: "button", "data-by": label }, `${label === "process" ? "processe" : label}s`);
      tab.addEventListener("click", () => shell.change({ by: label }));
      this.tabs.append(tab);
    }
    const others = el("select", { "aria-label": "Rows are of another label" });
    this.others = new GroupMenu(others, [""], (by) => shell.change({ by: by || GROUPINGS[0] }), GROUPINGS, "other label");
    this.filter.addEventListener("input", () => {
      if (traceIdOf(this.filter.value) !== null) {
        shell.change(searchChange(this.filter.value));
        this.filter.value = "";
        return;
      }
      shell.change({ row_find: this.filter.value }, false);
    });
    this.more.addEventListener("click", () => {
      this.isWhole = true;
      this.fill();
    });
    const scroller = el("div", { class: "scroller" }, this.table, this.more);
    this.element.append(el("div", { class: "tools" }, this.tabs, this.others.box, this.filter, this.note), scroller);
  }

  // What the rows are.
  groupingOf({ by }: State): string {
    return /^[A-Za-z_][\w.]*$/.test(by) ? by : this.usual || GROUPINGS[0];
  }

  // One answer for each type, the columns in their order.
  show(answers: TimelineAnswer[]): void {
    this.answers = answers;
    this.fill();
  }

  adjust(state: State, before: State | null): void {
    if (document.activeElement !== this.filter) {
      this.filter.value = state.row_find;
    }
    if (before !== null && before.row_find !== state.row_find && this.answers.length > 0) {
      this.fill();
    }
    const by = this.groupingOf(state);
    this.others.show(GROUPINGS.includes(by) ? "" : by);
    for (const tab of this.tabs.querySelectorAll<HTMLElement>("[data-by]")) {
      tab.setAttribute("aria-pressed", String(tab.dataset.by === by));
    }
  }

  focusFilter(): void {
    this.filter.focus();
  }

  private fill(): void {
    const { state } = this.shell;
    const label = this.groupingOf(state);
    const sums = rowsOf(this.answers, label, state.type);
    const text = this.filter.value.trim().toLowerCase();
    const found = sums.rows.filter(({ name }) => name.toLowerCase().includes(text));
    const own = found.filter(({ name }) => isOwn(name));
    const wanted = found.filter(({ name }) => !isOwn(name));
    const shown = this.isWhole ? wanted : wanted.slice(0, ROWS_AT_ONCE);
    this.table.replaceChildren(
      el("thead", {}, el("tr", {}, el("th", { scope: "col", class: "name" }, label), ...this.heads())),
      el("tbody", {}, ...shown.map((row) => this.row(row, label, sums)), ...this.lastRow(sums), ...this.ownRows(own, label, sums)),
    );
    this.more.hidden = shown.length === wanted.length;
    this.more.textContent = `Show all ${formatCount(wanted.length)}`;
    this.note.textContent =
      found.length === 0 && text !== "" ? "Nothing matches." : `${formatCount(found.length)}`;
  }

  private heads(): HTMLElement[] {
    const { type } = this.shell.state;
    return this.answers.map((answer) => {
      const head = el("th", { scope: "col" });
      if (answer.type === type) {
        head.setAttribute("aria-sort", "descending");
      }
      head.append(linkTo(this.shell, { type: answer.type }, { title: "Order by this type" }, answer.type));
      return head;
    });
  }

  private row(row: Row, label: string, sums: Rows): HTMLElement {
    const { shell } = this;
    const name = el("td", { class: "name" });
    const share = (row.values.get(shell.state.type) ?? 0) / (sums.sums.get(shell.state.type) || 1);
    const bar = el("div", { class: "bar" });
    bar.style.width = `${(100 * Math.min(1, share)).toFixed(2)}%`;
    const text = el("bdi", {}, row.name === "" ? `(no ${label})` : row.name);
    const filter = narrowTo(shell.state, { [label]: row.name });
    name.append(
      bar,
      linkTo(shell, { page: "graph", ...filter }, { class: "line", title: `Flame graph of ${row.name}` }, text),
    );
    const made = el("tr", {}, name, ...this.answers.map((answer) => this.cell(answer, row, filter, sums)));
    return withLabelsMenu(made, shell, row.name === "" ? `(no ${label})` : row.name, { [label]: row.name }, this.answers.map(({ type }) => type));
  }

  private cell(answer: TimelineAnswer, row: Row, filter: Partial<State>, sums: Rows): HTMLElement {
    const value = row.values.get(answer.type);
    if (value === undefined) {
      return el("td", { class: "number quiet" }, "–");
    }
    const rate = rateOf(answer.type, answer.unit, this.shell.state.value);
    const square = row.errors.get(answer.type);
    const error = square === undefined ? undefined : Math.sqrt(square);
    const share = formatShare(value, sums.sums.get(answer.type) ?? 0, error, answer.accounting.error);
    const isChosen = answer.type === this.shell.state.type;
    const inWords =
      answer.unit === "nanoseconds"
        ? rate.format(rate.of(value, row.times.get(answer.type) ?? reportedMs(answer)))
        : formatValue(value, answer.unit);
    const link = linkTo(
      this.shell,
      { page: "graph", type: answer.type, ...filter },
      { title: `${answer.type}: ${formatSampled(value, error, answer.unit)}, ${share}` },
      inWords,
      ...(isChosen ? [el("span", { class: "quiet" }, share)] : []),
    );
    return el("td", { class: "number" }, link);
  }

  // farflame's own processes, below the others and counted as they are, with what they are together.
  private ownRows(own: readonly Row[], label: string, sums: Rows): HTMLElement[] {
    if (own.length === 0) {
      return [];
    }
    const { shell } = this;
    const { type } = shell.state;
    const value = own.reduce((sum, { values }) => sum + (values.get(type) ?? 0), 0);
    const leave = el("button", { type: "button", class: "line" }, "leave out");
    leave.addEventListener("click", () => {
      const { only, not } = picksOf(shell.state, label);
      const names = own.map(({ name }) => name);
      shell.change(pick(shell.state, label, { only: only.filter((name) => !isOwn(name)), not: [...not, ...names] }));
    });
    const said = `farflame itself, ${formatPercent(value, sums.sums.get(type) ?? 0)} of ${type} `;
    const head = el("td", { class: "name quiet", colspan: String(1 + this.answers.length) }, said, leave);
    return [el("tr", { class: "own" }, head), ...own.map((row) => this.row(row, label, sums))];
  }

  // What the answers had no room for is a row too: nothing is left out in silence.
  private lastRow(sums: Rows): HTMLElement[] {
    if (sums.left.size === 0) {
      return [];
    }
    const cells = this.answers.map(({ type, unit }) => {
      const left = sums.left.get(type);
      const text = left === undefined ? "" : `${formatValue(left.value, unit)} in ${formatCount(left.groups)}`;
      return el("td", { class: "number quiet" }, text);
    });
    return [el("tr", {}, el("td", { class: "name quiet" }, "smaller ones"), ...cells)];
  }
}
