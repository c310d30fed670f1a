// SPDX-License-Identifier: Apache-2.0
// What a comparison asks the server for.

import type { Parameters } from "../../server/api";
import { flameParameters, type State } from "../../shell/state";
import { baseRange, timeOf } from "../../text/time";

const FUNCTIONS = "10000";

export function diffParameters(state: State, now: number): Parameters {
  const out: Parameters = { ...flameParameters({ ...state, exact: "", trace_id: "" }), norm: state.norm, limit: FUNCTIONS };
  if (state.sort === "total") {
    out.sort = "total";
  }
  const range = baseRange(state.base, state.from, state.until, now);
  if (range === null) {
    throw new Error(`A's time “${state.base}” cannot be understood.`);
  }
  if (state.base !== "before" || state.base_match !== "" || state.base_build_id !== "") {
    out["base.from"] = String(Math.round(range.from));
    out["base.until"] = String(Math.round(range.until));
  }
  if (state.base.startsWith("-")) { // of one "now": the same time twice is exactly that
    out.from = String(Math.round(timeOf(state.from, now)));
    out.until = String(Math.round(timeOf(state.until, now)));
  }
  if (state.base_match !== "") {
    const own = state.base_match.trim();
    out["base.match"] = own.startsWith("{") ? own : `{${own}}`;
  }
  if (state.base_build_id !== "") {
    out["base.build_id"] = state.base_build_id;
  }
  return out;
}
