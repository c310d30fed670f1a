// SPDX-License-Identifier: Apache-2.0
// The two sides of a comparison: B is what the bar above chooses; A's time and selector are here.

import type { ModuleState } from "../../server/api";
import { el } from "../../widgets/dom";
import { formatRange, formatTime } from "../../text/format";
import { shown } from "../../text/shown";
import type { Shell } from "../../shell/view";
import { selectorOf, type State } from "../../shell/state";
import { baseRange, timeOf } from "../../text/time";
import { againstPrevious, previousBuilds, severalBuilds, type Previous } from "../builds";

const TIMES: [string, string][] = [
  ["before", "just before, as long"],
  ["-10m", "10 minutes earlier"],
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

const PREVIOUS = "previous "; // and the new build's id: a choice of A's time that is made of others

const SHORT_ID = 10; // digits that tell builds apart

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

// One that is not offered is there as long as it is chosen.
function chooseBuild(box: HTMLSelectElement, build_id: string): void {
  if (![...box.options].some((option) => option.value === build_id)) {
    box.append(el("option", { value: build_id, title: build_id }, build_id.slice(0, SHORT_ID)));
  }
  box.value = build_id;
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
    "aria-describedby": "base-match-why",
  });
  private readonly matchWhy = el("small", { class: "reason", id: "base-match-why" });
  private readonly aBuild = choices([["", "build: as B"]], "A's build");
  private readonly bBuild = choices([["", "any build"]], "B's build");
  private readonly norm = choices(NORMS, "Compared by");
  private readonly width = choices(WIDTHS, "Frames are as wide as");
  private readonly previous = el("optgroup", { label: "the previous build of" });
  private builds: Previous[] = [];
  private readonly a = el("span", { class: "quiet", role: "status" });
  private readonly b = el("span", { class: "quiet" });

  constructor(private readonly shell: Shell) {
    const swap = el("button", { type: "button", title: "Swap A and B (x)" }, "Swap");
    swap.addEventListener("click", () => this.swap());
    this.offerPrevious();
    this.time.append(this.previous);
    this.time.addEventListener("change", () => this.chooseTime());
    this.match.addEventListener("change", () => shell.change({ base_match: this.match.value.trim() }));
    this.aBuild.addEventListener("change", () => this.chooseBuild());
    this.bBuild.addEventListener("change", () => shell.change({ build_id: this.bBuild.value }));
    this.norm.addEventListener("change", () => shell.change({ norm: this.norm.value }));
    this.width.addEventListener("change", () => shell.change({ width: this.width.value }));
    this.element.append(
      el("div", { class: "side" }, el("strong", {}, "A"), " before: ", this.time, this.match, this.matchWhy, this.aBuild, this.a),
      el("div", { class: "side" }, el("strong", {}, "B"), " after: ", this.b, this.bBuild, swap),
      el("div", { class: "side" }, "compared ", this.norm, " widths of ", this.width),
    );
  }

  adjust(state: State): void {
    const custom = baseRange(state.base, state.from, state.until, Date.now());
    choose(this.time, state.base, custom === null ? state.base : formatRange(custom.from, custom.until));
    this.match.value = state.base_match;
    chooseBuild(this.aBuild, state.base_build_id);
    chooseBuild(this.bBuild, state.build_id);
    this.norm.value = state.norm;
    this.width.value = state.width;
    this.b.textContent = selectorOf(state) === "" ? "everything chosen above" : selectorOf(state);
  }

  // What the server says against A's selector, beside it; "": nothing.
  refuse(sentence: string): void {
    const isAgainst = /^parameter '?base\.match\b/i.test(sentence);
    this.match.setAttribute("aria-invalid", String(isAgainst));
    this.matchWhy.textContent = isAgainst ? shown(sentence) : "";
  }

  private chooseTime(): void {
    const { value } = this.time;
    const previous = this.builds.find(({ build_id }) => value === PREVIOUS + build_id);
    if (previous === undefined) {
      this.shell.change({ base: value });
      return;
    }
    const { from, until } = this.shell.state;
    const now = Date.now();
    const times = againstPrevious(previous, timeOf(from, now), timeOf(until, now));
    this.shell.change({
      base: times.base,
      from: String(times.from ?? from),
      until: String(times.until ?? until),
      build_id: previous.build_id,
      base_build_id: previous.before,
      zoom: "",
    });
    this.adjust(this.shell.state);
  }

  private offerPrevious(): void {
    const none = el("option", { disabled: "" }, "none is known");
    const options = this.builds.map(({ name, build_id, time }) =>
      el("option", { value: PREVIOUS + build_id, title: build_id }, `${name}, replaced ${formatTime(time)}`),
    );
    this.previous.replaceChildren(...(options.length > 0 ? options : [none]));
  }

  // Two builds are compared as they ran in the same time, unless another is chosen.
  private chooseBuild(): void {
    const { base } = this.shell.state;
    this.shell.change({ base_build_id: this.aBuild.value, base: base === "before" ? "-0s" : base });
  }

  // Those of which there are several.
  offerBuilds(modules: readonly ModuleState[]): void {
    this.builds = previousBuilds(modules);
    this.offerPrevious();
    for (const box of [this.aBuild, this.bBuild]) {
      const groups = severalBuilds(modules).map(({ name, builds }) => {
        const options = builds.map(({ build_id, first_seen }) =>
          el("option", { value: build_id, title: build_id }, `${build_id.slice(0, SHORT_ID)}, since ${formatTime(first_seen)}`),
        );
        return el("optgroup", { label: name }, ...options);
      });
      box.replaceChildren(box.options[0], ...groups);
    }
    chooseBuild(this.aBuild, this.shell.state.base_build_id);
    chooseBuild(this.bBuild, this.shell.state.build_id);
  }

  // As the answer has them.
  showRanges(a: { from: number; until: number; moved: boolean }, b: { from: number; until: number }): void {
    this.a.textContent = formatRange(a.from, a.until) + (a.moved ? ", moved back to end where B begins" : "");
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
    if (state.base_build_id !== "") {
      Object.assign(changed, { build_id: state.base_build_id, base_build_id: state.build_id });
    }
    if (state.base_match !== "" && state.base_match !== b) {
      Object.assign(changed, { base_match: b === "" ? "{}" : b, match: state.base_match, process: "", service: "", host: "" });
    }
    this.shell.change(changed);
  }
}
