// SPDX-License-Identifier: Apache-2.0
// The two sides of a comparison: B is what the bar above chooses; A's time and selector are here.

import { el } from "../../widgets/dom";
import { formatRange } from "../../text/format";
import type { Shell } from "../../shell/view";
import { selectorOf, type State } from "../../shell/state";
import { baseRange, timeOf } from "../../text/time";

const TIMES: [string, string][] = [
  ["before", "just before, as long"],
  ["-1h", "an hour earlier"],
  ["-1d", "a day earlier"],
  ["-7d", "a week earlier"],
  ["-0s", "the same time"],
];
const NORMS: [string, string][] = [
  ["per_second", "per second"],
  ["share", "share of the whole"],
  ["raw", "as it is"],
];
const WIDTHS: [string, string][] = [
  ["larger", "the larger side"],
  ["after", "B"],
  ["before", "A"],
];

function choices(options: [string, string][], label: string): HTMLSelectElement {
  const made = el("select", { "aria-label": label });
  made.append(...options.map(([value, text]) => el("option", { value }, text)));
  return made;
}

// A value that is not among the choices is one more.
function choose(box: HTMLSelectElement, value: string, text: string): void {
  const known = [...box.options].find((option) => option.value === value);
  if (known === undefined) {
    box.append(el("option", { value }, text));
  } else if (!TIMES.some(([of]) => of === value)) {
    known.textContent = text;
  }
  box.value = value;
}

export class DiffSides {
  readonly element = el("div", { class: "diff-sides" });
  private readonly time = choices(TIMES, "A's time");
  private readonly match = el("input", {
    type: "text",
    spellcheck: "false",
    autocomplete: "off",
    placeholder: 'as B; or {host="other"}',
    "aria-label": "A's selector",
  });
  private readonly norm = choices(NORMS, "Compared by");
  private readonly width = choices(WIDTHS, "Frames are as wide as");
  private readonly a = el("span", { class: "quiet" });
  private readonly b = el("span", { class: "quiet" });

  constructor(private readonly shell: Shell) {
    const swap = el("button", { type: "button", title: "Swap A and B (x)" }, "Swap");
    swap.addEventListener("click", () => this.swap());
    this.time.addEventListener("change", () => shell.change({ base: this.time.value }));
    this.match.addEventListener("change", () => shell.change({ base_match: this.match.value.trim() }));
    this.norm.addEventListener("change", () => shell.change({ norm: this.norm.value }));
    this.width.addEventListener("change", () => shell.change({ width: this.width.value }));
    this.element.append(
      el("div", { class: "side" }, el("strong", {}, "A"), " before: ", this.time, this.match, this.a),
      el("div", { class: "side" }, el("strong", {}, "B"), " after: ", this.b, swap),
      el("div", { class: "side" }, "compared ", this.norm, " widths of ", this.width),
    );
  }

  adjust(state: State): void {
    const custom = baseRange(state.base, state.from, state.until, Date.now());
    choose(this.time, state.base, custom === null ? state.base : formatRange(custom.from, custom.until));
    this.match.value = state.base_match;
    this.norm.value = state.norm;
    this.width.value = state.width;
    this.b.textContent = selectorOf(state) === "" ? "everything chosen above" : selectorOf(state);
  }

  // As the answer has them.
  showRanges(a: { from: number; until: number }, b: { from: number; until: number }): void {
    this.a.textContent = formatRange(a.from, a.until);
    const selector = selectorOf(this.shell.state);
    this.b.textContent = `${formatRange(b.from, b.until)}${selector === "" ? "" : ` ${selector}`}`;
  }

  // B becomes what A is, by its times of now.
  swap(): void {
    const { state } = this.shell;
    const now = Date.now();
    const range = baseRange(state.base, state.from, state.until, now);
    if (range === null) {
      return;
    }
    const b = selectorOf(state);
    const changed: Partial<State> = {
      from: String(range.from),
      until: String(range.until),
      base: `${timeOf(state.from, now)}..${timeOf(state.until, now)}`,
    };
    if (state.base_match !== "" && state.base_match !== b) {
      Object.assign(changed, { base_match: b === "" ? "{}" : b, match: state.base_match, process: "", service: "", host: "" });
    }
    this.shell.change(changed);
  }
}
