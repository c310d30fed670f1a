// SPDX-License-Identifier: Apache-2.0
// What a click on the legend's entry offers: the graph of only those frames, or without them. Pure.

import type { MenuItem } from "../../widgets/menu";
import { exactly, type State } from "../../shell/state";
import { alternatives, withPart } from "./frame_presets";
import type { ColourBy } from "./frame_colours";

const EXPRESSION_MOST = 900; // characters; the API takes some more
const HIDEABLE = ["native", "inline", "kernel", "interpreter", "jit", "gpu", "runtime", "unresolved"];

export function legendMenu(
  name: string,
  by: ColourBy,
  state: State,
  change: (changed: Partial<State>) => void,
  modules: readonly string[] = [], // by age and language: those it stands for, or mostly
): MenuItem[] {
  const item = (text: string, changed: Partial<State>): MenuItem => ({
    text,
    hint: "",
    run: () => change({ ...changed, zoom: "" }),
  });
  const items: MenuItem[] = [];
  if (by === "kind" && HIDEABLE.includes(name)) {
    items.push(
      item("Only these frames", { hide_kind: HIDEABLE.filter((kind) => kind !== name).join(",") }),
      item("Without these frames", withPart(state, "hide_kind", name, true)),
    );
  } else if (by === "module") {
    const parts = alternatives(state.hide_module).filter((part) => part !== exactly(name));
    items.push(
      item("Only these frames", { only_module: exactly(name) }),
      item("Without these frames", { hide_module: [...parts, exactly(name)].join("|") }),
    );
  }
  const all = modules.map(exactly).join("|");
  if (all !== "" && all.length <= EXPRESSION_MOST) {
    const mostly = by === "language" ? `modules mostly in ${name}` : "these frames";
    items.push(
      item(`Only ${mostly}`, { only_module: all }),
      item(`Without ${mostly}`, { hide_module: [...alternatives(state.hide_module), all].join("|") }),
    );
  }
  if (state.hide_kind !== "" || state.hide_module !== "" || state.only_module !== "") {
    items.push(item("All frames again", { hide_kind: "", hide_module: "", only_module: "" }));
  }
  return items;
}
