// SPDX-License-Identifier: Apache-2.0
// What the user chose, and its one place: the part of the address after '#', so that a link shows
// another person the same picture. Values at their default are left out.

import type { Parameters } from "./api";

export interface State {
  type: string;
  from: string; // as the API takes it: "now-1h", or unix milliseconds
  until: string;
  process: string; // "" is all
  service: string;
  host: string;
  match: string; // further matchers, without braces
  group_by: string;
  value: string; // "value" | "samples"
  focus: string; // regular expressions for the server
  ignore: string;
  hide: string;
  max_nodes: string;
  search: string; // regular expression for the page
  zoom: string; // path of frame names, see path.ts
  refresh: string; // seconds, "0" is off
  view: string; // "both" | "graph" | "table"
  colour: string; // "kind" | "module"
  sort: string; // of the table: "self" | "total" | "name"
}

export const DEFAULTS: Readonly<State> = {
  type: "on-cpu",
  from: "now-1h",
  until: "now",
  process: "",
  service: "",
  host: "",
  match: "",
  group_by: "process",
  value: "value",
  focus: "",
  ignore: "",
  hide: "",
  max_nodes: "20000",
  search: "",
  zoom: "",
  refresh: "0",
  view: "both",
  colour: "kind",
  sort: "self",
};

const KEYS = Object.keys(DEFAULTS) as (keyof State)[];
const LIMIT = 16_384; // characters of one value; a longer one came from nobody's click

export function readState(hash: string): State {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const state: State = { ...DEFAULTS };
  for (const key of KEYS) {
    const value = given.get(key);
    if (value !== null && value.length <= LIMIT) {
      state[key] = value;
    }
  }
  return state;
}

export function writeState(state: State): string {
  const out = new URLSearchParams();
  for (const key of KEYS) {
    if (state[key] !== DEFAULTS[key]) {
      out.set(key, state[key]);
    }
  }
  const text = out.toString();
  return text === "" ? "" : "#" + text;
}

function quote(value: string): string {
  return '"' + value.replace(/\\/g, "\\\\").replace(/"/g, '\\"').replace(/\n/g, "\\n") + '"';
}

// The selector of all choices together, as the API's match= takes it; "" for everything.
export function selectorOf(state: State): string {
  const parts = (["process", "service", "host"] as const)
    .filter((label) => state[label] !== "")
    .map((label) => `${label}=${quote(state[label])}`);
  const own = state.match.trim().replace(/^\{/, "").replace(/\}$/, "").trim();
  if (own !== "") {
    parts.push(own);
  }
  return parts.length === 0 ? "" : `{${parts.join(",")}}`;
}

// The parameters that select samples, shared by all questions about one picture.
export function sampleParameters(state: State): Parameters {
  const out: Parameters = { type: state.type, from: state.from, until: state.until };
  const selector = selectorOf(state);
  if (selector !== "") {
    out.match = selector;
  }
  for (const key of ["focus", "ignore", "hide"] as const) {
    if (state[key] !== "") {
      out[key] = state[key];
    }
  }
  if (state.value !== DEFAULTS.value) {
    out.value = state.value;
  }
  return out;
}

export function flameParameters(state: State): Parameters {
  return { ...sampleParameters(state), group_by: state.group_by, max_nodes: state.max_nodes };
}

export const TOP_LIMIT = 2000; // functions asked for; the table says when there are more

export function topParameters(state: State): Parameters {
  const sort = state.sort === "total" ? "total" : "self";
  return { ...sampleParameters(state), sort, limit: String(TOP_LIMIT) };
}

// For the listing of modules, which knows no expressions over frames.
export function moduleParameters(state: State): Parameters {
  const { type, from, until, match } = sampleParameters(state);
  return match === undefined ? { type, from, until } : { type, from, until, match };
}

export function hasFilters(state: State): boolean {
  return (["process", "service", "host", "match", "focus", "ignore", "hide"] as const).some(
    (key) => state[key] !== "",
  );
}

// A regular expression that matches exactly this text, for RE2 and JavaScript alike.
export function exactly(text: string): string {
  return "^" + text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&") + "$";
}
