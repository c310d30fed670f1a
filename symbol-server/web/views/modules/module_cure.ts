// SPDX-License-Identifier: Apache-2.0
// What can be done about a module's names, small enough for a row: a command to copy, and the server asked again.

import type { ModuleState } from "../../server/api";
import { el } from "../../widgets/dom";
import { cureOf, isStuck, nextStep, type Sources } from "./modules_advice";

export interface CureActions {
  sources(): Sources;
  copy(command: string): void;
  fetch(module: ModuleState): void;
}

export function moduleCure(module: ModuleState, actions: CureActions): HTMLElement {
  const command = cureOf(module, actions.sources());
  const name = module.name === "" ? module.build_id : module.name;
  const made = el("span", { class: "cure" });
  const button = (text: string, label: string, title: string, run: () => void) => {
    const one = el("button", { type: "button", "aria-label": label, title }, text);
    one.addEventListener("click", (e) => {
      e.stopPropagation(); // the row is not meant
      run();
    });
    made.append(one);
  };
  if (isStuck(module)) {
    button("Fetch", `Fetch names of ${name}`, "The server asks its sources again, now", () => actions.fetch(module));
  }
  if (command === "") {
    made.append(el("span", { class: "quiet" }, nextStep(module)));
  } else {
    button("Copy", `Copy: ${command}`, command, () => actions.copy(command));
    made.append(el("code", { title: command }, command));
  }
  return made;
}
