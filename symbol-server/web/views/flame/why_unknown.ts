// SPDX-License-Identifier: Apache-2.0
// Why a frame has no name or its stack no beginning, in a sentence. Pure.

import type { ModuleState } from "../../server/api";
import { formatPercent } from "../../text/format";
import type { Graph } from "../../graph/graph";

const STATES: Record<string, string> = {
  wanted: "its names are asked for; no source has answered yet",
  fetching: "its names are being fetched",
  converting: "its names have come and are being read",
  symbols: "only its dynamic symbols are known, and none covers this address",
  ready: "its names are known, but none covers this address",
  missing: "no source has its names",
  failed: "its names could not be read",
};

// modules: what the server says of them; null: not known (yet).
export function whyUnknown(graph: Graph, node: number, modules: readonly ModuleState[] | null): string {
  const kind = graph.kindOf(node);
  if (kind === "incomplete") {
    return whyIncomplete(graph, node);
  }
  if (kind !== "unresolved") {
    return "";
  }
  const module = graph.moduleOf(node);
  if (module === null) {
    return "code outside of any file: made at run time, by a program that writes no perf map";
  }
  if (module.build_id === "") {
    return "the file has no build-id, by which names are looked up";
  }
  const state = modules?.find(({ build_id }) => build_id === module.build_id);
  if (state === undefined) {
    return modules === null ? "" : "the server has not listed its module";
  }
  return [STATES[state.state] ?? state.state, state.reason].filter((text) => text !== "").join(": ");
}

function whyIncomplete(graph: Graph, node: number): string {
  const name = graph.nameOf(node);
  const known = graph.answer.accounting.incomplete_by.find(({ reason }) => name.includes(reason));
  const start = "the stack could not be followed to the program’s start";
  if (known === undefined || known.modules.length === 0) {
    return start;
  }
  const places = known.modules.map(
    (module) => `${module.name || module.build_id} ${formatPercent(module.samples, known.samples)}`,
  );
  return `${start}; it stopped in ${places.join(", ")}`;
}
