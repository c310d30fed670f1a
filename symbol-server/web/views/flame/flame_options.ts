// SPDX-License-Identifier: Apache-2.0
// The flame graph's own row of choices: what is made here stands behind what index.html has.

import { byId, el } from "../../widgets/dom";
import { exactly, plain, type State } from "../../shell/state";
import { closeWhenLeft } from "../../widgets/unfolding";
import { isOn, PRESETS, toggled } from "./frame_presets";

type Change = (changed: Partial<State>) => void;

const RECURSION: [string, string][] = [
  ["", "as it is"],
  ["direct", "direct, in one frame"],
  ["all", "all, in one frame"],
];

export class FlameOptions {
  private readonly recursion = el(
    "select",
    {
      id: "recursion",
      title: "One frame for a function that calls itself: directly, or also through others",
    },
    ...RECURSION.map(([value, text]) => el("option", { value }, text)),
  );
  private readonly invert = el(
    "button",
    { type: "button", id: "invert", title: "Leaves first, their callers below (v)" },
    "Inverted",
  );
  private readonly join = el(
    "button",
    { type: "button", id: "join-overloads", title: "Functions of one name as one: C++ overloads and templates, Rust generics" },
    "Overloads joined",
  );
  private readonly presets = PRESETS.map((preset) => {
    const box = el("input", { type: "checkbox", id: `hide-${preset.name}` });
    box.addEventListener("change", () => this.change({ ...toggled(this.state, preset, box.checked), zoom: "" }));
    return { preset, box };
  });
  private readonly runtime = el("input", { type: "checkbox", id: "hide-runtime" });
  private readonly module = el("select", { id: "only-module", "aria-label": "Only frames of this module" });
  private readonly hiding = el(
    "details",
    { class: "unfolding", id: "hiding" },
    el("summary", { title: "Leave frames out: what they cost is their callers’ then" }, "Hide"),
    el(
      "div",
      { class: "panel" },
      el("h2", {}, "Leave out frames of"),
      el(
        "label",
        {},
        this.runtime,
        el("span", {}, "Interpreters’ loops", el("span", { class: "quiet" }, "What a function of Python stands for: the native frames between two of them.")),
      ),
      ...this.presets.map(({ preset, box }) =>
        el("label", {}, box, el("span", {}, preset.text, el("span", { class: "quiet" }, preset.explain))),
      ),
      el("h2", {}, "Only my module"),
      this.module,
      el("p", { class: "quiet" }, "What a frame that is left out cost is its caller’s. Table, links and downloads do the same."),
    ),
  );

  constructor(
    private state: State,
    private readonly change: Change,
  ) {
    this.recursion.addEventListener("change", () => change({ recursion: this.recursion.value }));
    this.invert.addEventListener("click", () => change({ invert: this.state.invert === "1" ? "" : "1", zoom: "" }));
    this.join.addEventListener("click", () => change({ collapse: this.state.collapse === "name" ? "" : "name", sandwich: "" }));
    this.runtime.addEventListener("change", () => change({ hide_runtime: this.runtime.checked ? "" : "false", zoom: "" }));
    this.module.addEventListener("change", () => {
      const name = this.module.value;
      change({ only_module: name === "" ? "" : exactly(name), zoom: "" });
    });
    closeWhenLeft(this.hiding);
    byId("graph-options").append(el("label", { class: "pick" }, "recursion ", this.recursion), this.invert, this.join, this.hiding);
  }

  show(state: State): void {
    this.state = state;
    this.recursion.value = RECURSION.some(([value]) => value === state.recursion) ? state.recursion : "";
    this.invert.setAttribute("aria-pressed", String(state.invert === "1"));
    this.join.setAttribute("aria-pressed", String(state.collapse === "name"));
    this.presets.forEach(({ preset, box }) => (box.checked = isOn(state, preset)));
    this.runtime.checked = state.hide_runtime !== "false";
    const isUsed = this.presets.some(({ box }) => box.checked) || state.only_module !== "";
    this.hiding.classList.toggle("used", isUsed);
    this.chooseModule();
  }

  // What there is to choose from: the modules of the answer that is shown, the heaviest first.
  offerModules(names: readonly string[]): void {
    this.module.replaceChildren(
      el("option", { value: "" }, "all modules"),
      ...names.map((name) => el("option", { value: name }, name)),
    );
    this.chooseModule();
  }

  private chooseModule(): void {
    const { only_module: wanted } = this.state;
    const known = [...this.module.options].find(({ value }) => value !== "" && exactly(value) === wanted);
    if (wanted === "" || known !== undefined) {
      this.module.value = known?.value ?? "";
      return;
    }
    this.module.append(el("option", { value: plain(wanted) }, plain(wanted)));
    this.module.value = plain(wanted);
  }
}
